package influxdb

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/spool"
)

// resultDropped is a result of points, as resultWritten and resultRejected are.
const resultDropped = "dropped"

// backoff are the pauses after failed requests: each is twice the last one.
type backoff struct{ first, most time.Duration }

// pause is the one after so many consecutive failures, at least 1, with a jitter of a quarter: outputs of many hosts that failed together
// do not return together.
func (b backoff) pause(failures int) time.Duration {
	d := b.most
	if failures < 30 {
		d = min(b.first<<(failures-1), b.most)
	}
	return d*3/4 + rand.N(d/2+1)
}

// maxDivisions of a record that the store refuses as a whole, to find the points that it refuses: each needs about
// log2(points) of them.
const maxDivisions = 64

// sender delivers the records of a spool in order.
type sender struct {
	output *Output
	client *client
	spool  *spool.Spool
	scope  *metric.Scope
	log    *slog.Logger

	record, lines []byte // reused
	failures      int    // consecutive
	divisions     int    // left for this record
	refusal       time.Time
}

func (o *Output) newSender(s *spool.Spool, scope *metric.Scope) *sender {
	return &sender{output: o, client: newClient(o.options, o.base, o.tls), spool: s, scope: scope, log: o.env.Log}
}

// run delivers until ctx ends.
func (s *sender) run(ctx context.Context) {
	defer s.client.close()
	for {
		record, points := s.spool.Next(s.record)
		if record == nil {
			select {
			case <-ctx.Done():
				return
			case <-s.spool.Ready():
			}
			continue
		}
		s.record, s.divisions = record, maxDivisions
		if s.deliver(ctx, part{compressed: record, points: points}) != nil {
			return
		}
		s.spool.Done()
	}
}

// part is a record, or some consecutive lines of it.
type part struct {
	lines, compressed []byte // one of them may be nil
	points            int
}

// deliver sends a part until the store has accepted or refused each of its points. An error means that ctx has ended.
func (s *sender) deliver(ctx context.Context, p part) error {
	if p.lines == nil && !s.client.options.Gzip && !s.expand(&p) {
		return nil
	}
	r, err := s.send(ctx, p)
	if err != nil {
		return err
	}
	divide := p.points > 1 && (r.result == resultTooLarge || r.result == resultRejected && s.divisions > 0)
	if divide {
		if s.divisions--; s.divisions < 0 && !ctxtime.Sleep(ctx, s.output.backoff.pause(1)) { // a store that takes no point is not flooded
			return ctx.Err() // a store that takes no more than a few points is not asked as fast as it replies
		}
		if p.lines == nil && !s.expand(&p) {
			return nil
		}
		one, other := p.halves()
		if err := s.deliver(ctx, one); err != nil {
			return err
		}
		return s.deliver(ctx, other)
	}
	refused := 0
	switch r.result {
	case resultPartial:
		refused = min(r.refused, p.points)
	case resultRejected, resultTooLarge:
		refused = p.points
	}
	s.count(p.points-refused, refused)
	if refused > 0 && time.Since(s.refusal) >= refusalInterval {
		s.refusal = time.Now()
		s.log.Warn("The store refuses points", "points", refused, "of", p.points, "reason", r.reason)
	}
	return nil
}

// refusalInterval is the shortest time between two log lines about refused points.
const refusalInterval = time.Minute

// expand sets the lines of a record: false if it has none, which a spool with checksums does not return.
func (s *sender) expand(p *part) bool {
	lines, err := s.client.expand(s.lines[:0], p.compressed)
	if err != nil {
		s.log.Error("Record is not compressed lines; it is skipped", "points", p.points, "err", err)
		s.count(0, p.points)
		return false
	}
	s.lines, p.lines = lines, lines
	return true
}

// halves divides the lines; an odd number gives the second half one more.
func (p *part) halves() (one, other part) {
	n, end := p.points/2, 0
	for range n {
		end += bytes.IndexByte(p.lines[end:], '\n') + 1
	}
	return part{lines: p.lines[:end], points: n}, part{lines: p.lines[end:], points: p.points - n}
}

// send repeats a request until the store has processed it, or it is too large.
func (s *sender) send(ctx context.Context, p part) (reply, error) {
	for {
		r := s.client.write(ctx, p.lines, p.compressed)
		if ctx.Err() != nil && !r.final() {
			return r, ctx.Err()
		}
		result := r.result
		if result == resultPartial && r.refused >= p.points {
			result = resultRejected // InfluxDB 1.8 and 2 call it partial if all points have the same fault
		}
		s.scope.Series(metric.OutputRequests, result).Add(1)
		s.note(r, result == resultWritten || result == resultPartial)
		if r.final() || r.result == resultTooLarge {
			return r, nil
		}
		pause := max(s.output.backoff.pause(s.failures), r.after)
		if !ctxtime.Sleep(ctx, pause) { // the back-off, or what the store has asked for
			return r, ctx.Err()
		}
	}
}

// note keeps the reply for the status, and logs a change from success to failure or back. accepted: the store has taken points.
func (s *sender) note(r reply, accepted bool) {
	o := s.output
	var waiting int64
	o.mu.Lock()
	if accepted {
		o.status.Reason, o.status.LastSuccess = "", time.Now().UTC()
		s.scope.Series(metric.OutputLastSuccess).Set(float64(o.status.LastSuccess.UnixNano()) / 1e9)
	} else {
		o.status.Reason = r.reason
	}
	waiting = s.spool.Stats().Points
	o.mu.Unlock()
	switch failed := !r.final() && r.result != resultTooLarge; {
	case failed:
		if s.failures++; s.failures == 1 {
			details := []any{"destination", o.options.destination(), "reason", r.reason}
			if r.after > 0 {
				details = append(details, "retry_after", r.after)
			}
			s.log.Warn("Points are not delivered; it is tried again", details...)
		}
	case s.failures > 0:
		s.log.Info("Points are delivered again", "destination", o.options.destination(), "failures", s.failures, "waiting_points", waiting)
		s.failures = 0
	}
}

// count counts points that the store has accepted or refused.
func (s *sender) count(written, refused int) {
	s.scope.Series(metric.OutputPoints, resultWritten).Add(float64(written))
	s.scope.Series(metric.OutputPoints, resultRejected).Add(float64(refused))
	o := s.output
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status.Written += uint64(written)
	o.status.Rejected += uint64(refused)
}

var _ output.Output = (*Output)(nil)
