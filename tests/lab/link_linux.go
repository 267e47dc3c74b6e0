package lab

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// Waiting of the link's thread. A wake-up after a long sleep is late by up to
// 0.2 ms on a virtual machine (its processor was halted), one after a short sleep
// by 20..40 us. So it sleeps twice, and polls the clock for the rest.
const (
	// coarse is the time from the end of the long sleep to a departure.
	coarse = 250 * time.Microsecond
	// fine is the time from the end of the short sleep to a departure.
	fine = 50 * time.Microsecond
	// spinShare is the largest share of the time for polling the clock;
	// beyond it (dense departures) packets leave some 30 us late instead, and
	// the log shows it.
	spinShare  = 0.3
	spinCredit = 2 * time.Millisecond
	// lookEvery bounds the time that entries wait unread in the ring if the
	// delay permits: one wake-up for many packets.
	lookEvery = 2 * time.Millisecond
	// burst is the number of departures before the ring is read again.
	burst = 64
)

// link moves the frames of one direction: ring -> pipe -> send.
type link struct {
	in   *ring
	out  int // AF_PACKET socket at the other end, send only
	wake int // eventfd
	pipe *pipe
	next atomic.Pointer[Link]
	stop atomic.Bool
	done chan struct{}

	// seen counts received frames of any kind.
	seen atomic.Uint64
	// unstamped counts frames without a kernel timestamp of their entry.
	unstamped atomic.Uint64
	failure   atomic.Pointer[error]

	poll   []unix.PollFd
	credit time.Duration
	paid   instant.Time
}

// newLink must run inside the router's namespace.
func newLink(direction sample.Direction, from, to int, l Link, o *Options) (*link, error) {
	in, err := openRing(from)
	if err != nil {
		return nil, err
	}
	k := &link{in: in, out: -1, wake: -1, pipe: newPipe(direction, l, o), done: make(chan struct{})}
	k.out, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(k.out, &unix.SockaddrLinklayer{Ifindex: to})
	}
	if err == nil {
		k.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	}
	if err != nil {
		k.close()
		return nil, fmt.Errorf("lab: link sockets: %w", err)
	}
	k.poll = []unix.PollFd{{Fd: int32(k.wake), Events: unix.POLLIN}, {Fd: int32(in.fd), Events: unix.POLLIN}}
	return k, nil
}

func (k *link) close() {
	k.in.close()
	for _, fd := range []int{k.out, k.wake} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// halt ends run and waits for it.
func (k *link) halt() {
	k.stop.Store(true)
	_, _ = unix.Write(k.wake, []byte{1, 0, 0, 0, 0, 0, 0, 1})
	<-k.done
}

// run is the link's thread. It is never unlocked: with its scheduling class
// changed nothing else may run on it, and the runtime ends it.
func (k *link) run() {
	defer close(k.done)
	runtime.LockOSThread()
	raisePriority()
	for !k.stop.Load() {
		if l := k.next.Swap(nil); l != nil {
			k.pipe.set(*l)
		}
		if err := errors.Join(k.receive(), k.release()); err != nil {
			k.failure.CompareAndSwap(nil, &err)
		}
		if err := k.wait(); err != nil {
			k.failure.CompareAndSwap(nil, &err)
			return
		}
	}
}

// raisePriority requests the best priority that the kernel grants: real time, else a better
// niceness, else neither (as in a user namespace), and the log shows it. With
// four busy loops beside it on two processors, 99 % of the packets left within
// 50 us in real time, and within 3..200 ms with the niceness.
func raisePriority() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	err := unix.SchedSetAttr(0, &unix.SchedAttr{
		Size:     unix.SizeofSchedAttr,
		Policy:   unix.SCHED_FIFO,
		Flags:    unix.SCHED_FLAG_RESET_ON_FORK,
		Priority: 1,
	}, 0)
	if err != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20)
	}
}

// receive reads all frames of the ring.
func (k *link) receive() error {
	for {
		more, err := k.in.take(k.enter)
		if err != nil || !more {
			return err
		}
	}
}

func (k *link) enter(data []byte, entry instant.Time, status uint32) error {
	k.seen.Add(1)
	if status&unix.TP_STATUS_TS_SOFTWARE == 0 {
		k.unstamped.Add(1)
	}
	if status&unix.TP_STATUS_CSUMNOTREADY != 0 {
		return errors.New("lab: a frame came without its checksum: transmit offload is on")
	}
	if k.pipe.enter(data, entry) {
		return nil
	}
	return k.send(data)
}

func (k *link) send(data []byte) error {
	for {
		err := unix.Send(k.out, data, 0)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// release sends the due packets.
func (k *link) release() error {
	now := instant.Now()
	for range burst {
		p := k.pipe.pop(now)
		if p == nil {
			return nil
		}
		exit := Interval{After: now}
		if err := k.send(p.data); err != nil {
			k.pipe.left(p, Failed, Interval{}, Interval{})
			return fmt.Errorf("lab: send: %w", err)
		}
		now = instant.Now()
		exit.Before = now
		var dup Interval
		if p.copies > 0 {
			dup.After = now
			if err := k.send(p.data); err != nil {
				k.pipe.left(p, Failed, exit, Interval{})
				return fmt.Errorf("lab: send copy: %w", err)
			}
			now = instant.Now()
			dup.Before = now
		}
		k.pipe.left(p, Delivered, exit, dup)
	}
	return nil
}

// wait sleeps until the next departure, or a frame.
func (k *link) wait() error {
	due, some := k.pipe.next()
	if !some {
		return k.sleep(-1, true)
	}
	look := min(k.pipe.link.Delay/4, lookEvery)
	if look < coarse {
		look = 0
	}
	now := instant.Now()
	left := due.Sub(now)
	switch {
	case left <= 0:
		return nil
	case left > coarse && look > 0:
		return k.sleep(min(left-coarse, look), false)
	case left > coarse:
		return k.sleep(left-coarse, true)
	case left > fine:
		return k.sleep(left-fine, look == 0)
	case !k.maySpin(now, left):
		return k.sleep(left, look == 0)
	}
	for instant.Now() < due {
	}
	return nil
}

// maySpin accounts for the time of polling the clock.
func (k *link) maySpin(now instant.Time, d time.Duration) bool {
	k.credit = min(k.credit+time.Duration(spinShare*float64(now.Sub(k.paid))), spinCredit)
	k.paid = now
	if k.credit < d {
		return false
	}
	k.credit -= d
	return true
}

// sleep waits for d (below 0: without end); halt wakes it, and, if ring
// is set, a frame. ppoll's timeout is a high-resolution timer.
func (k *link) sleep(d time.Duration, ring bool) error {
	fds := k.poll
	if !ring {
		fds = fds[:1]
	}
	var timeout *unix.Timespec
	if d >= 0 {
		t := unix.NsecToTimespec(int64(d))
		timeout = &t
	}
	// A raw system call: the runtime does not know of it. In another one a thread of the runtime without priority may take over what belongs
	// to this thread. If this one wakes on the same processor just then, it waits in a loop for the other, which the kernel ends by its
	// limit for real time only: nothing else runs there for 0.95 s. The runtime's signal for preemption ends the call (EINTR).
	_, _, err := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(timeout)), 0, 0, 0)
	if err != 0 && err != unix.EINTR {
		return fmt.Errorf("lab: ppoll: %w", err)
	}
	return nil
}
