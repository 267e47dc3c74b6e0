// Package link keeps load tests of one link apart: a Table lets one at a time onto each, and
// knows the quota of a day that its link has.
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

	"oneway.example/exporter/quota"
)

// Options describe one link: what load tests share and must not fill at once.
type Options struct {
	// Name is unique and not empty.
	Name string
	// QuotaBytes is how many IP bytes load tests may move over the link each
	// local day, both directions; 0: as many as they like.
	QuotaBytes int64
}

// Table lets one load test at a time onto each link, first come first served. A name that nobody
// has configured is a link without a quota. All methods are safe for concurrent use. Make one
// with NewTable.
//
// A link is held on this host only. Whoever needs the remote end's link too must not
// hold the local one while it waits for that: two hosts that test each other would
// wait for each other.
type Table struct {
	quota *quota.Store

	mu    sync.Mutex
	links map[string]*link
}

// link is one link's state of now; what it has used is in the store.
type link struct {
	configured bool
	limit      int64               // 0: none
	turn       *semaphore.Weighted // of one; who came first is served first
	users      int                 // who hold it or wait for it
	holder     string
	since      time.Time // zero: nobody holds it
}

// NewTable makes a table without links, whose quotas are kept by a store; nil: by one of its
// own, without a file.
func NewTable(store *quota.Store) *Table {
	if store == nil {
		store = quota.New(quota.Options{})
	}
	return &Table{quota: store, links: map[string]*link{}}
}

// SetLinks puts other links and quotas in force, as a reload does. What has been
// used, is set aside, held or waited for stays so. On an error nothing changes.
func (t *Table) SetLinks(options []Options) error {
	limits := make(map[string]int64, len(options))
	for _, o := range options {
		switch _, twice := limits[o.Name]; {
		case o.Name == "":
			return errors.New("link: a link has no name")
		case twice:
			return fmt.Errorf("link: link %s is given twice; names must differ", o.Name)
		case o.QuotaBytes < 0:
			return fmt.Errorf("link: link %s has a quota of %d; it must not be negative", o.Name, o.QuotaBytes)
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
		t.forget(name)
	}
	return nil
}

// link returns a link's state; mu is held.
func (t *Table) link(name string) *link {
	k := t.links[name]
	if k == nil {
		k = &link{turn: semaphore.NewWeighted(1)}
		t.links[name] = k
	}
	return k
}

// forget drops the state of a link that nobody has configured or uses, so that
// names do not pile up; mu is held.
func (t *Table) forget(name string) {
	if k := t.links[name]; k != nil && !k.configured && k.users == 0 {
		delete(t.links, name)
	}
}

// Acquire waits until link is free and takes it for who, a name for messages. Who
// came first is served first. release gives the link back; calling it again does
// nothing. The error is ctx's, wrapped.
func (t *Table) Acquire(ctx context.Context, link, who string) (release func(), err error) {
	k := t.enter(link)
	if k.turn.Acquire(ctx, 1) != nil {
		t.leave(link)
		return nil, fmt.Errorf("link: waiting for link %s: %w", link, context.Cause(ctx))
	}
	return t.hold(k, link, who), nil
}

// TryAcquire takes link for who if nobody has it or waits for it.
func (t *Table) TryAcquire(link, who string) (release func(), ok bool) {
	k := t.enter(link)
	if !k.turn.TryAcquire(1) {
		t.leave(link)
		return nil, false
	}
	return t.hold(k, link, who), true
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
	t.forget(name)
}

// hold notes who holds a link, until release.
func (t *Table) hold(k *link, name, who string) (release func()) {
	note := func(who string, since time.Time) {
		t.mu.Lock()
		defer t.mu.Unlock()
		k.holder, k.since = who, since
	}
	note(who, time.Now())
	return sync.OnceFunc(func() {
		note("", time.Time{})
		k.turn.Release(1)
		t.leave(name)
	})
}

// Holder says who has link and since when; ok is false if nobody has.
func (t *Table) Holder(link string) (who string, since time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.links[link]
	if k == nil || k.since.IsZero() {
		return "", time.Time{}, false
	}
	return k.holder, k.since, true
}

// Usage says what has been used of a link today, in IP bytes.
func (t *Table) Usage(link string) quota.Usage { return t.quota.Usage(link, t.limit(link)) }

// Reserve sets bytes of a link's quota aside, as quota.Store.Reserve does.
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

// Each calls f for every link that is configured, held or has been used today, by name.
// f may call the Table.
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
