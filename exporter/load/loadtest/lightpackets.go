package loadtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/working"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/endclock"
	"oneway.example/exporter/probe/quota"
	"oneway.example/exporter/probe/report"
)

const (
	// IdleTime is the time of light packets before the load.
	IdleTime = 2 * time.Second
	// maxLossTimeout is the longest loss timeout of light packets.
	maxLossTimeout = time.Minute
	// maxPackets is the most packets of a run, which are kept until its end: 12 MB.
	maxPackets = 1 << 17
	// keepEvery is the interval at which recorded packets are taken, and keepQueue how many fit: the packets of seconds.
	keepEvery = 500 * time.Millisecond
	keepQueue = 4096
)

// lightPackets sends light test packets during the load of one attempt of a run, from a moment before the load until its end, to
// the reflector of the session. Nothing that goes wrong with them ends the run: they are off then, and
// the result has the reason. It is nil if they are not configured.
type lightPackets struct {
	env      probe.Env
	clocks   *endclock.Proof
	light    probe.LightOptions
	longest  time.Duration // most time of sending
	off      string        // why there are none
	stream   probe.LightStream
	listener *record.Listener[record.Packet]
	stop     func() // ends keep
	idle     working.Span
	packets  []working.Packet
	idled    bool // the idle time was over before the run
	replied  int64
	sent     [2]int64 // IP bytes by direction

	mu    sync.Mutex
	loads []working.Load
}

// newLightPackets returns the packets of an attempt. They tell clocks if one of the clocks is wrong.
func (r *runner) newLightPackets(clocks *endclock.Proof) *lightPackets {
	a, ok := r.test.(Accompanied)
	if !ok || r.env.Light == nil || a.LightPackets().Interval == 0 {
		return nil
	}
	o := a.LightPackets()
	b := &lightPackets{env: r.env, clocks: clocks, longest: min(r.timeout(), r.usualTimeout()) + IdleTime, light: probe.LightOptions{
		Target: r.target, DSCP: o.DSCP, Interval: o.Interval, LossTimeout: min(o.LossTimeout, maxLossTimeout),
	}}
	b.light.Interval = max(b.light.Interval, b.longest/maxPackets)
	b.light.MaxBytes = b.payload()
	return b
}

// payload is the most payload in one direction.
func (b *lightPackets) payload() int64 {
	return probe.LightBytes * b.count()
}

// count is the most packets.
func (b *lightPackets) count() int64 { return int64(b.longest/b.light.Interval) + 1 }

// bytes is the most IP bytes, both directions together.
func (b *lightPackets) bytes() int64 {
	if b == nil || b.off != "" {
		return 0
	}
	return 2 * (b.light.MaxBytes + ipheader.MaxUDP*b.count())
}

// cancel gives up the packets.
func (b *lightPackets) cancel(format string, args ...any) { b.off = fmt.Sprintf(format, args...) }

// reserve reserves the bytes of a run and, if the quota suffices, of its light packets.
func (r *runner) reserve(lease Lease, a *Attempt) (*quota.Reservation, error) {
	for {
		reservation, err := r.links.Reserve(r.link, a.Bytes+a.LightBytes())
		if err == nil {
			if err = lease.Reserve(a.Bytes + a.LightBytes()); err == nil {
				return reservation, nil
			}
			reservation.Settle(0)
		}
		if a.LightBytes() == 0 || !errors.As(err, new(*quota.ExceededError)) {
			return nil, reserveError(err)
		}
		a.light.cancel("the link's quota of the day does not suffice for its packets")
	}
}

// limit adapts the packets to the limits of the session: see Attempt.LimitLight.
func (b *lightPackets) limit(holder string, rate int, load, left int64) {
	if b == nil || b.off != "" {
		return
	}
	if rate < 1 {
		b.cancel("%s's rate is too low for its packets", holder)
		return
	}
	b.light.Interval = max(b.light.Interval, time.Second/time.Duration(rate))
	b.light.MaxBytes = b.payload()
	if left < load+b.bytes() {
		b.cancel("%s's bytes of the day do not suffice for its packets", holder)
	}
}

// loaded adds the time in which a direction was loaded.
func (b *lightPackets) loaded(d sample.Direction, from, to instant.Time) {
	if b == nil || from == 0 || to < from {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loads = append(b.loads, working.Load{Direction: d, Span: working.Span{From: from, To: to}})
}

// begin begins the packets and measures the idle link.
func (b *lightPackets) begin(ctx context.Context, run *Run, s Session) {
	if b == nil || b.off != "" {
		return
	}
	reflecting, ok := s.(Reflecting)
	if !ok {
		b.cancel("the remote end has no reflector")
		return
	}
	run.Phase("delay of the idle link")
	r, err := reflecting.Reflect(ctx, b.light.MaxBytes)
	if err != nil {
		b.cancel("%v", err)
		return
	}
	b.light.Peer, b.light.Local, b.light.Key = r.Peer, r.Local, r.Key
	env, recorder := b.env, &record.Recorder{}
	b.listener, env.Recorder = recorder.Packets().Listen(keepQueue), recorder
	if b.stream, err = b.env.Light(ctx, env, b.light); err != nil {
		b.listener.Close()
		b.cancel("%v", err)
		return
	}
	keeping, stop := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for ctxtime.Sleep(keeping, keepEvery) { // the queue holds seconds of packets; none is due earlier
			b.keep()
		}
	})
	b.stop = func() {
		stop()
		tasks.Wait()
	}
	b.idle.From = instant.Now()
	b.idled = ctxtime.Sleep(ctx, IdleTime) // the duration of the measurement of the idle link, whose delay is compared with the delay under load; ctx ends it
	b.idle.To = instant.Now()
}

// keep takes the recorded packets.
func (b *lightPackets) keep() {
	var some [64]record.Packet
	for {
		n, _ := b.listener.Take(some[:])
		for i := range some[:n] {
			if p := &some[i]; p.Outcome != record.Lost {
				b.replied = max(b.replied, int64(p.ReverseSeq)+1)
			}
			kept := working.Keep(&some[i])
			if kept.ClocksApart() {
				b.clocks.Find()
			}
			b.packets = append(b.packets, kept)
		}
		if n < len(some) {
			return
		}
	}
}

// end waits for the last replies and sets the result in the run.
func (b *lightPackets) end(ctx context.Context, run *Run) {
	if b == nil {
		return
	}
	w := &Working{Interval: report.Seconds(b.light.Interval)}
	run.Working = w
	if b.stream != nil {
		packets, bytes := b.stream.Stop(ctx)
		b.stop()
		b.keep()
		b.listener.Close()
		headers := int64(ipheader.WithIP(b.light.Peer.Addr().Is6(), ipheader.UDP))
		mean := bytes/max(1, packets) + headers
		b.sent = [2]int64{bytes + packets*headers, min(b.replied, packets) * mean}
		switch {
		case b.replied > 0 || packets == 0:
		case !b.idled: // the end of the run while the last replies were awaited says nothing of them
			b.cancel("the run ended before a reply to its packets")
		default:
			b.cancel("no reply to test packets at UDP %d of the remote end; is it open there and on the path?", b.light.Peer.Port())
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.clocks.Found() {
			working.Disprove(b.packets)
		}
		w.Parts = working.Evaluate(b.packets, b.idle, b.loads)
	}
	if b.off != "" {
		w.Reason = b.off
		run.Note("no working delay: " + b.off)
	}
	run.Summary = append(run.Summary, w.lines(run.Directions)...)
}

// account adds what was sent.
func (b *lightPackets) account(o *Outcome) {
	if b != nil {
		o.ForwardBytes += b.sent[sample.Forward]
		o.ReverseBytes += b.sent[sample.Reverse]
	}
}
