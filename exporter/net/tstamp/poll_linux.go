package tstamp

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poll lets the runtime's poller watch the socket through an epoll descriptor that contains only the socket, for two
// reasons. The runtime treats an event of only EPOLLERR, which a transmit timestamp causes while the send buffer is
// full, as a broken descriptor. And it would wake for each packet that leaves the send buffer.
//
// While Send runs, the descriptor does not contain the socket. A socket reports each transmit timestamp as an error,
// which cannot be masked, and runs the callback of each watcher for each packet that leaves: a thread would wake for
// each packet of a Send that reads all timestamps itself, and the callbacks alone take a seventh of the packet's time.
type poll struct {
	socket int
	file   *os.File
	raw    syscall.RawConn
	// begin and end are the functions of watch, made once: a closure allocates.
	begin, end func(ep uintptr)
}

// newPoll starts to watch the socket. After an error nothing is left open.
func newPoll(socket int) (*poll, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	p := &poll{socket: socket}
	if errno := p.control(ep, unix.EPOLL_CTL_ADD); errno != 0 {
		return nil, errors.Join(fmt.Errorf("epoll_ctl: %w", errno), unix.Close(ep))
	}
	if err := unix.SetNonblock(ep, true); err != nil { // the runtime polls only non-blocking files
		return nil, errors.Join(fmt.Errorf("fcntl: %w", err), unix.Close(ep))
	}
	p.file = os.NewFile(uintptr(ep), "tstamp")
	p.begin = func(ep uintptr) { p.control(int(ep), unix.EPOLL_CTL_ADD) }
	p.end = func(ep uintptr) { p.control(int(ep), unix.EPOLL_CTL_DEL) }
	if p.raw, err = p.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	return p, nil
}

// control is epoll_ctl on the socket, which does not block.
func (p *poll) control(ep, operation int) unix.Errno {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.socket)} // errors are always reported
	_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(ep), uintptr(operation), uintptr(p.socket),
		uintptr(unsafe.Pointer(&event)), 0, 0)
	return errno
}

// watch starts or stops to watch the socket. Events that occurred in between and still apply wake Receive on start.
func (p *poll) watch(on bool) {
	if on {
		_ = p.raw.Control(p.begin) // fails only after Close
	} else {
		_ = p.raw.Control(p.end)
	}
}

// alarm wakes a waiting Receive at a set time, by the file's read deadline.
type alarm struct {
	mu   sync.Mutex
	file interface{ SetReadDeadline(time.Time) error }
	at   time.Time // the zero Time: it is not set
}

// within sets the alarm to a time from now, unless it is set to an earlier one. So a steady sender costs one wake-up
// per wait, and an idle one none.
func (a *alarm) within(wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := time.Now().Add(wait)
	if (a.at.IsZero() || at.Before(a.at)) && a.file.SetReadDeadline(at) == nil {
		a.at = at
	}
}

// moveTo resets the alarm, and sets the file that it wakes.
func (a *alarm) moveTo(file interface{ SetReadDeadline(time.Time) error }) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.file, a.at = file, time.Time{}
}

// stop resets an expired alarm. The caller then does the work that it was set for.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = time.Time{}
	_ = a.file.SetReadDeadline(time.Time{}) // fails only after Close
}
