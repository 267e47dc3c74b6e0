package udptraffic

import (
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/stream"
)

// Single packets are no load; a reverse load begins with its first arrival and lasts as long as the load server sent, by its
// own clock.
func TestLoadIsFromItsFirstToItsLastPacket(t *testing.T) {
	const here, there, ms = instant.Time(1e18), instant.Time(5e18), time.Millisecond
	at := func(base instant.Time, after time.Duration) sample.Stamp {
		return sample.Stamp{At: base.Add(after), Origin: sample.Kernel}
	}
	plan := stream.Plan{Segments: []stream.Segment{
		{PayloadBytes: 100, Burst: 1, Bursts: 1, Interval: 50 * ms}, {PayloadBytes: 100, Burst: 1, Bursts: 4, Interval: 10 * ms}, {PayloadBytes: 100, Burst: 1, Bursts: 1, Interval: 50 * ms},
	}}
	of := func(d sample.Direction, sender, receiver instant.Time) *Transfer {
		return &Transfer{Direction: d, Plan: plan, Packets: []Packet{
			{Segment: 0, Sent: at(sender, 0), Arrived: at(receiver, 5*ms)},
			{Segment: 1, Sent: at(sender, 50*ms)}, // lost
			{Segment: 1, Sent: at(sender, 60*ms), Arrived: at(receiver, 67*ms)},
			{Segment: 1}, // not sent
			{Segment: 1, Sent: at(sender, 80*ms), Arrived: at(receiver, 800*ms)},
			{Segment: 2, Sent: at(sender, 90*ms), Arrived: at(receiver, 900*ms)},
		}}
	}
	if from, to := of(sample.Forward, here, there).loaded(); from != here.Add(50*ms) || to != here.Add(80*ms) {
		t.Errorf("forward from %v to %v", from.Sub(here), to.Sub(here))
	}
	if from, to := of(sample.Reverse, there, here).loaded(); from != here.Add(57*ms) || to != here.Add(87*ms) {
		t.Errorf("reverse from %v to %v", from.Sub(here), to.Sub(here))
	}
	if from, _ := (&Transfer{Direction: sample.Reverse, Plan: plan, Packets: []Packet{{Segment: 1, Sent: at(there, 0)}}}).loaded(); from != 0 {
		t.Errorf("nothing arrived, and the load is from %v", from)
	}
}
