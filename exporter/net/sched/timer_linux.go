package sched

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernelTimer sleeps on a timerfd, set to an absolute time of CLOCK_MONOTONIC (timerfd_create(2)), and an eventfd that
// wakes it. An epoll descriptor joins them, on which the runtime's poller waits: the runtime treats a thread blocked in
// ppoll like a long system call, and its monitor wakes up 50 times, 20 us apart, after each of them (sysmon in
// runtime/proc.go). For 200 wake-ups a second that was half of all CPU time.
type kernelTimer struct {
	timer      int
	poll       *os.File // the epoll descriptor
	raw        syscall.RawConn
	checkReady func(uintptr) bool // made once, since a method value allocates
	woken      bool               // checkReady found the eventfd readable

	mu    sync.RWMutex // guards closing the eventfd
	event int          // -1: closed
}

func newTimer() (timer, error) {
	k := &kernelTimer{timer: -1, event: -1}
	if err := k.open(); err != nil {
		k.leave()
		return nil, err
	}
	k.checkReady = k.ready
	return k, nil
}

func (k *kernelTimer) open() (err error) {
	if k.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return fmt.Errorf("timerfd_create: %w", err)
	}
	if k.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("epoll_create1: %w", err)
	}
	for _, fd := range []int{k.timer, k.event} {
		e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
		if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
			return errors.Join(fmt.Errorf("epoll_ctl: %w", err), unix.Close(ep))
		}
	}
	if err := unix.SetNonblock(ep, true); err != nil { // the runtime polls only non-blocking files
		return errors.Join(fmt.Errorf("fcntl: %w", err), unix.Close(ep))
	}
	k.poll = os.NewFile(uintptr(ep), "pacer")
	k.raw, err = k.poll.SyscallConn()
	return err
}

func (k *kernelTimer) now() time.Duration { return Now() }

// leave closes all descriptors.
func (k *kernelTimer) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.poll != nil {
		_ = k.poll.Close()
	}
	for _, fd := range []int{k.event, k.timer} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	k.event, k.timer = -1, -1
}

func (k *kernelTimer) wait(until time.Duration) error {
	var spec unix.ItimerSpec // zero: disarmed
	if until != never {
		// Zero would disarm it; a time in the past fires at once.
		spec.Value = unix.NsecToTimespec(int64(max(until, 1)))
	}
	// Setting the timer also clears an unread expiry.
	if err := unix.TimerfdSettime(k.timer, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		return fmt.Errorf("timerfd_settime: %w", err)
	}
	k.woken = false
	if err := k.raw.Read(k.checkReady); err != nil {
		return fmt.Errorf("poll: %w", err)
	}
	if k.woken {
		var count [8]byte
		_, _ = unix.Read(k.event, count[:]) // resets the counter
	}
	return nil
}

// ready is called by the runtime's poller; false makes the poller wait.
func (k *kernelTimer) ready(ep uintptr) bool {
	var found [2]unix.EpollEvent
	n, err := unix.EpollWait(int(ep), found[:], 0)
	for _, e := range found[:max(n, 0)] {
		k.woken = k.woken || int(e.Fd) == k.event
	}
	return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
}

// wake adds one to the eventfd. It fails only on overflow, after 2^64 unread wake-ups, when the timer is awake anyway.
func (k *kernelTimer) wake() {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.event < 0 {
		return
	}
	one := [8]byte{7: 1}
	one[0] = 1 // non-zero in either byte order
	_, _ = unix.Write(k.event, one[:])
}

// runtimeBase and kernelBase relate the runtime's monotonic clock to the kernel's. Both are set once. The runtime reads
// CLOCK_MONOTONIC through the vDSO in some 40 ns; clock_gettime from here would need a system call.
var (
	runtimeBase = time.Now()
	kernelBase  = monotonicAt(runtimeBase)
)

// Now is CLOCK_MONOTONIC (clock_gettime(2)): the time since an arbitrary start, usually the boot, unaffected by steps
// of the real-time clock. It is above zero. If the kernel's clock cannot be read, it is the time since the program's
// start. The absolute value has an error of the few ten nanoseconds between the two readings at the start; differences
// are exact.
func Now() time.Duration { return kernelBase + time.Since(runtimeBase) }

// monotonicAt is the CLOCK_MONOTONIC time at t, a reading of the runtime's clock. Of a few bracketed readings the one
// with the shortest bracket is taken, so that a preemption in between does not add an offset.
func monotonicAt(t time.Time) time.Duration {
	var best, width time.Duration
	for i := range 8 {
		before := time.Since(t)
		var ts unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
			return time.Second
		}
		after := time.Since(t)
		if i == 0 || after-before < width {
			width = after - before
			best = time.Duration(ts.Nano()) - before - width/2
		}
	}
	return best
}
