package sched

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// LinkOptions describe one link: what heavy tests share and must not fill at once.
type LinkOptions struct {
	// Name is unique and not empty.
	Name string
	// BudgetBytes is how many IP octets heavy tests may move over the link each
	// local day, both directions; 0: as many as they like.
	BudgetBytes int64
}

// LinksOptions are what Links are made of. The zero value is right: no link has a
// budget, nothing is kept.
type LinksOptions struct {
	Links []LinkOptions
	// StateFile keeps what each day has used across restarts; empty: not kept.
	StateFile string
	// Now is the real-time clock, in whose location days begin; nil: time.Now.
	Now func() time.Time
	// Log; nil: discarded.
	Log *slog.Logger
}

// Links lets one heavy test at a time onto each link, and keeps each link's data
// budget of a day. A name that nobody has configured is a link without a budget.
// All methods are safe for concurrent use. Make one with NewLinks.
//
// A link is held on this host only. Whoever needs the far end's link too must not
// hold the near one while it waits for that: two hosts that test each other would
// wait for each other.
type Links struct {
	now func() time.Time
	log *slog.Logger

	saving sync.Mutex // one writer of the file; taken before mu
	loaded bool       // what the file knew has been taken over; guarded by saving

	mu      sync.Mutex
	file    string
	unsaved error // why it was not written; nil: it was
	links   map[string]*link
	book    book
}

// link is one link's state of now; what it has used is in the book.
type link struct {
	configured bool
	limit      int64 // 0: none
	reserved   int64
	held       bool
	holder     string
	since      time.Time
	waiters    []*waiter // the first came first
}

// NewLinks makes links and reads the state file. An error says that the options
// make no sense. A state file that cannot be read or written is no error: it is logged,
// and no budget is given out until it can be. Nor is one that is damaged, an empty one too:
// it is kept under a name that the log tells, and no budget is given out until the next
// local midnight, or until that file is removed.
func NewLinks(o LinksOptions) (*Links, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := &Links{now: o.Now, log: o.Log, links: map[string]*link{}}
	if err := l.SetLinks(o.Links); err != nil {
		return nil, err
	}
	l.SetStateFile(o.StateFile)
	return l, nil
}

// SetLinks puts other links and budgets in force, as a reload does. What has been
// used, is set aside, held or waited for stays so. On an error nothing changes.
func (l *Links) SetLinks(options []LinkOptions) error {
	limits := make(map[string]int64, len(options))
	for _, o := range options {
		switch _, twice := limits[o.Name]; {
		case o.Name == "":
			return errors.New("sched: a link has no name")
		case twice:
			return fmt.Errorf("sched: link %s is given twice; names must differ", o.Name)
		case o.BudgetBytes < 0:
			return fmt.Errorf("sched: link %s has a budget of %d; it must not be negative", o.Name, o.BudgetBytes)
		}
		limits[o.Name] = o.BudgetBytes
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range limits {
		l.link(name)
	}
	for name, k := range l.links {
		k.limit, k.configured = limits[name], false
		if _, ok := limits[name]; ok {
			k.configured = true
		}
		l.forget(name)
	}
	return nil
}

// link returns a link's state; mu is held.
func (l *Links) link(name string) *link {
	k := l.links[name]
	if k == nil {
		k = &link{}
		l.links[name] = k
	}
	return k
}

// forget drops the state of a link that nobody has configured or uses, so that
// names do not pile up; mu is held.
func (l *Links) forget(name string) {
	if k := l.links[name]; k != nil && !k.configured && !k.held && k.reserved == 0 && len(k.waiters) == 0 {
		delete(l.links, name)
	}
}

// Each calls f for every link that is configured or has been used today, by name.
// f may call Links.
func (l *Links) Each(f func(name string, u Usage)) {
	l.mu.Lock()
	today := l.today()
	usages := make(map[string]Usage, len(l.links))
	for name := range l.links {
		usages[name] = l.usage(name)
	}
	for name := range today.Used {
		usages[name] = l.usage(name)
	}
	l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(usages)) {
		f(name, usages[name])
	}
}
