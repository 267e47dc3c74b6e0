package main

import (
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
	"oneway.example/tests/tcplog"
)

func TestTCPHasARowOnLinksThatOneWindowFills(t *testing.T) {
	for name, want := range map[string]bool{"wibro": true, "evdo": true, "cellular": false, "codel": false} {
		p, err := lab.LoadProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := steady(p); got != want {
			t.Errorf("%s: a row of TCP: %v, want %v", name, got, want)
		}
	}
}

// A window must fill the link and fit into the path and the queue of each direction.
func TestTCPWindowFillsTheLinkAndFitsItsQueue(t *testing.T) {
	p, err := lab.LoadProfile("wibro")
	if err != nil {
		t.Fatal(err)
	}
	// Downlink 1.25 MB/s in 44 ms; uplink 312.5 kB/s in 44 ms, and 110 kB.
	if got := tcpWindow(p); got < 55_000 || got > 123_750 {
		t.Errorf("a window of %d bytes, want 55000 to 123750", got)
	}
	p.Forward.Queue = 20_000
	if got := tcpWindow(p); got != 0 {
		t.Errorf("a window of %d bytes, want none: the uplink holds 33750", got)
	}
}

// The delays of 400 segments rise from 100 ms by 1 ms each, a fifth is sent twice, and the cookie is before them: of the
// sampled bytes sent once, any distance has about the same median.
func TestTruthOfTheDelayOfTCPDataIsOfBytesSentOnce(t *testing.T) {
	client, server := netip.MustParseAddrPort("10.77.0.1:40000"), netip.MustParseAddrPort("10.77.0.2:50000")
	var log []lab.Record
	send := func(number uint32, payload int, at, delay time.Duration) {
		key, _ := tcplog.Segments(client.Addr(), loadServerPort)(lab.Segment{Source: client, Destination: server, Sequence: number, Payload: payload})
		out := instant.Time(1).Add(at + delay)
		log = append(log, lab.Record{Key: key, Entry: instant.Time(1).Add(at), Outcome: lab.Delivered, Exit: lab.Interval{After: out, Before: out.Add(time.Microsecond)}})
	}
	const first, cookie = 1<<32 - 5000, 17 // the numbers wrap
	send(first, cookie, 0, 0)
	for i := range uint32(400) {
		at := time.Duration(i) * 10 * time.Millisecond
		if i%5 == 0 {
			send(first+cookie+1024*i, 1024, at, time.Second)
		}
		send(first+cookie+1024*i, 1024, at+time.Millisecond, time.Duration(100+i)*time.Millisecond)
	}
	all := tcplog.Connections(log, nil)
	if len(all) != 1 {
		t.Fatalf("%d connections", len(all))
	}
	got := dataDelay(&all[0], sample.Forward)
	// 100 sampled bytes at the ends of segments 3, 7, ... 399; those of 15, 35, ... were sent twice.
	if got == nil || got.Low < 0.27 || got.High > 0.33 || got.High-got.Low < 1e-6 {
		t.Fatalf("%v, want about 0.3 s", got)
	}
	if got := dataDelay(&tcplog.Connection{}, sample.Reverse); got != nil {
		t.Errorf("%v without a segment", got)
	}
}
