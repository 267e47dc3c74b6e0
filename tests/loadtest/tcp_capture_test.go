package loadtest

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/capture"
	"oneway.example/tests/lab"
	"oneway.example/tests/loadsite"
)

// sequences returns those of a host's data connections: not of the control connection.
func (w *watcher) sequences(t *testing.T, stop <-chan struct{}) map[[2]netip.AddrPort]*capture.Sequence {
	t.Helper()
	all := map[[2]netip.AddrPort]*capture.Sequence{}
	for last := false; ; {
		err := w.Each(func(p capture.Sent, segment []byte) {
			if p.Protocol != unix.IPPROTO_TCP {
				return
			}
			key := [2]netip.AddrPort{p.From, p.To}
			if all[key] == nil {
				all[key] = &capture.Sequence{}
			}
			all[key].Add(segment)
		})
		if err != nil {
			t.Fatal(err)
		}
		if last {
			return all
		}
		select {
		case <-stop:
			last = true
		case <-time.After(20 * time.Millisecond): // the buffer holds more packets than arrive in this time
		}
	}
}

// captured starts a run, captures at the interface of its sender, and returns the connections with payload.
func (s *site) captured(t *testing.T, d sample.Direction, more ...string) (*loadsite.TCPOutcome, []*capture.Sequence) {
	t.Helper()
	w := watch(t, map[sample.Direction]*lab.Host{sample.Forward: s.Network.Client, sample.Reverse: s.Network.Server}[d])
	p := s.StartTCP(t, append(more, "--direction="+d.String())...)
	seen := w.sequences(t, p.Done)
	r := p.FinishTCP(t, 0)
	var flows []*capture.Sequence
	for of, one := range seen {
		if of[0] != s.At && of[1] != s.At && one.Bytes > 1000 {
			t.Logf("%s, capture: %d bytes sent, %d bytes in %d segments again", d, one.Bytes, one.Again, one.Segments)
			flows = append(flows, one)
		}
	}
	if n := len(r.Result.Directions[0].Flows); len(flows) != n {
		t.Fatalf("%s: the capture has %d connections, want %d", d, len(flows), n)
	}
	return &r, flows
}

// overFaulty is a link that loses and reorders packets.
func overFaulty() lab.Options {
	faulty := lab.Link{Rate: 20e6, Delay: 10 * time.Millisecond, Queue: 60_000, Loss: 0.01, Reorder: 0.002}
	return lab.Options{Profile: lab.Profile{Name: "faulty", Forward: faulty, Reverse: faulty}}
}

// What the result reports as sent, and as sent again, is what a capture at the sender's interface has, byte by byte, in each
// direction and with several flows.
func TestRetransmissionsAreThoseOfACapture(t *testing.T) {
	s := newSite(t, overFaulty())
	for _, d := range sample.Directions() {
		r, flows := s.captured(t, d, "--flows=2", "--congestion-control=cubic", "--congestion-control=reno", "--bytes=6MB", "--duration=60s")
		for i, f := range r.Result.Directions[0].Flows {
			t.Logf("%s, flow %d: %d payload, %d bytes sent, %d bytes and %d segments again", d, i, f.Payload, f.Sent, f.Retransmitted, f.RetransmittedSegments)
			if f.Retransmitted < 5*f.MSS {
				t.Errorf("%s, flow %d: %d bytes again; the link has lost too little for this test", d, i, f.Retransmitted)
			}
			if !slices.ContainsFunc(flows, func(one *capture.Sequence) bool {
				return one.Bytes == f.Sent && one.Again == f.Retransmitted && one.Segments == f.RetransmittedSegments
			}) {
				t.Errorf("%s, flow %d: no connection of the capture has these bytes", d, i)
			}
		}
	}
}

// A transfer by time ends with a reset: the kernel sends no more than a window of segments between its last state and that.
func TestTransferByTimeIsThatOfACapture(t *testing.T) {
	s := newSite(t, overFaulty())
	for _, d := range sample.Directions() {
		r, flows := s.captured(t, d, "--congestion-control=cubic", "--duration=3s", "--omit=0s")
		f, one := r.Result.Directions[0].Flows[0], flows[0]
		t.Logf("%s: %d payload, %d bytes sent, %d bytes again", d, f.Payload, f.Sent, f.Retransmitted)
		const window = 50 * 1448
		if more, again := one.Bytes-f.Sent, one.Again-f.Retransmitted; more < 0 || more > window || again < 0 || again > more {
			t.Errorf("%s: the capture has %d bytes more, of them %d again", d, more, again)
		}
	}
}
