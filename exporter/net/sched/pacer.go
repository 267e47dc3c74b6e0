// Package sched schedules actions. Its Pacer fires tasks at set times of the monotonic clock, all of them in one
// goroutine.
//
// A Go timer wakes up to a millisecond late, because the runtime's poller rounds to milliseconds (measured: 0.6 ms
// median, 1.1 ms p99). An absolute timerfd, which has no slack, is late by tens of microseconds with the same poller,
// and one goroutine serves thousands of sessions.
//
// The package has no knowledge of what the tasks do.
package sched

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Stop is the return value of a Task that removes it.
const Stop time.Duration = 0

// Task is an action at set times.
type Task interface {
	// Fire runs the task. due is the scheduled time and now the actual time, both of the clock of Now; now-due is the
	// lateness, never negative. It returns the next time, or Stop (any time not above zero) to be removed.
	//
	// Fire runs on the pacer's thread and delays every other task: it must not block. A returned time in the past fires
	// in the next round, at once; the task decides whether to catch up or to skip (see Skip). A task that always
	// returns a past time keeps the thread busy.
	Fire(due, now time.Duration) (next time.Duration)
}

// TaskFunc is a function as a Task.
type TaskFunc func(due, now time.Duration) time.Duration

// Fire calls f.
func (f TaskFunc) Fire(due, now time.Duration) time.Duration { return f(due, now) }

// Pacer fires tasks. Its methods are safe for concurrent use, also from inside Fire. NewPacer makes one.
type Pacer struct {
	timer timer

	mu       sync.Mutex
	idle     sync.Cond // signaled when the running function has returned
	queue    queue
	flushers []*flusher
	// running is the *entry or *flusher whose function runs now, or nil.
	running any
	thread  int           // the thread of the current or last round; 0: none
	armed   time.Duration // when the sleep ends; never: no task
	asleep  bool

	ready []*entry // scratch of Run
	flush []*flusher
}

// never is the due time if there is no task.
const never = time.Duration(1<<63 - 1)

type flusher struct {
	f       func()
	removed bool
}

// timer is what a Pacer sleeps on; tests use a fake one.
type timer interface {
	now() time.Duration
	// wait returns at the given time or as soon as wake was called since the last wait; spurious returns are allowed.
	// never: only after wake.
	wait(until time.Duration) error
	// wake may be called from any goroutine.
	wake()
	// leave frees it.
	leave()
}

// NewPacer makes a pacer; nothing fires until Run. It fails when the kernel refuses a timer (too many open files).
// Every pacer must be Run, with an ended context if necessary: Run frees the kernel's timer.
func NewPacer() (*Pacer, error) {
	t, err := newTimer()
	if err != nil {
		return nil, fmt.Errorf("sched: %w", err)
	}
	return newPacer(t), nil
}

func newPacer(t timer) *Pacer {
	p := &Pacer{timer: t}
	p.idle.L = &p.mu
	return p
}

// Run fires tasks until ctx ends, then returns nil. It runs once. An error means that the kernel's timer failed.
func (p *Pacer) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.timer.wake)
	defer stop()
	defer p.end()
	for ctx.Err() == nil {
		if p.round() {
			continue
		}
		if err := p.sleep(); err != nil {
			return fmt.Errorf("sched: %w", err)
		}
	}
	return nil
}

func (p *Pacer) end() {
	p.mu.Lock()
	p.thread = 0
	p.mu.Unlock()
	p.timer.leave()
}

// sleep waits until the earliest task is due.
func (p *Pacer) sleep() error {
	p.mu.Lock()
	p.armed = never
	if p.queue.len() > 0 {
		p.armed = p.queue.first()
	}
	p.asleep = true
	until := p.armed
	p.mu.Unlock()
	err := p.timer.wait(until)
	p.mu.Lock()
	p.asleep = false
	p.mu.Unlock()
	return err
}

// round fires every task that is due now, then the flushers. Tasks that become due meanwhile, or return a past time,
// wait for the next round, so that the flushers always run. It reports whether a task was due.
func (p *Pacer) round() bool {
	now := p.timer.now()
	p.mu.Lock()
	for p.queue.len() > 0 && p.queue.first() <= now {
		p.ready = append(p.ready, p.queue.pop())
	}
	due := len(p.ready) > 0
	if due {
		// For the round only: if a goroutine sleeps while locked to its thread, the poller's thread has to hand over to
		// it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p.thread = unix.Gettid()
	}
	for _, e := range p.ready {
		p.fire(e)
	}
	clear(p.ready)
	p.ready = p.ready[:0]
	if due {
		p.runFlushers()
	}
	p.mu.Unlock()
	return due
}

// fire calls one task. The caller holds the mutex, which is unlocked during the call.
func (p *Pacer) fire(e *entry) {
	if e.removed {
		return
	}
	p.running = e
	p.mu.Unlock()
	next := e.task.Fire(e.due, p.timer.now())
	p.mu.Lock()
	p.settle()
	e.removed = e.removed || next <= 0
	if !e.removed {
		e.due = next
		p.queue.push(e)
	}
}

func (p *Pacer) runFlushers() {
	p.flush = append(p.flush[:0], p.flushers...)
	for _, f := range p.flush {
		if f.removed {
			continue
		}
		p.running = f
		p.mu.Unlock()
		f.f()
		p.mu.Lock()
		p.settle()
	}
	clear(p.flush)
}

func (p *Pacer) settle() {
	p.running = nil
	p.idle.Broadcast()
}

// Add schedules t for the time first; a past time means at once. remove removes it: when it returns, Fire is not
// running and will not run again. Called from inside a Fire or a flusher, remove does not wait for that function. It
// may be called more than once. The caller of remove must not hold a lock that Fire takes.
func (p *Pacer) Add(t Task, first time.Duration) (remove func()) {
	e := &entry{task: t, due: first, index: absent}
	p.mu.Lock()
	p.queue.push(e)
	early := p.asleep && first < p.armed
	if early {
		p.armed = first // one wake-up serves any number of Adds
	}
	p.mu.Unlock()
	if early {
		p.timer.wake()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		e.removed = true
		if e.index != absent {
			p.queue.remove(e)
		}
		p.await(e)
	}
}

// AddFlusher makes the pacer call f on its thread after all due tasks of a wake-up have fired, and only then: f sends
// what the tasks collected in one call. Flushers are called in the order of AddFlusher. remove is like that of Add.
func (p *Pacer) AddFlusher(f func()) (remove func()) {
	fl := &flusher{f: f}
	p.mu.Lock()
	p.flushers = append(p.flushers, fl)
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		fl.removed = true
		p.flushers = slices.DeleteFunc(p.flushers, func(o *flusher) bool { return o == fl })
		p.await(fl)
	}
}

// await returns when what is not running, unless what is the caller.
func (p *Pacer) await(what any) {
	if p.running != what || p.thread == unix.Gettid() {
		return
	}
	for p.running == what {
		p.idle.Wait()
	}
}

// entry is one scheduled task. All fields except task are guarded by the pacer's mutex.
type entry struct {
	task    Task
	due     time.Duration
	index   int // in the heap; absent if not in it
	removed bool
}

const absent = -1

// queue is a heap of entries, earliest first. It has four children per node: half the depth of a binary heap, and the
// four times to compare share a cache line, because each slot has its time.
type queue struct{ slots []slot }

type slot struct {
	due   time.Duration
	entry *entry
}

const children = 4

func (q *queue) len() int { return len(q.slots) }

// first is the earliest time; the queue must not be empty.
func (q *queue) first() time.Duration { return q.slots[0].due }

func (q *queue) push(e *entry) {
	q.slots = append(q.slots, slot{})
	q.up(len(q.slots)-1, slot{e.due, e})
}

func (q *queue) pop() *entry {
	e := q.slots[0].entry
	q.remove(e)
	return e
}

// remove takes e out; it must be in the queue.
func (q *queue) remove(e *entry) {
	i, last := e.index, len(q.slots)-1
	moved := q.slots[last]
	q.slots[last] = slot{}
	q.slots = q.slots[:last]
	e.index = absent
	if i == last {
		return
	}
	if i > 0 && moved.due < q.slots[(i-1)/children].due {
		q.up(i, moved)
	} else {
		q.down(i, moved)
	}
}

func (q *queue) up(i int, s slot) {
	for i > 0 {
		parent := (i - 1) / children
		if q.slots[parent].due <= s.due {
			break
		}
		q.place(i, q.slots[parent])
		i = parent
	}
	q.place(i, s)
}

func (q *queue) down(i int, s slot) {
	for {
		least := i*children + 1
		if least >= len(q.slots) {
			break
		}
		end := min(least+children, len(q.slots))
		for c := least + 1; c < end; c++ {
			if q.slots[c].due < q.slots[least].due {
				least = c
			}
		}
		if s.due <= q.slots[least].due {
			break
		}
		q.place(i, q.slots[least])
		i = least
	}
	q.place(i, s)
}

func (q *queue) place(i int, s slot) {
	q.slots[i] = s
	s.entry.index = i
}
