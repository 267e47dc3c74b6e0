package main

import (
	"testing"

	"oneway.example/tests/lab"
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
