package saturation_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probes/saturation"
)

// outage is a part of a transfer, relative to its first packet.
type outage struct{ from, to time.Duration }

// holds reports whether the packet of a number was due in it.
func (o outage) holds(c *udptraffic.CarrierResult, seq uint32) bool {
	at := c.Sent.Packets[seq].Due.Sub(c.Sent.Packets[0].Due)
	return at >= o.from && at < o.to
}

// drop removes the packets of an outage from those that arrived.
func (o outage) drop(c *udptraffic.CarrierResult) {
	c.Received.Packets = slices.DeleteFunc(c.Received.Packets, func(p stream.ReceivedPacket) bool { return o.holds(c, p.Seq) })
}

// slowly offers less than the link of wibro carries, and evaluates all of it.
func slowly(o *saturation.Options) {
	o.Rate.Forward, o.Rate.Reverse = 2e6/8, 2e6/8
	o.Duration, o.Idle.Duration, o.Skip = 30*time.Second, 0, 0
}

// A router that drops the load from some second on, or for most of the time, does not give a completed run whose link
// "carried" what nobody received. The other direction has its values.
func TestLoadOnAnInterruptedPathIsNoResult(t *testing.T) {
	for _, cut := range []outage{{7 * time.Second, time.Hour}, {0, time.Hour}, {20 * time.Second, time.Hour}, {5 * time.Second, 25 * time.Second}, {2 * time.Millisecond, time.Hour}} {
		link := wibro()
		link.Each = func(d sample.Direction, c *udptraffic.CarrierResult) error {
			if d == sample.Reverse {
				cut.drop(c)
			}
			return nil
		}
		b, err := perform(t, link, slowly, "forward", "reverse")
		if cut.from == 0 { // nothing arrived at all: see TestTransferWithoutArrivalsIsNoResult
			if f, ok := errors.AsType[*loadtest.Failure](err); !ok || f.Reason != runreason.TooLarge {
				t.Errorf("%v: %v", cut, err)
			}
			continue
		}
		f, ok := errors.AsType[*loadtest.Failure](err)
		if !ok || f.Reason != runreason.NoResult || !strings.Contains(err.Error(), "reverse: ") || !strings.Contains(err.Error(), "drops packets of 1410 bytes") {
			t.Errorf("%v: %v", cut, err)
			continue
		}
		if words := b.words(); strings.Contains(words, "reverse: not filled") || strings.Contains(words, "throughput reverse") {
			t.Errorf("%v: %s", cut, words)
		}
		if d := b.run.Body.(*saturation.Result).Directions[1]; d.Partial == "" || d.Load.State != "unknown" || d.Load.Throughput > 0.7*d.Load.Offered {
			t.Errorf("%v: partial %q, %s, received %.0f of %.0f B/s", cut, d.Partial, d.Load.State, d.Load.Throughput, d.Load.Offered)
		}
		b.expect(t, metric.UDPThroughput, 2e6/8, 0.01, "forward")
		b.expect(t, metric.SaturationState, 1, 0, "forward", "not_filled")
		for _, d := range []*metric.Desc{metric.UDPThroughput, metric.LoadedLoss} {
			if n := len(b.sink.All(d)); n != 1 {
				t.Errorf("%v: %s has %d series, want that of forward", cut, d.Name, n)
			}
		}
	}
}

// A queue of the sending host may hold packets longer than their kernel timestamps are waited for: then some have the time of the call,
// and are not in order. Such a run is not completed with a throughput of 0 and a loss of 100 %.
func TestTimestampsThatAreNotInOrderAreNoResult(t *testing.T) {
	const lost = 100
	link := wibro()
	link.Each = func(_ sample.Direction, c *udptraffic.CarrierResult) error {
		for i := range c.Sent.Packets {
			if at := &c.Sent.Packets[i].Stamp.At; i%2 == 0 && c.Sent.Packets[i].Due.Sub(c.Sent.Begin) > 10*time.Second {
				*at = at.Add(-8 * time.Second)
			}
		}
		c.Received.Packets = c.Received.Packets[lost:]
		return nil
	}
	b, err := perform(t, link, slowly, "forward")
	if f, ok := errors.AsType[*loadtest.Failure](err); !ok || f.Reason != runreason.NoResult || !strings.Contains(err.Error(), "not in order") || !strings.Contains(err.Error(), "queue of the sending host") {
		t.Fatal(err)
	}
	d := b.run.Body.(*saturation.Result).Directions[0]
	if want := float64(lost) / float64(d.Counts.Planned); d.Load.Loss != want || d.Partial == "" || strings.Contains(b.words(), "throughput") {
		t.Errorf("loss %v, want %v; partial %q; %s", d.Load.Loss, want, d.Partial, b.words())
	}
	if rows := b.run.Body.(*saturation.Result).Tables()[0].Rows; slices.ContainsFunc(rows, func(r []string) bool { return r[1] == "0 b/s" }) {
		t.Errorf("rows %v", rows)
	}
	if n := len(b.sink.All(metric.LoadedLoss)); n != 0 {
		t.Errorf("%d series of loss", n)
	}
}

// A load server without packets from its client withholds the stream. The rate of the rest is compared with what was offered
// in the rest, and the withheld packets are told as not sent.
func TestPacketsWithheldByTheLoadServerAreNotInTheOfferedRate(t *testing.T) {
	for _, pause := range []outage{{11 * time.Second, 19 * time.Second}, {5 * time.Second, 25 * time.Second}} {
		link, withheld := wibro(), 0
		link.Each = func(_ sample.Direction, c *udptraffic.CarrierResult) error {
			pause.drop(c)
			for i := range c.Sent.Packets {
				if pause.holds(c, uint32(i)) {
					c.Sent.Packets[i].Stamp = sample.Stamp{}
					withheld++
				}
			}
			return nil
		}
		b := must(t, link, slowly, "reverse")
		b.expect(t, metric.UDPOffered, 2e6/8, 0.01, "reverse")
		b.expect(t, metric.UDPThroughput, 2e6/8, 0.01, "reverse")
		b.expect(t, metric.UDPUnderrun, 0, 0, "reverse")
		b.expect(t, metric.LoadedLoss, 0, 0, "reverse")
		l := b.run.Body.(*saturation.Result).Directions[0].Load
		if want := float64(withheld) / float64(b.run.Body.(*saturation.Result).Directions[0].Counts.Planned); l.Withheld != want || want < 0.2 {
			t.Errorf("%v: %v withheld, want %v", pause, l.Withheld, want)
		}
		if rows := b.run.Body.(*saturation.Result).Tables()[0].Rows; !slices.ContainsFunc(rows, func(r []string) bool { return r[0] == "not sent (path interrupted)" && r[1] != "0.00 %" }) {
			t.Errorf("%v: %v", pause, rows)
		}
	}
}
