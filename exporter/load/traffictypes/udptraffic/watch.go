package udptraffic

import (
	"context"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffic"
)

// recordsTimeout is the time for the load server's records of a stream without an arrival.
const recordsTimeout = 5 * time.Second

// watchEvery is the interval of watch.
const watchEvery = 200 * time.Millisecond

// watch ends a transfer when the load server is silent, or its control connection.
func (x *transferring) watch(ctx context.Context, ended context.CancelCauseFunc) {
	lastReceived, received, asked := x.begun, 0, time.Time{}
	for ctxtime.Sleep(ctx, watchEvery) {
		if r := x.reception.Load(); r != nil {
			p := r.Progress()
			if p.Packets > received {
				received, lastReceived = p.Packets, time.Now()
			}
			x.progress(p)
		}
		lastReceived = latest(lastReceived, x.client.LastReceived())
		now := time.Now()
		e := x.evidence(lastReceived, now)
		s := x.silence(e, now)
		if !asked.IsZero() {
			s = silence{asked, recordsTimeout, loadcontrol.SilentControl}
		}
		switch silent := now.Sub(s.since) > s.limit; {
		case silent && s.what == silentStream && received == 0:
			// The path drops the stream's packets only: what the load server has sent tells.
			asked = now
			_ = x.client.Cancel(x.ID) // without it, the wait for the records ends
		case silent:
			ended(&loadtest.Failure{Reason: runreason.Lost, Err: x.client.Silence(x.remote, s.what, s.limit, e.held)})
			return
		}
	}
}

// evidence is when something was last received from the load server.
type evidence struct {
	// received is the time of the last packet of a reverse stream or message.
	received time.Time
	// packet is the time of the last packet of any type, or of received; zero: the load server sends no hello packets.
	packet time.Time
	// recovered is the time until which TCP may be silent after an interruption.
	recovered time.Time
	// held is how long the path holds packets back (traffic.QueueDelay).
	held time.Duration
}

func (x *transferring) evidence(lastReceived, now time.Time) evidence {
	e := evidence{received: lastReceived}
	ago, greeted := x.session.LastReceived()
	if greeted {
		e.packet = latest(lastReceived, now.Add(-ago))
	}
	e.recovered = x.recover(now, ago)
	if since, due := x.due(e, now); due {
		e.held = x.heldBack(now, since, askAfter)
	}
	return e
}

// silence is since when, for how long at most, and what of the load server is silent.
type silence struct {
	since time.Time
	limit time.Duration
	what  loadcontrol.Silent
}

// silentStream is a reverse stream, while other packets arrive.
const silentStream loadcontrol.Silent = " of a stream"

// silence returns the timeout that ends first. Packets of a reverse stream must arrive as planned, since the load server pauses
// it without hello packets from this end. Otherwise hello packets must arrive, and where a message is due, that.
func (x *transferring) silence(e evidence, now time.Time) silence {
	all := silence{e.packet, Outage, loadcontrol.SilentUDP}
	first := silence{now, grace, loadcontrol.SilentAll}
	if since, due := x.due(e, now); due {
		first = x.unanswered(e, since)
	} else if x.Direction == sample.Reverse {
		first = silence{e.received, Outage + gap(x.Plan), loadcontrol.SilentAll}
		if !e.packet.IsZero() && now.Sub(e.packet) < Outage/2 {
			first.what = silentStream
		}
	}
	if !e.packet.IsZero() && all.end().Before(first.end()) {
		return all
	}
	return first
}

// due returns since when a message is due; false: none is. It is the reply to Start, and the records after all streams.
func (x *transferring) due(e evidence, now time.Time) (since time.Time, due bool) {
	if !x.started.Load() {
		return latest(e.received, x.begun), true
	}
	planned, over := x.end(), x.over.Load()
	if now.Before(planned) || x.Direction == sample.Forward && over == 0 {
		return time.Time{}, false
	}
	return latest(latest(e.received, planned), time.Unix(0, over)), true
}

// unanswered returns the timeout of a message that is due. A long queue may hold it back.
func (x *transferring) unanswered(e evidence, since time.Time) silence {
	first := silence{since, x.Idle + grace, loadcontrol.SilentAll}
	control := silence{latest(since, e.recovered), traffic.ControlTimeout(x.Idle+Outage, e.held), loadcontrol.SilentControl}
	if control.end().Before(first.end()) {
		return control
	}
	return first
}

func (s silence) end() time.Time { return s.since.Add(s.limit) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
