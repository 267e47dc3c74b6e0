// Package link keeps load tests on one link apart: a Table admits one test at a time to each link,
// has the daily quota of each, and knows which links a test fills.
package link

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"oneway.example/exporter/probe/quota"
)

// MaxHold is the longest time that a test holds a link; a size sweep of 100 cells takes an hour.
const MaxHold = 4 * time.Hour

// Options configure one link: what load tests share and must not fill at once.
type Options struct {
	// Name is unique and not empty.
	Name string
	// QuotaBytes is the most IP bytes that load tests may send over the link per local day, both
	// directions together; 0: no limit.
	QuotaBytes int64
}

// Table admits one load test at a time to each link, in the order of requests. A name that is not
// configured is a link without a quota. All methods are safe for concurrent use. Make one with
// NewTable.
//
// A Table has the links of this host only. Release the local link before waiting for the remote end's: two
// hosts that test each other would otherwise deadlock.
type Table struct {
	quota *quota.Store

	mu    sync.Mutex
	links map[string]*link
	uses  map[Use]*use
}

// link is the present state of one link; the store has its usage.
type link struct {
	configured bool
	limit      int64               // 0: none
	turn       *semaphore.Weighted // capacity 1, first in, first out
	users      int                 // holders and waiters
	holder     string
	since      time.Time // zero: not held
}

// NewTable makes an empty table. A nil store: a new one without a file.
func NewTable(store *quota.Store) *Table {
	if store == nil {
		store = quota.New(quota.Options{})
	}
	return &Table{quota: store, links: map[string]*link{}, uses: map[Use]*use{}}
}

// SetLinks sets the configured links, as a reload does. Usage, reservations, holders and waiters
// are kept. On an error nothing changes.
func (t *Table) SetLinks(options []Options) error {
	limits := make(map[string]int64, len(options))
	for _, o := range options {
		switch _, twice := limits[o.Name]; {
		case o.Name == "":
			return errors.New("link: a link has no name")
		case twice:
			return fmt.Errorf("link: link %s is given twice; names must be unique", o.Name)
		case o.QuotaBytes < 0:
			return fmt.Errorf("link: link %s: quota is %d bytes; it must not be negative", o.Name, o.QuotaBytes)
		}
		limits[o.Name] = o.QuotaBytes
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range limits {
		t.link(name)
	}
	for name, k := range t.links {
		k.limit, k.configured = limits[name]
		t.removeUnused(name)
	}
	return nil
}

// link returns the state of a link; mu must be held.
func (t *Table) link(name string) *link {
	k := t.links[name]
	if k == nil {
		k = &link{turn: semaphore.NewWeighted(1)}
		t.links[name] = k
	}
	return k
}

// removeUnused deletes the state of a link that is neither configured nor in use, so that memory is
// bounded; mu must be held.
func (t *Table) removeUnused(name string) {
	if k := t.links[name]; k != nil && !k.configured && k.users == 0 {
		delete(t.links, name)
	}
}

// BusyError reports that a test waited for a link in vain.
type BusyError struct {
	Link   string
	Waited time.Duration
	// Holder is who has the link, for messages.
	Holder string
}

// Error names the holder and the time waited.
func (e *BusyError) Error() string {
	return fmt.Sprintf("link %s was not free in %v, it is held by %s", e.Link, e.Waited.Round(100*time.Millisecond), e.Holder)
}

// Acquire waits until link is free and takes it for holder, a name for messages. Waiters are served
// in the order of their calls. release may be called repeatedly. The error wraps the cause of ctx.
func (t *Table) Acquire(ctx context.Context, link, holder string) (release func(), err error) {
	k := t.enter(link)
	if k.turn.Acquire(ctx, 1) != nil {
		t.leave(link)
		return nil, fmt.Errorf("link: waiting for link %s: %w", link, context.Cause(ctx))
	}
	return t.setHolder(k, link, holder), nil
}

// TryAcquire takes link for holder if it has neither a holder nor waiters.
func (t *Table) TryAcquire(link, holder string) (release func(), ok bool) {
	k := t.enter(link)
	if !k.turn.TryAcquire(1) {
		t.leave(link)
		return nil, false
	}
	return t.setHolder(k, link, holder), true
}

func (t *Table) enter(name string) *link {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.link(name)
	k.users++
	return k
}

func (t *Table) leave(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links[name].users--
	t.removeUnused(name)
}

// setHolder records the holder of a link until release.
func (t *Table) setHolder(k *link, name, holder string) (release func()) {
	note := func(holder string, since time.Time) {
		t.mu.Lock()
		defer t.mu.Unlock()
		k.holder, k.since = holder, since
	}
	note(holder, time.Now())
	return sync.OnceFunc(func() {
		note("", time.Time{})
		k.turn.Release(1)
		t.leave(name)
	})
}

// Holder returns the holder of link, and since when; ok is false if there is none.
func (t *Table) Holder(link string) (holder string, since time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.links[link]
	if k == nil || k.since.IsZero() {
		return "", time.Time{}, false
	}
	return k.holder, k.since, true
}

// Usage returns today's usage of a link, in IP bytes.
func (t *Table) Usage(link string) quota.Usage { return t.quota.Usage(link, t.limit(link)) }

// Reserve reserves bytes of a link's quota; see quota.Store.Reserve.
func (t *Table) Reserve(link string, bytes int64) (*quota.Reservation, error) {
	return t.quota.Reserve(link, t.limit(link), bytes)
}

func (t *Table) limit(name string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.links[name]; k != nil {
		return k.limit
	}
	return 0
}

// Each calls f, in the order of names, for every link that is configured, in use or has been used
// today. f may call the Table.
func (t *Table) Each(f func(name string, u quota.Usage)) {
	names := t.quota.Names()
	t.mu.Lock()
	names = slices.AppendSeq(names, maps.Keys(t.links))
	t.mu.Unlock()
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		f(name, t.Usage(name))
	}
}
