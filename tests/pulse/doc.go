// Package pulse emulates a PPS device (/dev/ppsN, linux/pps.h) for unchanged programs on a kernel without one: the agent's
// exporter/watchers/pps and chronyd's `refclock PPS`.
//
// A program starts with a seccomp filter that notifies this process of its PPS ioctls (SECCOMP_FILTER_FLAG_NEW_LISTENER,
// Linux 5.9). This process replies as drivers/pps/pps.c does, and writes the result into the program's memory. An ioctl of
// another file continues in the kernel. The device is a node of the null device, made by Create.
//
// A pulse is simulated: its timestamp is a whole second of CLOCK_REALTIME plus an offset and a jitter. So a test with it proves
// the system calls, their structures and the reader's behavior, and not that a kernel timestamps a real edge, nor that this
// host's clock is right: by definition its error is zero, plus the offset.
//
// Differences from the kernel: only assert edges; a wait that a signal interrupts is restarted where the signal's handler has
// SA_RESTART, while the kernel returns EINTR; there is no sysfs entry. When this process ends, every PPS ioctl of the program
// fails with ENOSYS, also one that waits.
//
// It needs CAP_MKNOD, and CAP_SYS_PTRACE for the memory of a program that changes its user, as chronyd does. Without
// CAP_SYS_ADMIN it sets no_new_privs. A program needs CAP_SYS_TIME for PPS_SETPARAMS, as with the kernel. In Docker, which has its
// own seccomp filter: --cap-add SYS_PTRACE --cap-add SYS_TIME.
package pulse
