package tcplog

import (
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/lab"
)

const ms = time.Millisecond

// logs makes the logs of a connection whose sequence numbers wrap.
type logs struct {
	data, acks []lab.Record
}

var (
	client  = netip.MustParseAddrPort("10.77.0.1:40000")
	server  = netip.MustParseAddrPort("10.77.0.2:50000")
	control = netip.MustParseAddrPort("10.77.0.2:8620")
)

const first = 1<<32 - 1500

func (l *logs) send(t *testing.T, number uint32, enter, leave time.Duration) {
	t.Helper()
	key, ok := Segments(client.Addr(), control.Port())(lab.Segment{Source: server, Destination: client, Sequence: first + number, Payload: 1000})
	if !ok {
		t.Fatal("not selected")
	}
	r := lab.Record{Key: key, Entry: instant.Time(1).Add(enter), Outcome: lab.DroppedQueue}
	if leave > 0 {
		r.Outcome, r.Exit = lab.Delivered, lab.Interval{After: instant.Time(1).Add(leave), Before: instant.Time(1).Add(leave)}
	}
	l.data = append(l.data, r)
}

func (l *logs) ack(number uint32, leave time.Duration) {
	key, _ := Segments(client.Addr(), control.Port())(lab.Segment{Source: client, Destination: server, Acknowledgment: first + number})
	at := instant.Time(1).Add(leave)
	l.acks = append(l.acks, lab.Record{Key: key, Outcome: lab.Delivered, Exit: lab.Interval{After: at, Before: at}})
}

// Ten segments, one each 10 ms, leave after 20 ms, and each acknowledgment after 50 ms; the fourth is dropped, and is sent
// again at 120 ms: what is behind it is of use only then.
func TestTruthOfAConnection(t *testing.T) {
	var l logs
	for i := range 10 {
		at := time.Duration(i) * 10 * ms
		if i == 3 {
			l.send(t, 3000, at, 0)
			continue
		}
		l.send(t, uint32(1000*i), at, at+20*ms)
		if i < 3 {
			l.ack(uint32(1000*i+1000), at+50*ms)
		}
	}
	l.send(t, 3000, 120*ms, 140*ms)
	l.ack(10000, 170*ms)
	all := Connections(l.data, l.acks)
	if len(all) != 1 || all[0].Port != client.Port() {
		t.Fatalf("%+v", all)
	}
	// The time begins with the arrival at 20 ms: 70 ms are at 90 ms, when three segments are in order.
	for _, c := range []struct {
		omit, planned time.Duration
		want          float64
	}{{0, 70 * ms, 3000 / 0.07}, {15 * ms, 70 * ms, 1000 / 0.055}, {0, 130 * ms, 10000 / 0.13}, {100 * ms, 200 * ms, 7000 / 0.1}} {
		if got := all[0].Between(c.omit, c.planned); got.Throughput != c.want || got.Segments != 11 || got.Again != 1 || got.Dropped != 1 {
			t.Errorf("%v to %v: %+v, want %v", c.omit, c.planned, got, c.want)
		}
	}
	// The last acknowledgment is for the tenth segment, entered at 90 ms.
	if got := all[0].Between(0, time.Second).RTT; got != [3]time.Duration{50 * ms, 50 * ms, 50 * ms} {
		t.Errorf("round trips %v", got)
	}
	if begin, end := all[0].Time(); end.Sub(begin) != 140*ms {
		t.Errorf("from %v to %v", begin, end)
	}
}

func TestControlConnectionAndShortOnesAreLeftOut(t *testing.T) {
	if _, ok := Segments(client.Addr(), control.Port())(lab.Segment{Source: client, Destination: control}); ok {
		t.Error("the control connection is selected")
	}
	for _, reset := range []bool{false, true} {
		if _, ok := Segments(client.Addr(), control.Port())(lab.Segment{Source: client, Destination: netip.AddrPortFrom(control.Addr(), 1), Reset: reset}); ok == reset {
			t.Errorf("reset %t: selected %t", reset, ok)
		}
	}
	var l logs
	l.send(t, 0, 0, ms)
	if all := Connections(l.data, l.acks); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}
