package pulse

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"oneway.example/exporter/core/ctxtime"
)

// Settings are those of the simulated pulse. The zero value pulses at each whole second of CLOCK_REALTIME.
type Settings struct {
	// Stopped: there are no pulses.
	Stopped bool
	// Offset is that of a pulse from the whole second, less than 400 ms.
	Offset time.Duration
	// Jitter is the standard deviation of a pulse from its offset. A pulse is at most maxJitter away.
	Jitter time.Duration
	// Skip is the share of pulses that do not occur, 0 to 1.
	Skip float64
}

// The largest offset and jitter, so that pulses keep their order.
const (
	maxOffset = 400 * time.Millisecond
	maxJitter = 90 * time.Millisecond
)

// check checks the ranges.
func (s *Settings) check() error {
	switch {
	case s.Offset.Abs() >= maxOffset:
		return fmt.Errorf("pulse: offset is %v, want less than %v", s.Offset, maxOffset)
	case s.Jitter < 0 || s.Jitter > maxJitter:
		return fmt.Errorf("pulse: jitter is %v, want 0s to %v", s.Jitter, maxJitter)
	case s.Skip < 0 || s.Skip > 1:
		return fmt.Errorf("pulse: skip is %v, want 0 to 1", s.Skip)
	}
	return nil
}

// edge is an assert event.
type edge struct {
	sequence uint32
	at       time.Time
}

// line makes the pulses.
type line struct {
	mu       sync.Mutex
	settings Settings
	random   *rand.Rand
	last     edge
	// next is closed by the next pulse.
	next chan struct{}
}

func newLine(s Settings, seed uint64) (*line, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return &line{settings: s, random: rand.New(rand.NewPCG(seed, 0)), next: make(chan struct{})}, nil
}

// set changes the settings from the next pulse on.
func (l *line) set(s Settings) error {
	if err := s.check(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settings = s
	return nil
}

// state is the settings and the last pulse.
func (l *line) state() (Settings, edge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settings, l.last
}

// run makes pulses until ctx ends.
func (l *line) run(ctx context.Context) {
	for {
		at, occurs := l.plan(time.Now())
		if !ctxtime.Sleep(ctx, time.Until(at)) { // the time of the pulse
			return
		}
		if occurs {
			l.assert(at)
		}
	}
}

// plan is the time of the next pulse, and whether it will occur.
func (l *line) plan(now time.Time) (at time.Time, occurs bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	away := time.Duration(l.random.NormFloat64() * float64(l.settings.Jitter))
	away = l.settings.Offset + max(-maxJitter, min(maxJitter, away))
	// The nearest second is that of the last pulse.
	second := now.Add(-l.settings.Offset).Round(time.Second).Add(time.Second)
	return second.Add(away), l.random.Float64() >= l.settings.Skip
}

// assert is one pulse, unless the line is stopped.
func (l *line) assert(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.settings.Stopped {
		return
	}
	l.last = edge{l.last.sequence + 1, at}
	close(l.next)
	l.next = make(chan struct{})
}

var (
	errTimeout     = errors.New("pulse: no pulse within the timeout")
	errInterrupted = errors.New("pulse: the caller no longer waits")
)

// checkEvery is the time between two checks that a caller still waits.
const checkEvery = 250 * time.Millisecond

// wait waits for the next pulse, at most for timeout; zero: without end. It ends early when waiting is false.
func (l *line) wait(timeout time.Duration, waiting func() bool) error {
	l.mu.Lock()
	next := l.next
	l.mu.Unlock()
	var expired <-chan time.Time
	if timeout > 0 {
		expired = time.After(timeout)
	}
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for {
		select {
		case <-next:
			return nil
		case <-expired:
			return errTimeout
		case <-check.C:
			if !waiting() {
				return errInterrupted
			}
		}
	}
}
