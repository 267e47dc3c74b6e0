package stamp

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
)

// TestStatelessReflectorsLossesAreOfNoDirection: 60 % are lost forward, none in reverse; the directions cannot be
// distinguished.
func TestStatelessReflectorsLossesAreOfNoDirection(t *testing.T) {
	b := newTestbed(t, reflector.Options{Stateless: true})
	p := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, payload []byte) (time.Duration, bool) {
		return 0, d == sample.Forward && !isStatsQuery(payload) && numberOf(d, payload)%5 < 3
	})
	o := quick()
	o.LossTimeout = 200 * time.Millisecond
	r := b.to(p.addr).measure(t, o, 500)
	if r.Reflector != "stateless" || r.RoundTrip.Lost != 300 {
		t.Fatal(asJSON(t, r))
	}
	for _, d := range []DirectionReport{r.Forward, r.Reverse} {
		if d.Delay == nil || d.Delay.P50 != nil || d.Delay.P99 != nil || len(d.Voice) > 0 {
			t.Errorf("quantiles or ratings although the number of infinite delays is unknown: %s", asJSON(t, d))
		}
	}
}

// TestSteadyLossOfAForeignReflectorIsToldDuringTheRun: some packets are always outstanding.
func TestSteadyLossOfAForeignReflectorIsToldDuringTheRun(t *testing.T) {
	t.Parallel()
	lostThere := func(seq uint64) bool { return seq%5 < 3 }
	remote := &bareReflector{stateful: true, lost: func(seq uint32) (there, back bool) {
		return lostThere(uint64(seq)), seq%10 == 4
	}}
	b := newTestbed(t, reflector.Options{})
	o := quick()
	o.LossTimeout = 200 * time.Millisecond
	p, err := NewType().NewProber(b.env, probe.Target{Peer: fakePeer(t, remote.reply)}, o)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	_, err = p.Measure(t.Context(), 1500, func(r Report) {
		f := r.Forward
		if r.Reflector != "stateful" || *f.Sent == 1500 {
			return
		}
		if f.Lost == nil {
			if f.Received != nil {
				t.Errorf("received %d, want unknown", *f.Received)
			}
			return
		}
		told++
		decided, lost := *f.Lost+*f.Received, uint64(0)
		for seq := range decided {
			if lostThere(seq) {
				lost++
			}
		}
		if lost != *f.Lost || decided == 0 {
			t.Errorf("of %d packets %d were lost, %d reported", decided, lost, *f.Lost)
		}
	})
	if err != nil || told == 0 {
		t.Errorf("error %v, losses reported %d times during the run", err, told)
	}
}

// TestNumbersThatBeginAsTheSendersAreTheReflectors: it starts after the opening queries, so that only the last reply shows
// that it numbers its replies itself.
func TestNumbersThatBeginAsTheSendersAreTheReflectors(t *testing.T) {
	next, started := uint32(0), false
	peer := fakePeer(t, func(q []byte) [][]byte {
		if started = started || !isStatsQuery(q); !started {
			return nil
		}
		b := replyTo(q, next)
		next++
		return [][]byte{b}
	})
	r := newTestbed(t, reflector.Options{}).to(peer).measure(t, quick(), 50)
	if f := r.Forward; r.Reflector != "stateful" || f.Lost == nil || *f.Lost != 0 || *f.Received != 50 || *f.Outstanding != 0 {
		t.Error(asJSON(t, r))
	}
}

// TestLossRatioOfAReflectorThatNumbersAsTheSender: the first test packet is lost, and the reply to the opening query has its number, so
// that only the last reply shows that the reflector numbers its replies itself.
func TestLossRatioOfAReflectorThatNumbersAsTheSender(t *testing.T) {
	remote := &bareReflector{stateful: true, lost: func(seq uint32) (there, back bool) { return seq == 0, false }}
	r := newTestbed(t, reflector.Options{}).to(fakePeer(t, remote.reply)).measure(t, quick(), 50)
	if f := r.Forward; r.Reflector != "stateful" || f.Lost == nil || *f.Lost != 1 || f.Loss == nil || *f.Loss != 1.0/50 {
		t.Error(asJSON(t, r))
	}
}

// TestStatelessReflectorWithoutLossHasRatingsOfBothDirections: nothing was lost in either.
func TestStatelessReflectorWithoutLossHasRatingsOfBothDirections(t *testing.T) {
	remote := &bareReflector{lost: func(uint32) (there, back bool) { return false, false }}
	r := newTestbed(t, reflector.Options{}).to(fakePeer(t, remote.reply)).measure(t, quick(), 50)
	if r.Reflector != "stateless" || len(r.Forward.Voice) == 0 || len(r.Reverse.Voice) == 0 {
		t.Error(asJSON(t, r))
	}
}

// TestReflectorThatRepliesToOnePort: as a router's TWAMP-Light reflector whose session names the sender's port. Two probes share it.
func TestReflectorThatRepliesToOnePort(t *testing.T) {
	free, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	port := free.LocalAddr().(*net.UDPAddr).Port
	free.Close()
	router, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for b := make([]byte, 1<<16); ; {
			n, from, err := router.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			if int(from.Port()) == port && n >= stampfmt.UnauthenticatedBytes {
				_, _ = router.WriteToUDPAddrPort(replyTo(b[:stampfmt.UnauthenticatedBytes], 0), from) // a lost reply fails the test
			}
		}
	}()
	t.Cleanup(func() { router.Close(); <-ended })
	b := newTestbed(t, reflector.Options{}).to(router.LocalAddr().String())
	o := quick()
	o.LossTimeout = 100 * time.Millisecond
	o.LocalPort = port
	kind := NewType()
	var running sync.WaitGroup
	for _, from := range []int{0, port, port} {
		o.LocalPort = from
		p, err := kind.NewProber(b.env, probe.Target{Peer: b.peer}, o)
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			r, err := p.Measure(t.Context(), 20, nil)
			if replied := r.RoundTrip.Received == 20 && r.RoundTrip.Lost == 0 && err == nil; replied != (from == port) {
				t.Errorf("from port %d: %d replies, %d lost, %v", from, r.RoundTrip.Received, r.RoundTrip.Lost, err)
			}
		})
	}
	running.Wait()
}

// countsAll is a reflector that numbers the replies to all of its senders together, with or without the SSID of the request.
func countsAll(withSSID bool) peerFunc {
	next := uint32(5)
	return func(q []byte) [][]byte {
		a := replyTo(q, next)
		if !withSSID {
			a[14], a[15] = 0, 0
		}
		next++
		return [][]byte{a}
	}
}

// TestReflectorWithOneCounterLosesNothing: several senders at once, none of whose packets is lost.
func TestReflectorWithOneCounterLosesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		every    []time.Duration
		withSSID bool
		together bool // the senders share a socket, as the paths of an agent
	}{
		"one":                       {every: []time.Duration{4 * time.Millisecond}},
		"two":                       {every: []time.Duration{4 * time.Millisecond, 4 * time.Millisecond}},
		"three, one of them faster": {every: []time.Duration{10 * time.Millisecond, 10 * time.Millisecond, 2 * time.Millisecond}},
		"two paths":                 {every: []time.Duration{4 * time.Millisecond, 4 * time.Millisecond}, together: true},
		"two paths, with SSID":      {every: []time.Duration{4 * time.Millisecond, 4 * time.Millisecond}, together: true, withSSID: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestbed(t, reflector.Options{}).to(fakePeer(t, countsAll(c.withSSID)))
			kind, want := NewType(), "stateless"
			if len(c.every) == 1 {
				want = "stateful"
			}
			var running sync.WaitGroup
			for i, every := range c.every {
				if !c.together {
					kind = NewType()
				}
				o, count := quick(), uint64(800*time.Millisecond/every)
				o.Interval = every
				p, err := kind.NewProber(b.env, probe.Target{Path: fmt.Sprint(i), Probe: "stamp", Peer: b.peer}, o)
				if err != nil {
					t.Fatal(err)
				}
				running.Go(func() {
					r, err := p.Measure(t.Context(), count, func(r Report) {
						if lost := r.Reverse.Lost; lost != nil && (*lost > 0 || r.Reflector == "stateless") {
							t.Errorf("%d: during the run %d replies to a %s reflector are lost", i, *lost, r.Reflector)
						}
					})
					directed := want == "stateful"
					if err != nil || r.Reflector != want || r.RoundTrip.Received != count || r.RoundTrip.Lost != 0 ||
						(r.Forward.Lost != nil) != directed || (r.Reverse.Lost != nil) != directed || r.Discarded["wrong_number"] > 2 {
						t.Errorf("%d: %v, want a %s reflector and no loss: %s", i, err, want, asJSON(t, r))
					}
				})
			}
			running.Wait()
		})
	}
}
