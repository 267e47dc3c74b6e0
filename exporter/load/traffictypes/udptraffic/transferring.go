package udptraffic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/probe/endclock"
)

// transferring is a transfer in progress.
type transferring struct {
	*carrier
	Start
	adjustRate stream.Adjuster
	onProgress func(loadtest.Progress)
	// over is the end of sending of a forward transfer, as time.Time.UnixNano; zero: not yet.
	over      atomic.Int64
	reception atomic.Pointer[stream.Reception] // of a reverse transfer
	local     endclock.Span                    // used by watch, then by Transfer
}

// Times of a transfer whose context ends: those of the packets under way, and then of the load server's records.
const (
	stopTimeout   = 2 * time.Second
	reportTimeout = time.Second
)

// stop ends a transfer when ctx does: the sender at once, then the receiver, then the wait for the records.
func (x *transferring) stop(ctx, transferring context.Context, sending, ended context.CancelCauseFunc) {
	select {
	case <-transferring.Done():
		return
	case <-ctx.Done():
	}
	why := context.Cause(ctx)
	sending(why)
	if x.Direction == sample.Reverse {
		_ = x.client.Cancel(x.ID) // without it, the wait for the records ends
	}
	if ctxtime.Sleep(transferring, stopTimeout) && x.Direction == sample.Forward { // until the transfer ends by itself: the packets under way
		_ = x.client.Cancel(x.ID)
	}
	ctxtime.Sleep(transferring, reportTimeout) // until the records of both ends are here
	ended(why)
}

// forward sends until sending ends, and waits for the records until ctx does.
func (x *transferring) forward(sending, ctx context.Context) (*CarrierResult, error) {
	started, err := x.client.Start(sending, x.Start)
	if err != nil {
		return nil, failed(sample.Forward, err)
	}
	out := &CarrierResult{Remote: endclock.Span{Before: started.Clock}}
	x.sending.Store(replacesHello(x.Plan))
	out.Sent, err = x.session.Send(sending, x.ID, x.remote, x.Plan, stream.SendOptions{Progress: x.progress, AdjustRate: x.adjustRate})
	x.sending.Store(false)
	if out.Sent != nil {
		out.Packets, out.PayloadBytes = out.Sent.Totals(x.Plan)
	}
	if err != nil {
		return out, &loadtest.Failure{Reason: runreason.Socket, Err: err}
	}
	x.over.Store(time.Now().UnixNano())
	if err := x.client.Sent(ctx, x.ID, out.Packets); err != nil {
		return out, failed(sample.Forward, err)
	}
	finished, records, err := x.client.Wait(ctx, x.ID)
	if err != nil {
		return out, failed(sample.Forward, err)
	}
	out.Remote.After, out.Cut, out.Received = finished.Clock, finished.Error, finished.Received
	if out.Received.Packets, err = stream.ParseReceived(records); err != nil {
		return out, failed(sample.Forward, err)
	}
	return out, nil
}

// reverse receives until ctx ends; sending ends the wait for the beginning.
func (x *transferring) reverse(sending, ctx context.Context) (*CarrierResult, error) {
	reception, err := x.session.Expect(x.ID, x.Plan)
	if err != nil {
		return nil, &loadtest.Failure{Reason: runreason.Socket, Err: err}
	}
	x.reception.Store(reception)
	// The goroutine finishes the reception in any case.
	receiving, enough := context.WithCancel(ctx)
	defer enough()
	var finishing sync.WaitGroup
	out := &CarrierResult{}
	finishing.Go(func() {
		out.Received = reception.Finish(receiving, -1, x.Idle)
		enough()
	})
	if x.adjustRate != nil {
		finishing.Go(func() {
			reception.Follow(receiving, func(st stream.Status) {
				// The next order replaces a lost one.
				_ = x.session.Order(x.ID, x.remote, st.Serial, x.adjustRate(st))
			})
		})
	}
	if err = x.request(sending, ctx, reception, out); err != nil {
		enough()
	}
	finishing.Wait()
	if out.Sent != nil {
		out.Packets, out.PayloadBytes = out.Sent.Totals(x.Plan)
	} else { // the packets received are a lower bound of those sent
		at := reception.Progress()
		out.Packets, out.PayloadBytes = at.Packets, at.Bytes
	}
	return out, err
}

// request makes the load server send, and waits for the end of the stream.
func (x *transferring) request(sending, ctx context.Context, to *stream.Reception, out *CarrierResult) error {
	started, err := x.client.Start(sending, x.Start)
	if err != nil {
		return failed(sample.Reverse, err)
	}
	out.Remote.Before = started.Clock
	finished, records, err := x.client.Wait(ctx, x.ID)
	if err != nil {
		return failed(sample.Reverse, err)
	}
	out.Remote.After, out.Cut = finished.Clock, finished.Error
	sent := finished.Sent
	if sent.Packets, err = stream.ParseSent(records); err != nil {
		return failed(sample.Reverse, err)
	}
	out.Sent = sent
	packets, _ := sent.Totals(x.Plan) // no other packets can arrive
	to.SetSent(packets)
	return nil
}

// failed is the error of a transfer. A load server that shuts down has ended it.
func failed(d sample.Direction, err error) error {
	refusal, refused := errors.AsType[*loadcontrol.Refusal](err)
	err = fmt.Errorf("%s transfer: %w", d, err)
	if refused && refusal.Reason == loadcontrol.ShuttingDown {
		return &loadtest.Failure{Reason: runreason.Lost, Err: err}
	}
	return err
}

// progress forwards the progress of a stream.
func (x *transferring) progress(p stream.Progress) {
	if x.onProgress != nil {
		x.onProgress(loadtest.Progress{Packets: p.Packets, Bytes: p.Bytes, Elapsed: p.Elapsed})
	}
}

// recordsTimeout is the time for the load server's records of a stream without an arrival.
const recordsTimeout = 5 * time.Second

// watchEvery is the interval of watch.
const watchEvery = 200 * time.Millisecond

// watch samples the clock error bound of this host during a transfer, and ends the transfer when the
// load server reaches its idle timeout.
func (x *transferring) watch(ctx context.Context, ended context.CancelCauseFunc) {
	lastReceived, received, asked := time.Now(), 0, time.Time{}
	for ctxtime.Sleep(ctx, watchEvery) { // a sample of the clock has no notification
		x.local.Sample(x.clock)
		if r := x.reception.Load(); r != nil {
			p := r.Progress()
			if p.Packets > received {
				received, lastReceived = p.Packets, time.Now()
			}
			x.progress(p)
		}
		lastReceived = latest(lastReceived, x.client.LastReceived())
		now := time.Now()
		since, limit := x.remoteTimeout(lastReceived, x.lastPacket(lastReceived, now), now)
		if !asked.IsZero() {
			since, limit = asked, recordsTimeout
		}
		switch silent := time.Since(since) > limit; {
		case silent && x.Direction == sample.Reverse && received == 0 && asked.IsZero():
			// Perhaps the path drops the stream's packets only: what the load server has sent tells.
			asked = time.Now()
			_ = x.client.Cancel(x.ID) // without it, the wait for the records ends
		case silent:
			ended(&loadtest.Failure{Reason: runreason.Lost, Err: x.client.Silence(x.remote, limit)})
			return
		}
	}
}

// lastPacket returns when the last packet of any type arrived, at the earliest lastReceived; zero if the load server sends no
// hello packets.
func (x *transferring) lastPacket(lastReceived, now time.Time) time.Time {
	ago, greeted := x.session.LastReceived()
	if !greeted {
		return time.Time{}
	}
	return latest(lastReceived, now.Add(-ago))
}

// remoteTimeout returns the begin and the length of the load server's idle timeout, whose last packet arrived at
// heard, and the last one of the stream or message at lastReceived. Packets of a reverse stream must arrive as planned,
// since the load server pauses it without hello packets from this end. Otherwise hello packets must arrive, and after all
// streams control messages.
func (x *transferring) remoteTimeout(lastReceived, heard, now time.Time) (since time.Time, limit time.Duration) {
	planned := x.end()
	over := x.over.Load()
	if x.Direction == sample.Reverse && now.Before(planned) {
		return lastReceived, Outage + gap(x.Plan)
	}
	since, limit = latest(latest(lastReceived, planned), time.Unix(0, over)), x.Idle+grace
	if x.Direction == sample.Forward && (over == 0 || now.Before(planned)) {
		since, limit = now, grace
	}
	if !heard.IsZero() && heard.Add(Outage).Before(since.Add(limit)) {
		return heard, Outage
	}
	return since, limit
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
