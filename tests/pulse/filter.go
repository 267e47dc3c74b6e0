package pulse

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// abi is a system-call interface of this kernel: that of 64-bit programs, or of 32-bit ones.
type abi struct {
	arch    uint32 // AUDIT_ARCH_*
	ioctl   uint32 // number of the system call
	pointer uint32 // bytes of a pointer, which the commands contain
}

// abis are those of an architecture whose encoding of ioctl commands is asm-generic/ioctl.h; nil: not supported.
func abis(goarch string) []abi {
	switch goarch {
	case "amd64":
		return []abi{{unix.AUDIT_ARCH_X86_64, 16, 8}, {unix.AUDIT_ARCH_I386, 54, 4}}
	case "arm64":
		return []abi{{unix.AUDIT_ARCH_AARCH64, 29, 8}, {unix.AUDIT_ARCH_ARM, 54, 4}}
	}
	return nil
}

// commands are those of linux/pps.h for a pointer of this size: direction, size, 'p', number.
func commands(pointer uint32) []uint32 {
	const read, write = 2 << 30, 1 << 30
	base := pointer<<16 | 'p'<<8
	return []uint32{read | base | getParams, write | base | setParams, read | base | getCap, read | write | base | fetch, write | base | bind}
}

// Offsets in struct seccomp_data of little-endian machines.
const (
	atNumber  = 0
	atArch    = 4
	atCommand = 24 // the lower half of the second argument
)

// filter is the BPF program that notifies of PPS commands and allows everything else.
func filter(all []abi) []unix.SockFilter {
	const load, equal, end = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	var program []unix.SockFilter
	for _, a := range all {
		known := commands(a.pointer)
		n := uint8(len(known))
		program = append(program,
			unix.SockFilter{Code: load, K: atArch},
			unix.SockFilter{Code: equal, K: a.arch, Jf: n + 5}, // the next interface
			unix.SockFilter{Code: load, K: atNumber},
			unix.SockFilter{Code: equal, K: a.ioctl, Jf: n + 1},
			unix.SockFilter{Code: load, K: atCommand})
		for i, command := range known {
			program = append(program, unix.SockFilter{Code: equal, K: command, Jt: n - uint8(i)})
		}
		program = append(program,
			unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW},
			unix.SockFilter{Code: end, K: unix.SECCOMP_RET_USER_NOTIF})
	}
	return append(program, unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW})
}

// shimName is the first argument of this program when it is to install the filter and become another program. The second
// one is the descriptor of the socket that takes the listener, the third the file of the program.
const shimName = "oneway-pulse-shim"

// Shim must be the first call of main, or of TestMain, in a program that calls Device.Start: this program starts itself, since
// the filter is installed by the thread that becomes the other program. It returns if this process is none of these.
func Shim() {
	if len(os.Args) < 4 || os.Args[0] != shimName {
		return
	}
	err := become(os.Args[1], os.Args[2], os.Args[3:])
	fmt.Fprintf(os.Stderr, "pulse: start %s: %v\n", os.Args[2], err)
	os.Exit(127)
}

// become installs the filter, sends its listener, and executes the program.
func become(descriptor, path string, args []string) error {
	socket, err := strconv.Atoi(descriptor)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // a filter is a thread's; the thread that calls exec remains
	listener, err := install(filter(abis(runtime.GOARCH)))
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("send the listener: %w", err)
	}
	unix.CloseOnExec(socket)
	return unix.Exec(path, args, os.Environ())
}

// install installs a filter on this thread, and returns its listener.
func install(program []unix.SockFilter) (listener int, err error) {
	set := func() (uintptr, unix.Errno) {
		fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&fprog)))
		return fd, errno
	}
	fd, errno := set()
	if errno == unix.EACCES { // without CAP_SYS_ADMIN
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return 0, fmt.Errorf("set no_new_privs: %w", err)
		}
		fd, errno = set()
	}
	if errno != 0 {
		return 0, fmt.Errorf("install the seccomp filter: %w", errno)
	}
	return int(fd), nil
}

// wrap changes cmd such that the shim starts it. The listener comes through ours; theirs is to be closed after the start.
func wrap(cmd *exec.Cmd) (ours, theirs *os.File, err error) {
	if abis(runtime.GOARCH) == nil {
		return nil, nil, fmt.Errorf("pulse: not supported on %s", runtime.GOARCH)
	}
	if cmd.Err != nil {
		return nil, nil, cmd.Err
	}
	// SOCK_SEQPACKET: a shim that fails is an end of file.
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("pulse: make a socket: %w", err)
	}
	ours, theirs = os.NewFile(uintptr(pair[0]), "pulse"), os.NewFile(uintptr(pair[1]), "pulse")
	descriptor := strconv.Itoa(3 + len(cmd.ExtraFiles))
	cmd.Args = append([]string{shimName, descriptor, cmd.Path}, cmd.Args...)
	cmd.Path = "/proc/self/exe"
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	return ours, theirs, nil
}
