package sched

import (
	"fmt"
	"math"
	"time"
)

// Usage is what heavy tests have to do with a link's data of today, in IP octets.
type Usage struct {
	// Limit is the budget of a day; 0: none.
	Limit int64
	// Used has been moved since local midnight, Reserved is set aside for the runs
	// under way.
	Used, Reserved int64
	// Left is Limit without Used and Reserved, at least 0; math.MaxInt64 without a
	// limit.
	Left int64
}

// BudgetError says that a link's budget does not suffice today.
type BudgetError struct {
	Link string
	// Left is what is left, Need what was asked for, in IP octets.
	Left, Need int64
	// Renewed is the next local midnight.
	Renewed time.Time
}

// Error says what is missing, and when there is more.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("sched: the data budget of link %s has %d octets left, %d are needed; it is renewed at %s",
		e.Link, e.Left, e.Need, e.Renewed.Format(time.RFC3339))
}

// Reservation is a part of a budget that is set aside for one run.
type Reservation struct {
	links *Links
	link  string
	bytes int64 // what is still set aside; guarded by links.mu
	done  bool  // the same
}

// Usage says what has been used of link today.
func (l *Links) Usage(link string) Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.usage(link)
}

// usage of a link; mu is held.
func (l *Links) usage(name string) Usage {
	u := Usage{Used: l.today().Used[name], Left: math.MaxInt64}
	if k := l.links[name]; k != nil {
		u.Limit, u.Reserved = k.limit, k.reserved
	}
	if u.Limit > 0 {
		u.Left = max(0, u.Limit-add(u.Used, u.Reserved))
	}
	return u
}

// add is a sum that stops at the largest number.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Reserve sets bytes of link's budget aside, the most that a run can move, before
// it begins. The error is a *BudgetError if they are not left. Every reservation
// must be settled. Until then it counts as used in the state file: of a run that a
// crash has cut nobody knows what it has moved.
func (l *Links) Reserve(link string, bytes int64) (*Reservation, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("sched: %d octets of link %s cannot be set aside; it must not be negative", bytes, link)
	}
	l.mu.Lock()
	u := l.usage(link)
	if u.Limit > 0 && bytes > u.Left {
		renewed := nextMidnight(l.now())
		l.mu.Unlock()
		return nil, &BudgetError{Link: link, Left: u.Left, Need: bytes, Renewed: renewed}
	}
	k := l.link(link)
	k.reserved = add(k.reserved, bytes)
	l.mu.Unlock()
	l.save()
	return &Reservation{links: l, link: link, bytes: bytes}, nil
}

// Settle ends the reservation: used octets were moved in truth, which may be more
// than were set aside. They count for the day of settling: a run across midnight
// stays set aside in the new day until then, so that neither day's budget is
// overrun. Settling again does nothing, nor does settling nil.
func (r *Reservation) Settle(used int64) {
	if r == nil {
		return
	}
	l := r.links
	l.mu.Lock()
	if r.done {
		l.mu.Unlock()
		return
	}
	r.done = true
	today, k := l.today(), l.link(r.link)
	if used > 0 {
		today.Used[r.link] = add(today.Used[r.link], used)
	}
	k.reserved = max(0, k.reserved-r.bytes)
	l.forget(r.link)
	l.mu.Unlock()
	l.save()
}
