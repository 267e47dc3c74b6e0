package lab

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
)

// tally has a receiver's counts of the packets.
type tally struct{ unique, duplicated, reordered uint64 }

func tallyOf(arrivals []arrival) tally {
	var c tally
	seen := make(map[uint64]bool)
	next := uint64(0)
	for _, a := range arrivals {
		switch {
		case seen[a.key]:
			c.duplicated++
		case a.key < next:
			c.reordered++ // RFC 4737 section 3.3
			c.unique++
		default:
			c.unique++
			next = a.key + 1
		}
		seen[a.key] = true
	}
	return c
}

func TestReceiverSeesTheOutcomesOfTheLog(t *testing.T) {
	const seed, count = 42, 3000
	profile := Profile{Name: "faults", Forward: Link{
		Delay: 5 * time.Millisecond, Jitter: 3 * time.Millisecond,
		Loss: 0.03, Duplicate: 0.02, Reorder: 0.05,
	}}
	bothFamilies(t, func(t *testing.T, v6 bool) {
		l := Start(t, Options{Profile: profile, Seed: seed, Classifier: keyed})
		s := newStation(t, l.Client, l.Server, v6)
		s.stream(count, 100, 300*time.Microsecond)
		got := tallyOf(s.finish(l))
		c, _ := l.Counts(sample.Forward)
		t.Logf("log %+v", c)
		want := tally{unique: c.Delivered, duplicated: c.Duplicated, reordered: c.Reordered}
		if got != want {
			t.Errorf("receiver %+v, log %+v", got, want)
		}
		if c.DroppedLoss == 0 || c.Duplicated == 0 || c.Reordered == 0 {
			t.Errorf("not all faults happened: %+v", c)
		}
		if c.Entered != count || c.Delivered+c.DroppedLoss != count {
			t.Errorf("packets not conserved: %+v", c)
		}
	})
}

func TestCorruptedPacketsReachTheSocketAndOnlyThese(t *testing.T) {
	for _, mode := range []ChecksumMode{RepairChecksum, KeepChecksum} {
		name := map[ChecksumMode]string{RepairChecksum: "repair", KeepChecksum: "keep"}[mode]
		t.Run(name, func(t *testing.T) {
			bothFamilies(t, func(t *testing.T, v6 bool) {
				link := Link{Delay: 2 * time.Millisecond, Corrupt: 0.1, Checksum: mode}
				l := Start(t, Options{Profile: Profile{Name: name, Forward: link}, Seed: 1, Classifier: keyed})
				s := newStation(t, l.Client, l.Server, v6)
				const count = 1000
				s.stream(count, 400, 200*time.Microsecond)
				arrivals := s.finish(l)
				c, _ := l.Counts(sample.Forward)
				var damaged uint64
				for _, a := range arrivals {
					if !a.whole {
						damaged++
					}
				}
				wantArrived, wantDamaged := uint64(count), c.Corrupted
				if mode == KeepChecksum {
					wantArrived, wantDamaged = count-c.Corrupted, 0
				}
				if c.Corrupted == 0 || damaged != wantDamaged || uint64(len(arrivals)) != wantArrived {
					t.Errorf("%d arrived, %d damaged; want %d and %d; log %+v",
						len(arrivals), damaged, wantArrived, wantDamaged, c)
				}
			})
		})
	}
}

// outcome is the part of a packet's outcome that depends on the seed.
type outcome struct {
	key                   uint64
	outcome               Outcome
	overtaken             uint8
	duplicated, corrupted bool
}

func TestSeededRunsRepeatTheirOutcomes(t *testing.T) {
	run := func(seed uint64) []outcome {
		link := Link{Delay: time.Millisecond, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.1}
		l := Start(t, Options{Profile: Profile{Name: "seeded", Forward: link}, Seed: seed, Classifier: keyed})
		s := newStation(t, l.Client, l.Server, false)
		s.stream(400, 60, 200*time.Microsecond)
		s.finish(l)
		var all []outcome
		for _, r := range l.Log(sample.Forward) {
			all = append(all, outcome{r.Key, r.Outcome, r.Overtaken, r.Duplicated, r.Corrupted})
		}
		return all
	}
	first, second, other := run(8), run(8), run(9)
	same := 0
	for i := range first {
		if first[i] != second[i] {
			t.Errorf("packet %d: %+v, then %+v", i, first[i], second[i])
		}
		if first[i] == other[i] {
			same++
		}
	}
	if same == len(first) {
		t.Error("another seed gave the same outcomes")
	}
}

func TestScriptDecidesBothDirections(t *testing.T) {
	script := func(d sample.Direction, key uint64, f Faults) Faults {
		return Faults{Lose: d == sample.Reverse && key%10 == 3}
	}
	l := Start(t, Options{Profile: Profile{Name: "script", Forward: Link{Loss: 1}}, Script: script, Classifier: keyed})
	forward := newStation(t, l.Client, l.Server, false)
	reverse := newStation(t, l.Server, l.Client, false)
	forward.stream(100, 60, 0)
	reverse.stream(100, 60, 0)
	if n := len(forward.finish(l)); n != 100 {
		t.Errorf("forward: %d arrived, want 100", n)
	}
	if n := len(reverse.finish(l)); n != 90 {
		t.Errorf("reverse: %d arrived, want 90", n)
	}
}

func TestLinkCanChangeWhileItRuns(t *testing.T) {
	l := Start(t, Options{Classifier: keyed})
	s := newStation(t, l.Client, l.Server, false)
	s.send(0, 60)
	drain(t, l)
	if err := l.SetLink(sample.Forward, Link{Delay: 20 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	s.send(1, 60)
	drain(t, l)
	log := l.Log(sample.Forward)
	if log[0].Due != log[0].Entry || log[1].Due.Sub(log[1].Entry) != 20*time.Millisecond {
		t.Errorf("delays due: %v, %v", log[0].Due.Sub(log[0].Entry), log[1].Due.Sub(log[1].Entry))
	}
	if err := l.SetLink(sample.Reverse, Link{Loss: 3}); err == nil {
		t.Error("a loss of 300 % was accepted")
	}
}

func drain(t *testing.T, l *Lab) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := l.Drain(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestLossOfTheLabsOwnIsAnError stops the link's thread until the ring runs over.
func TestLossOfTheLabsOwnIsAnError(t *testing.T) {
	Require(t)
	reached, release := make(chan struct{}), make(chan struct{})
	stuck := func(payload []byte, src, dst netip.AddrPort) (uint64, bool) {
		key, ok := keyed(payload, src, dst)
		if ok && key == 0 {
			close(reached)
			<-release
		}
		return key, ok
	}
	l, err := New(Options{Classifier: stuck})
	if err != nil {
		t.Fatal(err)
	}
	s := newStation(t, l.Client, l.Server, false)
	s.send(0, 60)
	<-reached
	for n := range uint64(ringFrames + 100) {
		s.send(1+n, 60)
	}
	close(release)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for what, err := range map[string]error{"Drain": l.Drain(ctx), "Err": l.Err(), "Close": l.Close()} {
		if !errors.Is(err, errLost) || !strings.Contains(err.Error(), "frames did not fit into the ring") {
			t.Errorf("%s: got %v, want the loss", what, err)
		}
	}
}

// TestFirstPacketsAreNotLost: the network is up when New returns.
func TestFirstPacketsAreNotLost(t *testing.T) {
	for range 5 {
		l := Start(t, Options{Classifier: keyed})
		up, down := newStation(t, l.Client, l.Server, true), newStation(t, l.Server, l.Client, false)
		up.send(0, 60)
		down.send(0, 60)
		if a, b := len(up.finish(l)), len(down.finish(l)); a != 1 || b != 1 {
			t.Fatalf("%d and %d arrived, want 1 and 1", a, b)
		}
	}
}
