package bench

import (
	"context"
	"encoding/json"
	"math"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/sample"
	streams "oneway.example/exporter/stream"
)

// Both ends of a stream know these without asking each other.
const (
	streamSession  = 1
	streamTransfer = 1
	streamPort     = 8620
)

// streamInReport is what came of a stream.
type streamInReport struct {
	Received, Corrupt int
	// SocketDropped and BacklogDropped are the receiving host's own losses.
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
	untilTold()
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

// streamOutReport is what became of a stream at its sender.
type streamOutReport struct {
	Sent, Refused, Late, Stamped int
	// Seconds from the call to the last packet that was handed over.
	Seconds float64
	// RateError is the mean rate's, in parts of one, by the stamps of the first and the last packet.
	RateError float64
	// Behind are the quantiles of how much later than planned a packet left.
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
	sent, err := s.Send(context.Background(), streamTransfer, to, plan, streams.How{Progress: func(streams.Progress) { took = time.Since(begin) }})
	if err != nil {
		return nil, err
	}
	report := punctuality(sent, plan)
	report.Seconds = took.Seconds()
	return report, nil
}

// punctuality is what the stamps say of a stream of one segment.
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

// streamEnd opens one end of a stream, until stop.
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
