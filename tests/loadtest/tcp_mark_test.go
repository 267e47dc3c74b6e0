package loadtest

import (
	"math"
	"os"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
)

// askForECN lets the connections of a host request ECN; the kernel's default only accepts it.
func askForECN(t *testing.T, h *lab.Host) {
	t.Helper()
	if err := h.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/tcp_ecn", []byte("1"), 0) }); err != nil {
		t.Fatal(err)
	}
}

// The share of marked segments is that of the link's log, in each direction, and the echoed share is larger. A kernel that
// does not count marks reports the echoed share only.
func TestMarkedShareIsThatOfTheLink(t *testing.T) {
	const share = 0.02
	marking := lab.Link{Rate: 40e6, Delay: 10 * time.Millisecond, Queue: 200_000, Mark: share}
	s := newSite(t, lab.Options{Profile: lab.Profile{Name: "marking", Forward: marking, Reverse: marking}})
	askForECN(t, s.Network.Client)
	for _, d := range sample.Directions() {
		_, before := s.Network.Counts(d)
		r := s.StartTCP(t, "--congestion-control=cubic", "--bytes=6MB", "--duration=60s", "--direction="+d.String()).FinishTCP(t, 0)
		s.Drained(t)
		_, c := s.Network.Counts(d)
		got := r.Result.Directions[0]
		truth := float64(c.Marked-before.Marked) / float64(c.Capable-before.Capable)
		if got.Echoed == nil || c.Marked-before.Marked < 20 || !got.Flows[0].ECN {
			t.Fatalf("%s: %+v, the link has marked %d packets", d, got.Echoed, c.Marked-before.Marked)
		}
		t.Logf("%s: the link has marked %.4f of %d packets; echoed %.4f", d, truth, c.Capable-before.Capable, *got.Echoed)
		if *got.Echoed < 1.5*truth {
			t.Errorf("%s: echoed %.4f", d, *got.Echoed)
		}
		if got.Marked == nil {
			t.Logf("%s: this kernel does not count marks", d)
			continue
		}
		// The link also marks packets of the control connection: more than these by chance in one run of 1,000,000.
		const segments = 6e6 / 1448
		control := float64(c.Capable-before.Capable) - segments
		if math.Abs(*got.Marked-truth) > (5+3*control*share)/segments {
			t.Errorf("%s: marked %.5f, %.0f packets of the control connection", d, *got.Marked, control)
		}
	}
}
