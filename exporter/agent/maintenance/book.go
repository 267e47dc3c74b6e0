package maintenance

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"
)

// MaxAdded is the most windows that operators can add to a running agent.
const MaxAdded = 500

// Options configure a Book. The zero value is valid.
type Options struct {
	// Now is the present time in the zone of the calendar; nil: time.Now.
	Now func() time.Time
	// Log receives log records; nil: they are discarded.
	Log *slog.Logger
}

// Book has the windows of an agent. Make one with New. Its methods are safe for concurrent use.
type Book struct {
	now func() time.Time
	log *slog.Logger

	mu         sync.Mutex // guards the fields below
	configured []Window
	added      []Window // those that are not over
	last       int      // the number of the last ID
	file       string   // of added; empty: none
	unread     error    // why the file could not be read; nil: it was
}

// New returns a book without windows.
func New(o Options) *Book {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Book{now: o.Now, log: o.Log}
}

// Put replaces the windows of the configuration, and the file of the added ones; an empty name: they are in memory only. The windows of
// another file replace the added ones, which go into it. An error of the file is logged, and Add returns it.
func (b *Book) Put(configured []Window, file string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.configured = slices.Clone(configured)
	if b.file == file {
		return
	}
	b.file, b.unread = file, nil
	if file == "" {
		return
	}
	known := b.added
	kept, last, err := read(file)
	if err != nil {
		b.unread = err
		b.log.Error("The maintenance windows of the state directory are not known; none can be added", "file", file, "err", err)
		return
	}
	b.last = max(b.last, last)
	b.added = kept
	for _, w := range known {
		if !slices.ContainsFunc(kept, func(one Window) bool { return one.ID == w.ID }) {
			b.added = append(b.added, w)
		}
	}
	b.forget()
	if len(known) > 0 {
		if err := b.save(b.added); err != nil {
			b.log.Error("The maintenance windows are not saved", "file", file, "err", err)
		}
	}
}

// forget removes the added windows that are over; mu must be held.
func (b *Book) forget() {
	now := b.now()
	b.added = slices.DeleteFunc(b.added, func(w Window) bool { return w.hasEnded(now) })
}

// save writes windows to the file, if there is one; mu must be held.
func (b *Book) save(added []Window) error {
	switch {
	case b.file == "":
		return nil
	case b.unread != nil:
		return b.unread
	}
	return write(b.file, added, b.last)
}

// NotFoundError is an ID that no added window has.
type NotFoundError struct {
	ID string
	// Known are the IDs of all added windows.
	Known []string
}

// Error names the IDs.
func (e *NotFoundError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("maintenance: there is no window %q: none was added to this agent; one of its configuration ends there, by a change and a reload", e.ID)
	}
	return fmt.Sprintf("maintenance: there is no window %q; those that were added are %v", e.ID, e.Known)
}

// Add adds a window, and returns it with its ID and, without From, from now on. After an error nothing is added. The error joins *FieldError for a wrong window.
func (b *Book) Add(w Window) (Window, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if w.From.IsZero() && len(w.Weekly) == 0 {
		w.From = now.Truncate(time.Second)
	}
	w.From, w.To = w.From.UTC(), w.To.UTC()
	err := w.Check()
	if err == nil && w.hasEnded(now) {
		err = wrong("to", "is %s, which is past", stamp(w.To.In(now.Location())))
	}
	if err != nil {
		return Window{}, err
	}
	b.forget()
	if len(b.added) >= MaxAdded {
		return Window{}, fmt.Errorf("maintenance: there are %d windows already, the most that can be added; end some of them", MaxAdded)
	}
	b.last++
	w.ID = "m" + strconv.Itoa(b.last)
	if err := b.save(append(slices.Clone(b.added), w)); err != nil {
		b.last--
		return Window{}, fmt.Errorf("maintenance: the window is not added, since it cannot be saved: %w", err)
	}
	b.added = append(b.added, w)
	return w, nil
}

// End removes an added window, and returns it. The error is a *NotFoundError for another ID.
func (b *Book) End(id string) (Window, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
	i := slices.IndexFunc(b.added, func(w Window) bool { return w.ID == id })
	if i < 0 {
		e := &NotFoundError{ID: id}
		for _, w := range b.added {
			e.Known = append(e.Known, w.ID)
		}
		return Window{}, e
	}
	w, rest := b.added[i], slices.Delete(slices.Clone(b.added), i, i+1)
	err := b.save(rest)
	if err != nil && !errors.Is(err, b.unread) {
		return Window{}, fmt.Errorf("maintenance: the window goes on, since its end cannot be saved: %w", err)
	}
	b.added = rest
	return w, nil
}

// Entry is a window with what it is now.
type Entry struct {
	Window
	// Open: it is open now, until Until. Next is when it opens next; zero: never, or it is open.
	Open  bool      `json:"open"`
	Until time.Time `json:"until,omitzero"`
	Next  time.Time `json:"next,omitzero"`
	// Configured: it is of the configuration.
	Configured bool `json:"configured"`
}

// List returns all windows that are open or will be: the configured ones first, in the order of the configuration.
func (b *Book) List() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
	now := b.now()
	all := []Entry{}
	for i, w := range slices.Concat(b.configured, b.added) {
		e := Entry{Window: w, Configured: i < len(b.configured)}
		if w.hasEnded(now) {
			continue
		}
		if e.Until, e.Open = w.Open(now); !e.Open {
			e.Next = w.Next(now)
		}
		e.Until, e.Next = utc(e.Until), utc(e.Next)
		all = append(all, e)
	}
	return all
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// State is the maintenance of a path, or of the agent.
type State struct {
	// Until is the planned end of the last window that is open, Reason the reason of that one.
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// Now are the windows that are open at one time.
type Now struct{ open []Entry }

// Now returns the windows that are open now.
func (b *Book) Now() Now {
	var n Now
	for _, e := range b.List() {
		if e.Open {
			n.open = append(n.open, e)
		}
	}
	return n
}

// None reports whether no window is open.
func (n Now) None() bool { return len(n.open) == 0 }

// OfPath is the maintenance of a path; nil: there is none.
func (n Now) OfPath(p Path) *State { return n.last(func(s *Selection) bool { return s.Selects(p) }) }

// OfAgent is the maintenance of the agent itself; nil: there is none.
func (n Now) OfAgent() *State { return n.last(func(s *Selection) bool { return s.All }) }

func (n Now) last(selects func(*Selection) bool) (s *State) {
	for i := range n.open {
		e := &n.open[i]
		if selects(&e.Selection) && (s == nil || e.Until.After(s.Until)) {
			s = &State{e.Until, e.Reason}
		}
	}
	return s
}

// Stored reports whether added windows are in a file, so that they survive a restart.
func (b *Book) Stored() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.file != "" && b.unread == nil
}
