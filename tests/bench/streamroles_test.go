package bench

import (
	"context"
	"encoding/json"
	"math"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/core/sample"
	streams "oneway.example/exporter/load/stream"
)

// Constants of a stream that both ends have in advance.
const (
	streamSession  = 1
	streamTransfer = 1
	streamPort     = 8620
)

// streamInReport is a stream's result at its receiver.
type streamInReport struct {
	Received, Corrupt int
	// SocketDropped and BacklogDropped are packets that the receiving host dropped.
	SocketDropped, BacklogDropped uint64
	Stamped                       int
}

// streamIn ADDRESS PLAN receives one stream.
func streamIn(args []string) (any, error) {
	s, plan, stop, err := streamEnd(args[0], args[1])
	if err != nil {
		return nil, err
	}
	defer stop()
	r, err := s.Expect(streamTransfer, plan)
	if err != nil {
		return nil, err
	}
	untilStdinEnds()
	got := r.Finish(context.Background(), plan.Packets(), 200*time.Millisecond)
	report := streamInReport{
		Received: len(got.Packets), Corrupt: got.CorruptPackets,
		SocketDropped: got.Dropped, BacklogDropped: got.BacklogDropped,
	}
	for i := range got.Packets {
		if got.Packets[i].Stamp.Origin == sample.Kernel {
			report.Stamped++
		}
	}
	return report, nil
}

// streamOutReport is a stream's result at its sender.
type streamOutReport struct {
	Sent, Refused, Late, Stamped int
	// Seconds is the time from the call to the last packet sent.
	Seconds float64
	// RateError is the relative error of the mean rate, by the timestamps of the first and the last packet.
	RateError float64
	// Behind are quantiles of the lateness of packets.
	Behind [3]time.Duration
}

func quantiles() [3]float64 { return [...]float64{0.5, 0.99, 0.999} }

// streamOut LOCAL ADDRESS PLAN sends one.
func streamOut(args []string) (any, error) {
	s, plan, stop, err := streamEnd(args[0], args[2])
	if err != nil {
		return nil, err
	}
	defer stop()
	to := netip.MustParseAddrPort(args[1])
	if _, err := s.Hello(context.Background(), to); err != nil {
		return nil, err
	}
	begin := time.Now()
	var took time.Duration
	sent, err := s.Send(context.Background(), streamTransfer, to, plan, streams.SendOptions{Progress: func(streams.Progress) { took = time.Since(begin) }})
	if err != nil {
		return nil, err
	}
	report := punctuality(sent, plan)
	report.Seconds = took.Seconds()
	return report, nil
}

// punctuality computes the timing of a stream of one segment from its timestamps.
func punctuality(sent *streams.Sent, plan streams.Plan) streamOutReport {
	r := streamOutReport{Sent: len(sent.Packets) - sent.Refused, Refused: sent.Refused, Late: sent.Late}
	var behind []time.Duration
	for i := range sent.Packets {
		p := &sent.Packets[i]
		if !p.Stamp.Present() {
			continue
		}
		behind = append(behind, p.Stamp.At.Sub(p.Due))
		if p.Stamp.Origin == sample.Kernel {
			r.Stamped++
		}
	}
	g := plan.Segments[0]
	if len(behind) < 2 || g.Interval == 0 {
		return r
	}
	planned := float64(len(sent.Packets)-1) * float64(g.Interval) / float64(g.Burst)
	r.RateError = planned/float64(sent.Packets[len(sent.Packets)-1].Stamp.At.Sub(sent.Packets[0].Stamp.At)) - 1
	slices.Sort(behind)
	for i, q := range quantiles() {
		r.Behind[i] = behind[int(math.Round(q*float64(len(behind)-1)))]
	}
	return r
}

// streamEnd opens one end of a stream, until stop is called.
func streamEnd(local, plan string) (s *streams.Session, p streams.Plan, stop func(), err error) {
	if err := json.Unmarshal([]byte(plan), &p); err != nil {
		return nil, p, nil, err
	}
	e, err := streams.Open(streams.Options{Local: netip.MustParseAddrPort(local)})
	if err != nil {
		return nil, p, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	return e.Join(streamSession), p, func() { cancel(); <-done }, nil
}
