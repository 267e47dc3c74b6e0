package tcp

import (
	"context"
	"fmt"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// The UDP packets of each direction: 25 in half a second. udpBytes is more than the IP bytes of both directions, and udpTime the
// time of both with that of their messages.
const (
	udpPackets  = 25
	udpSize     = 100
	udpInterval = 20 * time.Millisecond
	udpTime     = 2 * time.Second
	udpBytes    = 20_000
)

// Idle is what UDP packets over the idle path found in a direction.
type Idle struct {
	Direction string `json:"direction"`
	// Sent is the number of packets that were sent.
	Sent int `json:"sent_packets"`
	// Arrived is the number of those that arrived.
	Arrived int `json:"received_packets"`
	// Least is the least difference of the timestamps of both ends; without Bound it is not a delay, as it has the offset of
	// the clocks.
	Least *float64 `json:"least_delay_seconds,omitempty"`
	// Bound is the error bound of Least; absent: the clocks have none.
	Bound *float64 `json:"least_delay_error_bound_seconds,omitempty"`

	least time.Duration
}

// idle sends UDP packets in both directions. left is what the session may move.
func (r *Result) idle(ctx context.Context, u *udptraffic.Session, left int64) error {
	switch {
	case u == nil:
		return fmt.Errorf("no reply to UDP packets")
	case left < 3*udpBytes:
		return fmt.Errorf("the token has only %s left", unit.Bytes.Format(float64(left)))
	}
	var sum time.Duration
	complete := true
	for _, d := range sample.Directions() {
		x, err := u.Transfer(ctx, d, u.Plan(stream.Segment{PayloadBytes: max(stream.HeaderBytes, udpSize-u.Overhead()), Interval: udpInterval, Burst: 1, Bursts: udpPackets}), nil)
		if err != nil {
			return err
		}
		one := leastDelay(x)
		r.UDP = append(r.UDP, one)
		complete = complete && one.Least != nil && !x.Stepped()
		sum += one.least
	}
	if !complete || sum <= 0 {
		return fmt.Errorf("too few UDP packets arrived")
	}
	r.UDPRoundTrip = new(sum.Seconds())
	return nil
}

func leastDelay(x *udptraffic.Transfer) Idle {
	one := Idle{Direction: x.Direction.String(), Sent: x.Counts.Sent, Arrived: x.Counts.Arrived}
	for i := range x.Packets {
		p := &x.Packets[i]
		if p.Copies == 0 || !p.Sent.Present() || !p.Arrived.Present() {
			continue
		}
		v := p.Arrived.At.Sub(p.Sent.At)
		if one.Least != nil && v >= one.least {
			continue
		}
		one.least, one.Least, one.Bound = v, new(v.Seconds()), nil
		if d := x.Delay(i); d.OK() {
			one.Bound = new(d.Bound.Seconds())
		}
	}
	return one
}

// udpRoundTrip is UDPRoundTrip; 0: unknown.
func (r *Result) udpRoundTrip() time.Duration {
	if r.UDPRoundTrip == nil {
		return 0
	}
	return time.Duration(*r.UDPRoundTrip * float64(time.Second))
}
