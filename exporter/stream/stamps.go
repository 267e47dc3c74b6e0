package stream

import (
	"context"
	"time"

	"oneway.example/exporter/tstamp"
)

// collect takes the stamps that are there, when many are due: their queue is bounded, and
// the receiving goroutine may not be running.
func (x *sending) collect() {
	if x.sentPackets.Load()-x.stamped.Load() < stampsAtOnce {
		return
	}
	for {
		x.stamps = x.session.endpoint.conn.Stamps(x.stamps[:0])
		x.session.endpoint.stamped(x.stamps)
		if len(x.stamps) < cap(x.stamps) {
			return
		}
	}
}

// stamped hands transmit stamps to their streams.
func (e *Endpoint) stamped(all []tstamp.TxStamp) {
	if len(all) == 0 {
		return
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	var x *sending
	for i := range all {
		token, seq := uint32(all[i].Cookie>>32), uint32(all[i].Cookie)
		if x == nil || x.token != token {
			x = e.sending[token]
		}
		if x != nil && int(seq) < len(x.packets) {
			x.packets[seq].Stamp = all[i].Stamp
			x.stamped.Add(1)
			x.signal()
		}
	}
}

func (x *sending) signal() {
	select {
	case x.changed <- struct{}{}:
	default:
	}
}

// await waits for the stamps that are still to come.
func (x *sending) await(ctx context.Context) {
	timer := time.NewTimer(stampPatience)
	defer timer.Stop()
	ended := ctx.Done()
	for x.stamped.Load() < x.sentPackets.Load() {
		select {
		case <-x.changed:
		case <-timer.C:
			return
		case <-ended:
			ended = nil
			timer.Reset(stampPatienceEnd)
		}
	}
}

// conclude is the result. No stamp is written any more afterwards.
func (x *sending) conclude() *Sent {
	x.unregister()
	x.result.Planned = len(x.packets)
	tried := x.prepared - (len(x.out) - x.from) // the rest was prepared only
	x.result.Packets = x.packets[:tried]
	if x.steer != nil { // how many there would be was not planned
		x.result.Planned = tried
	}
	for i := range x.result.Packets {
		at := x.result.Packets[i].Stamp.At
		if at == 0 {
			continue
		}
		if x.result.Begin == 0 {
			x.result.Begin = at
		}
		x.result.End = at
	}
	return &x.result
}
