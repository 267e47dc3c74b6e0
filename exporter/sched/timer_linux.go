package sched

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// kernelTimer sleeps on a timerfd, set to an absolute time of CLOCK_MONOTONIC
// (timerfd_create(2)), and an eventfd that others wake it with.
type kernelTimer struct {
	timer int

	mu    sync.RWMutex // over the eventfd's closing
	event int          // -1: closed
}

func newTimer() (timer, error) {
	t, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("timerfd_create: %w", err)
	}
	e, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), unix.Close(t))
	}
	return &kernelTimer{timer: t, event: e}, nil
}

func (k *kernelTimer) now() time.Duration { return Now() }

// enter locks the thread and takes the slack off its timers: by default the
// kernel may fire them 50 us late to save wake-ups (prctl(2), PR_SET_TIMERSLACK).
func (k *kernelTimer) enter() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_TIMERSLACK): %w", err)
	}
	return nil
}

// leave gives the thread its default slack back, since the runtime goes on
// using it.
func (k *kernelTimer) leave() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // 0 asks for the default
	runtime.UnlockOSThread()
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = unix.Close(k.event)
	_ = unix.Close(k.timer)
	k.event = -1
}

func (k *kernelTimer) wait(until time.Duration) error {
	var spec unix.ItimerSpec // zero: disarmed
	if until != forever {
		// Zero would disarm it; a time in the past fires at once.
		spec.Value = unix.NsecToTimespec(int64(max(until, 1)))
	}
	// Setting the timer also clears an expiry that nobody has read.
	if err := unix.TimerfdSettime(k.timer, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		return fmt.Errorf("timerfd_settime: %w", err)
	}
	fds := [2]unix.PollFd{{Fd: fdOf(k.timer), Events: unix.POLLIN}, {Fd: fdOf(k.event), Events: unix.POLLIN}}
	if _, err := unix.Ppoll(fds[:], nil, nil); err != nil {
		if errors.Is(err, unix.EINTR) {
			return nil // a signal: the pacer looks again and comes back
		}
		return fmt.Errorf("ppoll: %w", err)
	}
	if fds[1].Revents != 0 {
		var count [8]byte
		_, _ = unix.Read(k.event, count[:]) // only empties it
	}
	return nil
}

// wake adds one to the eventfd. It cannot fail but by an overflow, which needs
// 2^64 wake-ups unread and would be one too.
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

func fdOf(fd int) int32 { return int32(min(fd, math.MaxInt32)) }

// thread tells threads apart: the pacer's is locked to its goroutine.
type thread struct{ id int }

func currentThread() thread { return thread{unix.Gettid()} }

func (t thread) isCurrent() bool { return t.id != 0 && t.id == unix.Gettid() }
