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

// Within is u as it is under another limit; 0: none.
func (u Usage) Within(limit int64) Usage {
	u.Limit, u.Left = limit, math.MaxInt64
	if limit > 0 {
		u.Left = max(0, limit-add(u.Used, u.Reserved))
	}
	return u
}

// UnsavedError says that what a run would use cannot be saved, so that after a restart the
// budget would not know of it; or that it is not known what was used before.
type UnsavedError struct {
	Link string
	// Err is what the state file's reading or writing has met, or how it was damaged.
	Err error
}

// Error says what is to be mended.
func (e *UnsavedError) Error() string {
	return fmt.Sprintf("sched: the data budget of link %s cannot be saved, or is not known: %v; the state file must be readable, writable and whole", e.Link, e.Err)
}

// Unwrap is the cause.
func (e *UnsavedError) Unwrap() error { return e.Err }

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
	u, limit := Usage{Used: l.today().Used[name]}, int64(0)
	if k := l.links[name]; k != nil {
		limit, u.Reserved = k.limit, k.reserved
	}
	return u.Within(limit)
}

// add is a sum that stops at the largest number.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Reserve sets bytes of link's budget aside, the most that a run can move, before
// it begins. The error is a *BudgetError if they are not left, and an *UnsavedError if
// the link has a budget and the state file cannot be written. Every reservation
// must be settled. Until then it counts as used in the state file: of a run that a
// crash has cut nobody knows what it has moved.
func (l *Links) Reserve(link string, bytes int64) (*Reservation, error) {
	return l.ReserveWithin(link, l.Usage(link).Limit, bytes)
}

// ReserveWithin is Reserve under a limit that the caller knows; 0: none.
func (l *Links) ReserveWithin(link string, limit, bytes int64) (*Reservation, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("sched: %d octets of link %s cannot be set aside; it must not be negative", bytes, link)
	}
	if limit > 0 && l.Saved() != nil {
		if err := l.Save(); err != nil { // what was used may not even be known
			return nil, &UnsavedError{Link: link, Err: err}
		}
	}
	l.mu.Lock()
	if u := l.usage(link).Within(limit); bytes > u.Left {
		renewed := nextMidnight(l.now())
		l.mu.Unlock()
		return nil, &BudgetError{Link: link, Left: u.Left, Need: bytes, Renewed: renewed}
	}
	k := l.link(link)
	k.reserved = add(k.reserved, bytes)
	l.mu.Unlock()
	r := &Reservation{links: l, link: link, bytes: bytes}
	if err := l.Save(); err != nil && limit > 0 {
		r.end(0)
		return nil, &UnsavedError{Link: link, Err: err}
	}
	return r, nil
}

// Settle ends the reservation: used octets were moved in truth, which may be more
// than were set aside. They count for the day of settling: a run across midnight
// stays set aside in the new day until then, so that neither day's budget is
// overrun. Settling again does nothing, nor does settling nil.
func (r *Reservation) Settle(used int64) {
	if r != nil && r.end(used) {
		_ = r.links.Save() // what was set aside is saved already, and Saved tells
	}
}

// end counts it in memory; false: it has ended before.
func (r *Reservation) end(used int64) bool {
	l := r.links
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.done {
		return false
	}
	r.done = true
	today, k := l.today(), l.link(r.link)
	if used > 0 {
		today.Used[r.link] = add(today.Used[r.link], used)
	}
	k.reserved = max(0, k.reserved-r.bytes)
	l.forget(r.link)
	return true
}
