// Package saturation is the probe that fills a link with UDP packets to measure its rate, its loss and its queue
// (Woo 2010 chapter 6, Halepovic 2008 figure 2, RFC 9097).
//
// There are three modes. "fixed" offers one rate above the link's: the received rate is the link's, and the delay
// above that of the idle link just before is the queue's (package estimate/queue). "sweep" offers one rate after
// the other, from low to high, and finds where loss begins; each is a burst from an idle link, whose queue is empty
// and whose token bucket, if any, is full. "search" changes the rate of one stream by its receiver's reports, with
// the load adjustment of RFC 9097 and without a pause; the rate received in the parts that begin while the link is
// full is the sustained rate.
//
// All rates and sizes are those of IP packets, headers included and no link layer.
package saturation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// Kind is the load test "saturation". Make it with NewKind.
type Kind struct {
	opts  Options
	bytes int64
	lasts time.Duration
}

// NewKind checks the options.
func NewKind(shared loadsession.Options, own Options) (*Kind, error) {
	if err := own.check(); err != nil {
		return nil, err
	}
	k := &Kind{opts: own}
	var errs []error
	for _, d := range sample.Directions() {
		if !slices.Contains(shared.Directions, d.String()) {
			continue
		}
		bytes, lasts, err := own.planned(d)
		errs = append(errs, err)
		k.bytes += bytes
		if own.Together {
			k.lasts = max(k.lasts, lasts)
		} else {
			k.lasts += lasts
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return k, nil
}

// NewType makes the type for the registry.
func NewType() loadsession.Type[Options] {
	t := loadsession.NewType("saturation", DefaultOptions, NewKind)
	t.Doc = "More than the link carries: throughput, loss, and the queue before the link."
	t.Full = []string{"elapsed_bins", "elapsed_range"}
	t.Help, t.Results = help, Result{}
	return t
}

// Kind is "saturation".
func (*Kind) Kind() string { return "saturation" }

// Traffic is streams of UDP packets.
func (*Kind) Traffic() loadsession.Traffic[*udptraffic.Session] { return udptraffic.Local{} }

// Bytes is the most IP bytes that a run sends.
func (k *Kind) Bytes(int64) int64 { return k.bytes }

// Duration is the planned time of all transfers.
func (k *Kind) Duration() time.Duration { return k.lasts }

// Perform tests one direction after the other, or both together.
func (k *Kind) Perform(ctx context.Context, s *udptraffic.Session, r *loadtest.Run) error {
	body := &Result{Mode: k.opts.Mode, PacketBytes: k.opts.PacketBytes, Together: k.opts.Together}
	r.Body = body
	results := make([]*Direction, len(r.Directions))
	defer func() {
		for _, d := range results {
			if d != nil {
				body.Directions = append(body.Directions, d)
				r.Summary = append(r.Summary, d.summary()...)
				for _, note := range d.notes() {
					r.Note(note)
				}
			}
		}
	}()
	if k.opts.Together {
		r.Phase("load in both directions")
		if err := k.together(ctx, s, r.Directions, results); err != nil {
			return err
		}
		return unsent(results)
	}
	for i, d := range r.Directions {
		var err error
		if results[i], err = k.direction(ctx, s, r, d); err != nil {
			return err
		}
	}
	return unsent(results)
}

// together runs all directions at the same time and returns the first error.
func (k *Kind) together(ctx context.Context, s *udptraffic.Session, directions []sample.Direction, results []*Direction) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i, d := range directions {
		all.Go(func() {
			var err error
			if results[i], err = k.fixed(ctx, s, d); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func (k *Kind) direction(ctx context.Context, s *udptraffic.Session, r *loadtest.Run, d sample.Direction) (*Direction, error) {
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

// checked returns an error for a transfer without a valid result: it was cut, a clock was stepped during it, or
// nothing was sent. Of a run that was stopped there is both: what was sent before, and the error.
func (k *Kind) checked(t *udptraffic.Transfer, err error) (*udptraffic.Transfer, error) {
	switch {
	case err != nil && (t == nil || t.Counts.Sent == 0 || t.Stepped()):
		return nil, err
	case err != nil:
		return t, err
	case t.Oversized("packet_bytes", 0) != nil:
		return nil, t.Oversized("packet_bytes", 0)
	case t.Cut != "":
		return nil, t.CutShort()
	case t.Counts.Sent == 0:
		return nil, &loadtest.Failure{Reason: runreason.Socket, Err: fmt.Errorf(
			"saturation: none of the %d %s packets left the sender; check that its interface's MTU is at least %d bytes (packet_bytes), and what its kernel refuses: %s",
			t.Counts.Planned, t.Direction, k.opts.PacketBytes, errtext.Refused)}
	case t.Stepped():
		return nil, &loadtest.Failure{Reason: runreason.Clock, Err: fmt.Errorf("saturation: a clock was stepped during the %s transfer: its times are invalid", t.Direction)}
	}
	return t, nil
}

var _ loadsession.Kind[*udptraffic.Session] = (*Kind)(nil)
