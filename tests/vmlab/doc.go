// Package vmlab runs guests of user-mode-linux: real kernels with a clock of their
// own each, on the host's own root, connected by a bridge in a private network
// namespace. In them chronyd and gpsd really discipline a clock, and the agent
// measures; what it prints is held against the processor's counter, which all of
// them share (package truth).
//
// A guest is started by Start, told what to do by Guest.Do, and leaves its logs in
// its directory (package record); cmd/guest is its init. The kernel is an option: any
// kernel built with ARCH=um will do.
//
// Some packets are late in truth, and the LAN check says how many. A kernel of user-mode
// Linux that has nothing to do decides to sleep, with its interrupts off, and then sleeps
// (arch/um/os-Linux/time.c, os_idle_sleep of Linux 6.1): what comes in between waits for the
// next interrupt, here the next packet, 5 ms later. One in a hundred does; most of the others are
// late by a millisecond while the guest or the machine itself stood still. To interrupt
// the guests more often ends the first kind and makes more of the second.
//
// Linux on amd64, root, and Debian's packages user-mode-linux, chrony and gpsd.
package vmlab
