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
	begun      time.Time
	// started: the load server has replied to Start. over is the end of sending of a forward transfer, as time.Time.UnixNano; zero:
	// not yet.
	started   atomic.Bool
	over      atomic.Int64
	reception atomic.Pointer[stream.Reception] // of a reverse transfer
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
	x.started.Store(true)
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
	if out.Received.Packets, err = stream.ParseReceived(records, x.Plan.Packets()); err != nil {
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
	x.started.Store(true)
	out.Remote.Before = started.Clock
	finished, records, err := x.client.Wait(ctx, x.ID)
	if err != nil {
		return failed(sample.Reverse, err)
	}
	out.Remote.After, out.Cut = finished.Clock, finished.Error
	sent := finished.Sent
	if sent.Packets, err = stream.ParseSent(records, x.Plan.Packets()); err != nil {
		return failed(sample.Reverse, err)
	}
	out.Sent = sent
	packets, _ := sent.Totals(x.Plan) // no other packets can arrive
	to.SetSent(packets)
	return nil
}

// failed is the error of a transfer. A load server that shuts down has ended it.
func failed(d sample.Direction, err error) error {
	if f, ok := errors.AsType[*loadtest.Failure](err); ok {
		err = f // it names the load server
	}
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
