package tcpdelay

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/tests/lab"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/tcplog"
)

var truthRuns = flag.Int("truth.runs", 0, "runs over each kind of link in each direction; 0: one in one direction")

// truthLinks are those of the truth test.
func truthLinks() []lab.Profile {
	return []lab.Profile{
		both("full queue", lab.Link{Rate: 10e6, Delay: 10 * time.Millisecond, Queue: 60_000}),
		both("losses", lab.Link{Rate: 20e6, Delay: 10 * time.Millisecond, Queue: 60_000, Loss: 0.005}),
		both("reordering", lab.Link{Rate: 20e6, Delay: 5 * time.Millisecond, Queue: 60_000, Loss: 0.001, Reorder: 0.005, Duplicate: 0.005}),
		both("bursts of losses", lab.Link{Rate: 5e6, Delay: 20 * time.Millisecond, Jitter: 3 * time.Millisecond, Queue: 30_000, Loss: 0.004, LossBurst: 3, Duplicate: 0.002}),
	}
}

func both(name string, l lab.Link) lab.Profile {
	return lab.Profile{Name: name, Forward: l, Reverse: l}
}

// The delay of TCP data agrees with the link's log within its bound, whatever the link does to segments, and what was sent again
// has the times of its transmissions and of its first arrival.
func TestDelayOfTCPDataIsThatOfTheLinksLog(t *testing.T) {
	var all truth
	for i, link := range truthLinks() {
		for _, d := range sample.Directions() {
			if *truthRuns == 0 && int(d) != i%2 {
				continue
			}
			for seed := range max(1, *truthRuns) {
				t.Run(fmt.Sprintf("%s, %s, seed %d", link.Name, d, 1+seed), func(t *testing.T) {
					var one truth
					one.compare(t, d, link, uint64(1+seed))
					t.Logf("%s", &one)
					all.add(&one)
				})
			}
		}
	}
	t.Logf("all: %s", &all)
	all.judge(t)
}

// stamped does one transfer over a link, and returns it with its connection in the link's log.
func stamped(t *testing.T, d sample.Direction, link lab.Profile, seed uint64) (*tcptraffic.Result, tcplog.Connection) {
	t.Helper()
	client, _ := lab.Addresses()
	l := lab.Start(t, lab.Options{
		Profile: link, Seed: seed, Segments: tcplog.Segments(client, loadcontrol.DefaultPort),
	})
	s := loadsite.Between(t, binary, l.Client, l.Server, l.Server.Addr4)
	s.Network = l
	res := perform(t, s, tcptraffic.Plan{
		Direction: d, Flows: []tcptraffic.Flow{{MessageBytes: 64 << 10}}, Duration: 2500 * time.Millisecond, Most: 1 << 29,
		Interval: 100 * time.Millisecond, Idle: 10 * time.Second, Stamps: true,
	})
	s.Drained(t)
	all := tcplog.Connections(l.Log(d), l.Log(1-d))
	if len(all) != 1 {
		t.Fatalf("the log has %d connections, want 1", len(all))
	}
	return res, all[0]
}

// proof is what the client sends before the payload: the cookie and the index of the flow.
const proof = 17

// compare compares each sample of a transfer with the log.
func (v *truth) compare(t *testing.T, d sample.Direction, link lab.Profile, seed uint64) {
	t.Helper()
	res, logged := stamped(t, d, link, seed)
	before := int64(0)
	if d == sample.Forward {
		before = proof
	}
	received := map[int64]tcpstamp.Received{}
	for _, r := range res.Receiver[0].Received {
		received[r.Offset] = r
	}
	offsets := make([]int64, len(res.Sender[0].Sent))
	for i, s := range res.Sender[0].Sent {
		offsets[i] = s.Offset + before
	}
	v.received += len(received)
	for i, b := range logged.Bytes(offsets) {
		s := &res.Sender[0].Sent[i]
		v.sent++
		if s.First == 0 { // it was never sent, or another byte of its segment has the stamps
			continue
		}
		v.stamped++
		if len(b.Entries) == 0 {
			t.Errorf("byte %d has left the host, and the link has not seen it", s.Offset)
			continue
		}
		v.sender(t, s, &b)
		if r, ok := received[s.Offset]; ok && r.At != 0 {
			v.joined++
			v.arrival(t, s, &r, &b)
		}
	}
}

const (
	// stampErrors is the part of a bound that is of the two timestamps.
	stampErrors = 2 * bound.KernelError
	// mostInside is the longest time that a segment is in the sending host after its timestamp: the kernel queues the
	// timestamp, and wakes the sender, before it passes the segment on. The log begins behind it. On a quiet machine it
	// is 5 us in the median and 60 us at most, on a busy one some are a millisecond.
	mostInside = 5 * time.Millisecond
)

// inside returns the time of a segment between its timestamp and the link, as far as that is the host's.
func inside(stamp, entry instant.Time) time.Duration {
	return min(max(0, entry.Sub(stamp)), mostInside)
}
