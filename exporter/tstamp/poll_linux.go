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

// poll is how the runtime's poller watches the socket: it watches an epoll descriptor that holds
// only the socket, for two reasons. The runtime takes an event of nothing but EPOLLERR, which a
// transmit stamp is while the send buffer is full, for a broken descriptor. And it would be woken
// for each packet that leaves the send buffer.
//
// While Send runs, the descriptor does not hold the socket. A socket reports each transmit stamp
// as an error, which cannot be masked, and calls whoever watches it for each packet that leaves,
// asked or not: a thread would be woken for each packet of a Send that reads all stamps itself,
// and the calls alone take a seventh of the packet's time.
type poll struct {
	socket int
	file   *os.File
	raw    syscall.RawConn
	// begin and end watch, made once: a closure allocates.
	begin, end func(ep uintptr)
}

// open watches the socket. After an error nothing is left open.
func (p *poll) open(socket int) error {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("epoll_create1: %w", err)
	}
	p.socket = socket
	if errno := p.control(ep, unix.EPOLL_CTL_ADD); errno != 0 {
		return errors.Join(fmt.Errorf("epoll_ctl: %w", errno), unix.Close(ep))
	}
	if err := unix.SetNonblock(ep, true); err != nil { // or the runtime would not poll it
		return errors.Join(fmt.Errorf("fcntl: %w", err), unix.Close(ep))
	}
	p.file = os.NewFile(uintptr(ep), "tstamp")
	p.begin = func(ep uintptr) { p.control(int(ep), unix.EPOLL_CTL_ADD) }
	p.end = func(ep uintptr) { p.control(int(ep), unix.EPOLL_CTL_DEL) }
	if p.raw, err = p.file.SyscallConn(); err != nil {
		return errors.Join(err, p.file.Close())
	}
	return nil
}

// control is epoll_ctl for the socket, which does not block.
func (p *poll) control(ep, operation int) unix.Errno {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.socket)} // errors are always reported
	_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(ep), uintptr(operation), uintptr(p.socket),
		uintptr(unsafe.Pointer(&event)), 0, 0)
	return errno
}

// watch begins or ends to watch the socket. What has come meanwhile and is still there wakes
// Receive when it begins.
func (p *poll) watch(on bool) {
	if on {
		_ = p.raw.Control(p.begin) // fails only after Close
	} else {
		_ = p.raw.Control(p.end)
	}
}

// alarm wakes a Receive that waits, at a set time, by the file's read deadline.
type alarm struct {
	mu   sync.Mutex
	file interface{ SetReadDeadline(time.Time) error }
	at   time.Time // the zero Time: it is not set
}

// within sets it for a time from now, unless it is set for an earlier one. So a steady sender
// costs one wake-up every wait, and an idle one none.
func (a *alarm) within(wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := time.Now().Add(wait)
	if (a.at.IsZero() || at.Before(a.at)) && a.file.SetReadDeadline(at) == nil {
		a.at = at
	}
}

// stop ends a ringing alarm. What it rang for must be looked after afterwards.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = time.Time{}
	_ = a.file.SetReadDeadline(time.Time{}) // fails only after Close
}
