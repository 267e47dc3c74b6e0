// Package sched says when things are done. Its Pacer fires tasks at set times of the
// monotonic clock, all of them in one goroutine.
//
// A Go timer wakes up to a millisecond late, because the runtime's poller rounds
// to milliseconds (measured: 0.6 ms median, 1.1 ms p99). An absolute timerfd,
// which has no slack, is late by tens of microseconds even though the same poller
// waits for it, and one goroutine serves thousands of sessions.
//
// The package knows times and tasks, not what the tasks do.
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

// Stop is what a Task returns to be removed.
const Stop time.Duration = 0

// Task is something to be done at set times.
type Task interface {
	// Fire does it. due is when it was wanted and now when it came about, both
	// of the clock of Now; now-due is the lateness, never negative. It returns
	// the next time, or Stop (any time not above zero) to be removed.
	//
	// Fire runs on the pacer's thread and delays every other task: it must not
	// block. A returned time that has passed is fired in the next round, at
	// once; whether to catch up or to skip is the task's decision (see Skip). A
	// task that always returns a past time keeps the thread busy.
	Fire(due, now time.Duration) (next time.Duration)
}

// TaskFunc makes a Task of a function.
type TaskFunc func(due, now time.Duration) time.Duration

// Fire calls f.
func (f TaskFunc) Fire(due, now time.Duration) time.Duration { return f(due, now) }

// Pacer fires tasks. Its methods are safe for concurrent use, also from inside
// Fire. Make one with NewPacer.
type Pacer struct {
	timer timer

	mu       sync.Mutex
	idle     sync.Cond // signaled when what was running has returned
	queue    queue
	flushers []*flusher
	// running is the *entry or *flusher whose function runs now, or nil.
	running any
	thread  int           // the thread of the round under way, or of the last; 0: none
	armed   time.Duration // what the thread sleeps for; forever: no task
	asleep  bool

	ready []*entry // scratch of Run
	flush []*flusher
}

// forever is the time of a task that never comes.
const forever = time.Duration(1<<63 - 1)

type flusher struct {
	f       func()
	removed bool
}

// timer is what a Pacer sleeps on; a fake one drives the tests.
type timer interface {
	now() time.Duration
	// wait returns at the given time or as soon as wake has been called since
	// the last wait; spurious returns are allowed. forever: only by wake.
	wait(until time.Duration) error
	// wake may be called from any goroutine.
	wake()
	// leave ends it.
	leave()
}

// NewPacer makes a pacer; nothing fires until Run. It fails when the kernel
// refuses a timer (too many open files). Every pacer made must be Run, if only
// with an ended context: that is what frees the kernel's timer.
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

// sleep waits for the earliest task.
func (p *Pacer) sleep() error {
	p.mu.Lock()
	p.armed = forever
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

// round fires everything that is due now, then the flushers. Tasks that come
// due meanwhile, or want to be fired again at once, wait for the next round:
// the flushers are never starved. It reports whether anything was due.
func (p *Pacer) round() bool {
	now := p.timer.now()
	p.mu.Lock()
	for p.queue.len() > 0 && p.queue.first() <= now {
		p.ready = append(p.ready, p.queue.pop())
	}
	due := len(p.ready) > 0
	if due {
		// For the round only: a goroutine that sleeps locked to its thread costs a
		// hand-over from the thread that the poller woke up.
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

// fire calls one task. Called and returns with the mutex held, let go in between.
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

// Add plans t for the time first; a time that has passed means at once. remove
// takes it out again: when it returns, Fire is not running and will not run
// again. Called from inside a Fire or a flusher it does not wait for the one it
// was called from. It may be called more than once. Do not hold a lock over
// remove that Fire takes.
func (p *Pacer) Add(t Task, first time.Duration) (remove func()) {
	e := &entry{task: t, due: first, index: absent}
	p.mu.Lock()
	p.queue.push(e)
	early := p.asleep && first < p.armed
	if early {
		p.armed = first // one wake-up is enough for any number of Adds
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

// AddFlusher has f called on the pacer's thread after all due tasks of a
// wake-up have fired, and not otherwise: what the tasks gathered is sent there
// in one go. Flushers are called in the order they were added. remove is like
// that of Add.
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

// await returns when what is not running, unless the caller is what.
func (p *Pacer) await(what any) {
	if p.running != what || p.thread == unix.Gettid() {
		return
	}
	for p.running == what {
		p.idle.Wait()
	}
}

// entry is one task's place in the plan. All fields but task are guarded by the
// pacer's mutex.
type entry struct {
	task    Task
	due     time.Duration
	index   int // in the heap; absent if it is not there
	removed bool
}

const absent = -1

// queue is a heap of entries, the earliest first. It has four children a node:
// half as deep as a binary heap, and the four times that are compared lie in
// one cache line, because each slot carries its time.
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
