package sched

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// waiter waits for a link.
type waiter struct {
	who     string
	granted chan struct{} // closed with the link's mutex held
}

func (w *waiter) has() bool {
	select {
	case <-w.granted:
		return true
	default:
		return false
	}
}

// Acquire waits until link is free and takes it for who, a name for messages. Who
// came first is served first. release gives the link back; calling it again does
// nothing. The error is ctx's, wrapped.
func (l *Links) Acquire(ctx context.Context, link, who string) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("sched: link %s: %w", link, context.Cause(ctx))
	}
	l.mu.Lock()
	k := l.link(link)
	if !k.held {
		defer l.mu.Unlock()
		return l.take(link, who), nil
	}
	w := &waiter{who: who, granted: make(chan struct{})}
	k.waiters = append(k.waiters, w)
	l.mu.Unlock()
	select {
	case <-w.granted:
		return l.releaser(link), nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.has() { // both happened at once
		l.pass(link)
	} else {
		k.waiters = slices.DeleteFunc(k.waiters, func(other *waiter) bool { return other == w })
	}
	return nil, fmt.Errorf("sched: waiting for link %s: %w", link, context.Cause(ctx))
}

// TryAcquire takes link for who if nobody has it or waits for it.
func (l *Links) TryAcquire(link, who string) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.link(link); k.held {
		return nil, false
	}
	return l.take(link, who), true
}

// Holder says who has link and since when; ok is false if nobody has.
func (l *Links) Holder(link string) (who string, since time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.links[link]
	if k == nil || !k.held {
		return "", time.Time{}, false
	}
	return k.holder, k.since, true
}

// take makes who the holder; mu is held and the link is free.
func (l *Links) take(name, who string) (release func()) {
	k := l.link(name)
	k.held, k.holder, k.since = true, who, l.now()
	return l.releaser(name)
}

func (l *Links) releaser(name string) func() {
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pass(name)
	})
}

// pass gives the link to the one that has waited longest, at once, so that nobody
// comes in between; mu is held.
func (l *Links) pass(name string) {
	k := l.link(name)
	k.held, k.holder, k.since = false, "", time.Time{}
	if len(k.waiters) > 0 {
		w := k.waiters[0]
		k.waiters = slices.Delete(k.waiters, 0, 1)
		k.held, k.holder, k.since = true, w.who, l.now()
		close(w.granted)
	}
	l.forget(name)
}
