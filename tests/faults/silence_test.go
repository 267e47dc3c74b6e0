package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/traffic"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/program"
)

// A firewall that drops the control connection alone, in one direction, ends a run of each type of traffic with the reason, though
// hello packets or payload arrive: it does not wait for records that cannot come.
func TestRunOfASilentControlConnectionEnds(t *testing.T) {
	t.Parallel()
	to, from := fmt.Sprintf("tcp dport %d", hostport.LoadServer), fmt.Sprintf("tcp sport %d", hostport.LoadServer)
	for name, c := range map[string]struct {
		kind  string
		args  []string
		drops string
		moves sample.Direction
		moved uint64        // packets before the fault
		drain time.Duration // a test of UDP waits as long for late packets
		says  string
	}{
		"tcp forward": {"tcp", []string{"--direction=forward", "--duration=60s"}, to, sample.Forward, 400, 0, "over the control connection (TCP)"},
		"tcp reverse": {"tcp", []string{"--direction=reverse", "--duration=60s"}, from, sample.Reverse, 400, 0, "over the control connection (TCP)"},
		"tcp-short":   {"tcp-short", []string{"--repetitions=500"}, from, sample.Reverse, 400, 0, "over TCP"},
		"message":     {"message", []string{"--direction=forward", "--duration=2s", "--drain-timeout=1s"}, to, sample.Forward, 50, 3 * time.Second, "over the control connection (TCP)"},
		"size-sweep": {
			"size-sweep",
			[]string{"--direction=forward", "--packet-bytes=500", "--packet-rates=200", "--cell-duration=2s", "--repetitions=20", "--drain-timeout=1s"},
			from, sample.Forward, 100, 3 * time.Second, "over the control connection (TCP)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, loadsite.OverSlow())
			p := s.Test(t, c.kind, c.args...)
			program.Eventually(t, "the test runs", func() bool {
				streams, others := s.Network.Counts(c.moves)
				return streams.Delivered+others.Delivered > c.moved
			})
			at := time.Now()
			nft(t, s.Network.Client, "inet", map[string]string{to: "output", from: "input"}[c.drops], c.drops)
			var r struct{ Result, Reason, Error string }
			p.Decode(t, 1, &r)
			took := p.Ended.Sub(at)
			t.Logf("the client ended %v later: %s", took, r.Error)
			if took < traffic.IdleTimeout-3*time.Second || took > traffic.IdleTimeout+c.drain+5*time.Second {
				t.Errorf("the client ended after %v, want %v", took, traffic.IdleTimeout+c.drain)
			}
			if r.Result != "incomplete" || r.Reason != "session_lost" || !strings.Contains(r.Error, "nothing was received from the load server at "+s.At.String()+" "+c.says+" for 1") {
				t.Errorf("%s, %s: %s", r.Result, r.Reason, r.Error)
			}
		})
	}
}

// A firewall that begins to reject UDP during a run is named, with its ICMP message, whichever end is the first to end the session.
func TestRunWhoseUDPIsRejectedNamesTheMessage(t *testing.T) {
	t.Parallel()
	for _, d := range sample.Directions() {
		t.Run(d.String(), func(t *testing.T) {
			s := newSite(t, loadsite.OverSlow())
			p := s.Test(t, "saturation", "--direction="+d.String(), "--duration=60s", "--rate-"+d.String()+"=1Mb/s")
			program.Eventually(t, "the test runs", func() bool {
				streams, _ := s.Network.Counts(d)
				return streams.Delivered > 100
			})
			nftRule(t, s.Network.Server, "inet", "input", fmt.Sprintf("udp dport %d reject with icmpx admin-prohibited", hostport.LoadServer))
			var r struct{ Result, Reason, Error string }
			p.Decode(t, 1, &r)
			t.Logf("%s, %s: %s", r.Result, r.Reason, r.Error)
			if r.Result != "incomplete" || !strings.Contains(r.Error, "(ICMP administratively prohibited from "+s.At.Addr().String()+")") {
				t.Errorf("%s, %s: %s", r.Result, r.Reason, r.Error)
			}
		})
	}
}

// An interruption of the path that the session survives ends no test of packet trains: it goes on with the next ones, at their length.
func TestTrainsGoOnAfterAnOutage(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	p := s.Test(t, "train", "--direction=forward", "--no-path-mtu", "--payload-bytes=1000", "--trains=40", "--long-train-packets=0")
	program.Eventually(t, "trains arrive", func() bool {
		now, _ := s.Network.Counts(sample.Forward)
		return now.Delivered > 60
	})
	s.cut(t)
	time.Sleep(8 * time.Second) // the outage: shorter than the 10 s of silence that end a session
	s.mend(t)
	var r struct {
		Result, Reason, Error string
		Notes                 []string
		Results               struct {
			Directions []struct {
				Sizes []struct {
					TrainPackets int            `json:"train_packets"`
					Trains       map[string]int `json:"trains"`
				} `json:"sizes"`
			} `json:"directions"`
		}
	}
	select {
	case <-p.Done:
	case <-time.After(program.Timeout):
	}
	p.Decode(t, p.Wait(t), &r)
	z := r.Results.Directions[0].Sizes[0]
	t.Logf("%s, %s: %v, %q", r.Result, r.Error, z.Trains, r.Notes)
	if r.Result != "completed" && r.Reason != "sender_too_slow" && r.Reason != "nothing_measured" {
		t.Errorf("%s, %s: %s", r.Result, r.Reason, r.Error)
	}
	all := 0
	for _, n := range z.Trains {
		all += n
	}
	if z.TrainPackets != 25 || all-z.Trains["lost"] < 6 { // some two before the outage
		t.Errorf("%d trains, of %d packets at last: %v", all, z.TrainPackets, z.Trains)
	}
}
