package pulse

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// seccompData, notification and response are struct seccomp_data, seccomp_notif and seccomp_notif_resp (linux/seccomp.h).
type seccompData struct {
	number      int32
	arch        uint32
	instruction uint64
	arguments   [6]uint64
}

type notification struct {
	id     uint64
	thread uint32
	flags  uint32
	seccompData
}

type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// Start starts a program that sees the device, and replies to its ioctls until it and its children have ended. The caller waits
// for the program.
func (d *Device) Start(cmd *exec.Cmd) error {
	ours, theirs, err := wrap(cmd)
	if err != nil {
		return err
	}
	defer ours.Close()
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return err
	}
	listener, err := receive(int(ours.Fd()))
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("pulse: receive the listener of %s: %w", cmd.Args[2], err)
	}
	d.serving.Go(func() { d.serve(listener) })
	return nil
}

// receive is the descriptor that the shim sends, as a file of the runtime's poller.
func receive(socket int) (*os.File, error) {
	control := make([]byte, unix.CmsgSpace(4))
	n, size, _, _, err := unix.Recvmsg(socket, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errors.New("it ended before it started")
	}
	messages, err := unix.ParseSocketControlMessage(control[:size])
	if err != nil {
		return nil, err
	}
	if len(messages) != 1 {
		return nil, fmt.Errorf("%d control messages, want 1", len(messages))
	}
	descriptors, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(descriptors[0], true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(descriptors[0]), "seccomp"), nil
}

// serve replies to the notifications of one program until no process has its filter, or Close.
func (d *Device) serve(listener *os.File) {
	stop := d.onClose(func() { _ = listener.Close() })
	defer stop()
	raw, err := listener.SyscallConn()
	if err != nil {
		return
	}
	for {
		var n notification
		ended := false
		err := raw.Read(func(fd uintptr) (done bool) {
			n, done, ended = next(int(fd))
			return done
		})
		if err != nil || ended {
			return
		}
		if n.id != 0 {
			d.serving.Go(func() { d.reply(raw.Control, &n) })
		}
	}
}

// next takes a notification. done is false if there is none yet; its id is 0 if its system call was interrupted meanwhile.
func next(fd int) (n notification, done, ended bool) {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(poll, 0); err != nil { // EINTR
		return n, true, false
	}
	switch {
	case poll[0].Revents&unix.POLLIN != 0: // the receive blocks otherwise
		_ = control(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n))
		return n, true, false
	case poll[0].Revents != 0:
		return n, true, true
	}
	return n, false, false
}

func control(fd int, request uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	return errno
}

// reply replies to one notification. use calls a function with the listener's descriptor, unless it is closed.
func (d *Device) reply(use func(func(fd uintptr)) error, n *notification) {
	waiting := func() bool {
		errno := unix.ENOENT
		err := use(func(fd uintptr) { errno = control(int(fd), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)) })
		return err == nil && errno == 0
	}
	r := response{id: n.id}
	if errno, ours := d.perform(n, waiting); ours {
		r.errno = -int32(errno)
	} else {
		r.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	}
	// ENOENT: the system call was interrupted.
	_ = use(func(fd uintptr) { _ = control(int(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) })
}

// perform carries out the ioctl, if it is one of this device.
func (d *Device) perform(n *notification, waiting func() bool) (errno unix.Errno, ours bool) {
	thread := "/proc/" + strconv.Itoa(int(n.thread))
	var file unix.Stat_t
	err := unix.Stat(thread+"/fd/"+strconv.Itoa(int(int32(n.arguments[0]))), &file)
	if err != nil || file.Dev != d.node.Dev || file.Ino != d.node.Ino {
		if err != nil && !errors.Is(err, unix.ENOENT) {
			d.log.Warn("File of a PPS ioctl is unknown", "thread", n.thread, "err", err)
		}
		return 0, false
	}
	// The open file keeps this program's memory, whichever program has the number later.
	memory, err := os.OpenFile(thread+"/mem", os.O_RDWR, 0)
	if err != nil {
		d.log.Warn("Memory of a program cannot be opened", "thread", n.thread, "err", err)
		return unix.EFAULT, true
	}
	defer memory.Close()
	if !waiting() {
		return unix.EINTR, true
	}
	return d.ioctl(call{
		command: uint32(n.arguments[1]), argument: n.arguments[2],
		compat: n.arch == unix.AUDIT_ARCH_I386 || n.arch == unix.AUDIT_ARCH_ARM,
		memory: memory, waiting: waiting,
		settime: func() bool { return capable(thread+"/status", unix.CAP_SYS_TIME) },
	}), true
}

// capable reports whether a capability is effective, by a status file of /proc.
func capable(status string, capability int) bool {
	f, err := os.Open(status)
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if set, found := strings.CutPrefix(lines.Text(), "CapEff:"); found {
			bits, err := strconv.ParseUint(strings.TrimSpace(set), 16, 64)
			return err == nil && bits>>capability&1 == 1
		}
	}
	return false
}
