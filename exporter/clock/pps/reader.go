package pps

import (
	"context"
	"errors"
	"time"

	"oneway.example/exporter/wait"
)

const (
	// firstPause and longestPause are between attempts to open the device.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// rest follows each pulse: a line that oscillates costs no more than fifty
	// fetches a second, and the sequence counts what was slept through.
	rest = 20 * time.Millisecond
	// idle is how many fetches in a row may return at once without a pulse (the
	// other edge is one a second) before each is followed by a pause.
	idle = 4
	// idlePause is that pause. Some drivers cannot wait and say that they can.
	idlePause = 100 * time.Millisecond
)

// news is what the reader has to say: a device opened, a fault, or an edge.
type news struct {
	opened bool
	err    error
	event  event
	now    reading // right after the fetch
}

// reader waits for pulses on a goroutine of its own, as the kernel may hold it.
type reader struct {
	options *Options
	news    chan news
	// heard: an edge came since the device was opened.
	heard bool
}

// run opens the device, and again, until ctx ends.
func (r *reader) run(ctx context.Context) {
	pause := firstPause
	for {
		d, err := r.options.kernel.open(r.options.Device, r.options.Clear)
		if err == nil {
			r.heard = false
			err = r.read(ctx, d)
			d.close()
		}
		if r.heard {
			pause, r.heard = firstPause, false
		}
		if !r.tell(ctx, news{err: err}) || !wait.For(ctx, pause) {
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// read tells of each new edge until the device fails or ctx ends.
func (r *reader) read(ctx context.Context, d device) error {
	if !r.tell(ctx, news{opened: true}) {
		return ctx.Err()
	}
	var last event
	for stale := 0; ctx.Err() == nil; {
		e, err := d.fetch(fetchTimeout)
		now := r.options.kernel.clocks()
		if errors.Is(err, errNoEvent) {
			if err := d.present(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if r.heard && e.sequence == last.sequence {
			if stale++; stale > idle && !wait.For(ctx, idlePause) {
				break
			}
			continue
		}
		stale, last, r.heard = 0, e, true
		if !r.tell(ctx, news{event: e, now: now}) || !wait.For(ctx, rest) {
			break
		}
	}
	return ctx.Err()
}

// tell hands n over, and reports whether ctx allowed it.
func (r *reader) tell(ctx context.Context, n news) bool {
	select {
	case r.news <- n:
		return true
	case <-ctx.Done():
		return false
	}
}
