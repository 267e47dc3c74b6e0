package saturate

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/sample"
)

// Kind is the heavy test "saturate". Make it with NewKind.
type Kind struct {
	opts       Options
	directions []sample.Direction
}

// NewKind checks the options.
func NewKind(shared heavy.Options, own Options) (*Kind, error) {
	if err := own.check(&shared); err != nil {
		return nil, err
	}
	k := &Kind{opts: own}
	for _, d := range sample.Directions() {
		for _, word := range shared.Directions {
			if word == d.String() {
				k.directions = append(k.directions, d)
			}
		}
	}
	return k, nil
}

// Kind is control.Saturate.
func (*Kind) Kind() control.Kind { return control.Saturate }

// Bytes is the most IP octets that a run sends.
func (k *Kind) Bytes() (n int64) {
	for _, d := range k.directions {
		n += k.bytes(d)
	}
	return n
}

func (k *Kind) bytes(d sample.Direction) int64 {
	size := float64(k.opts.PacketBytes)
	of := func(rate float64, t time.Duration) float64 { return rate*t.Seconds() + size }
	switch k.opts.Mode {
	case ModeSweep:
		total := 0.0
		for _, s := range k.steps(d) {
			total += of(s.rate, s.duration)
		}
		return int64(total)
	case ModeSearch:
		return int64(of(float64(k.opts.Rate.Of(d)), k.opts.Duration))
	default:
		n, _ := k.opts.idle(d)
		return int64(of(float64(k.opts.Rate.Of(d)), k.opts.Duration) + 2*size*float64(n))
	}
}

// Duration is how long all transfers take as planned.
func (k *Kind) Duration() (t time.Duration) {
	for _, d := range k.directions {
		switch k.opts.Mode {
		case ModeSweep:
			for _, s := range k.steps(d) {
				t += s.duration
			}
		case ModeSearch:
			t += k.opts.Duration
		default:
			one := k.opts.idleTime(d) + k.opts.Duration
			if k.opts.Together {
				t = max(t, one)
				continue
			}
			t += one
		}
	}
	return t
}

type step struct {
	rate     float64
	duration time.Duration
}

// steps are all of a sweep that nothing ends early.
func (k *Kind) steps(d sample.Direction) (all []step) {
	s, err := k.opts.sweep(d)
	if err != nil {
		return nil // NewKind has seen that there is none
	}
	for {
		next, more := s.Next()
		if !more {
			return all
		}
		all = append(all, step{next.Rate, next.Duration})
		s.Observe(lossless(next))
	}
}

// Perform tests one direction after the other, or both together.
func (k *Kind) Perform(ctx context.Context, s *heavy.Session, r *heavy.Run) error {
	body := &Result{Mode: k.opts.Mode, PacketBytes: k.opts.PacketBytes, Together: k.opts.Together}
	r.Body = body
	results := make([]*Direction, len(r.Directions))
	defer func() {
		for _, d := range results {
			if d != nil {
				body.Directions = append(body.Directions, d)
				r.Summary = append(r.Summary, d.summary()...)
				r.Notes = append(r.Notes, d.notes()...)
			}
		}
	}()
	if k.opts.Together {
		r.Phase("load in both directions")
		return k.together(ctx, s, r.Directions, results)
	}
	for i, d := range r.Directions {
		var err error
		if results[i], err = k.direction(ctx, s, r, d); err != nil {
			return err
		}
	}
	return nil
}

// together runs all directions at the same time; the first error is told.
func (k *Kind) together(ctx context.Context, s *heavy.Session, directions []sample.Direction, results []*Direction) error {
	errs := make([]error, len(directions))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i, d := range directions {
		all.Go(func() {
			if results[i], errs[i] = k.fixed(ctx, s, d); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func (k *Kind) direction(ctx context.Context, s *heavy.Session, r *heavy.Run, d sample.Direction) (*Direction, error) {
	switch k.opts.Mode {
	case ModeSweep:
		return k.sweep(ctx, s, r, d)
	case ModeSearch:
		return k.search(ctx, s, r, d)
	default:
		r.Phase(d.String() + ": load")
		return k.fixed(ctx, s, d)
	}
}

// check tells whether anything can be said of a transfer: it must not have been cut, nor a
// clock been stepped meanwhile, and something must have been sent.
func (k *Kind) check(t *heavy.Transfer) error {
	if t.Cut != "" {
		return fmt.Errorf("saturate: %s transfer was cut short: %s", t.Direction, t.Cut)
	}
	if t.Counts.Sent == 0 {
		return &heavy.Failure{Reason: heavy.ReasonSocket, Err: fmt.Errorf(
			"saturate: none of the %d %s packets left the sender; are %d octets (packet_bytes) more than its interface's MTU, or does a firewall there forbid them?",
			t.Counts.Planned, t.Direction, k.opts.PacketBytes)}
	}
	if t.Stepped() {
		return &heavy.Failure{Reason: heavy.ReasonClock, Err: fmt.Errorf("saturate: a clock was stepped during the %s transfer: its times mean nothing", t.Direction)}
	}
	return nil
}

// allowed is the rate in IP octets a second that the token allows.
func (k *Kind) allowed(s *heavy.Session) float64 {
	payload := s.Limits().BytesPerSecond
	if payload <= 0 {
		return math.Inf(1)
	}
	size := float64(k.opts.PacketBytes)
	return payload * size / (size - float64(s.Overhead()))
}

var _ heavy.Kind = (*Kind)(nil)
