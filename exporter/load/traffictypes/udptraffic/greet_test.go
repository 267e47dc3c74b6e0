package udptraffic

import (
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/stream"
	"oneway.example/tests/remoteend"
)

func TestLoadServerSendsHellosToTheProvedAddressOnly(t *testing.T) {
	p := meet(t, running(t), newHost())
	cookie, err := p.session.Hello(t.Context(), p.at())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * helloEvery) // the absence of packets has no event
	if n := p.endpoint.Stats().Hellos; n != 0 {
		t.Errorf("%d hellos before the proof", n)
	}
	if ago, greeted := p.session.LastReceived(); greeted || ago < 3*helloEvery {
		t.Errorf("the last packet is %v old, greeted: %v; want the challenge", ago, greeted)
	}
	if err := p.Prove(t.Context(), cookie); err != nil {
		t.Fatal(err)
	}
	remoteend.Eventually(t, "three hellos", func() bool { return p.endpoint.Stats().Hellos >= 3 })
	if ago, greeted := p.session.LastReceived(); !greeted || ago > remoteend.Timeout {
		t.Errorf("the last packet is %v old, greeted: %v", ago, greeted)
	}
}

// The packets of a stream show that the load server runs; one with long pauses has hellos too.
func TestLoadServerSendsHellosUnlessAStreamReplacesThem(t *testing.T) {
	for pause, want := range map[time.Duration]bool{1200 * time.Millisecond: true, time.Millisecond: false} {
		p := ready(t)
		remoteend.Eventually(t, "the first hello", func() bool { return p.endpoint.Stats().Hellos >= 1 })
		x := startOf(1, sample.Reverse)
		s := x.Plan.Segments[0]
		s.Bursts = int(1200 * time.Millisecond / s.Interval)
		later := s
		later.Pause = pause
		x.Plan.Segments = []stream.Segment{s, later}
		r, err := p.session.Expect(1, x.Plan)
		if err != nil {
			t.Fatal(err)
		}
		go (&carrier{session: p.session, remote: p.at()}).hello(t.Context()) // consent
		if _, err := p.Start(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		remoteend.Eventually(t, "the stream", func() bool { return r.Progress().Packets > 0 })
		before := p.endpoint.Stats().Hellos
		remoteend.Eventually(t, "most of the stream", func() bool { return r.Progress().Packets > 2*s.Bursts-s.Bursts/2 })
		if during := p.endpoint.Stats().Hellos - before; want && during == 0 || !want && during > 1 { // one may be under way
			t.Errorf("a pause of %v: %d hellos during the stream", pause, during)
		}
		if _, _, err := p.Wait(t.Context(), 1); err != nil {
			t.Error(err)
		}
	}
}

// greeter is one end of a simulated session.
type greeter struct {
	// next is when it decides next, received when the last packet arrived, and asked when one with a reply did.
	next, received, asked time.Duration
	streams               bool // it sends a stream, and no hello packets
	silences              int  // above Outage

	// offered is when the load server sent the last cookie that the client received, offeredAt when that arrived; proof is when the last one
	// was sent that the load server has back.
	offered, offeredAt, proof time.Duration
	proves                    bool // the load server
	expired                   int  // proofs
}

// renew notes a returned cookie.
func (g *greeter) renew(at, cookie time.Duration) {
	if g.proves && cookie > g.proof {
		if at-g.proof > stream.CookieLasts {
			g.expired++
		}
		g.proof = cookie
	}
}

// receive notes a packet, unless the path loses it.
func (g *greeter) receive(at time.Duration, lost bool) {
	if lost {
		return
	}
	if at-g.received > Outage {
		g.silences++
	}
	g.received = at
}

// lossy is a path that loses shares of the packets to each end.
type lossy struct {
	*rand.Rand
	toClient, toServer float64
}

// greet lets an end decide as greet does, if it is time.
func (l *lossy) greet(at time.Duration, from, to *greeter, there, back float64) {
	for range 10 * map[bool]int{true: 1}[from.streams] {
		to.receive(at, l.Float64() < there)
	}
	if at < from.next {
		return
	}
	d := contact{
		received: eventOf(at-from.received, true), asked: eventOf(at-from.asked, true),
		proved: eventOf(at-from.proof, from.proves), offered: eventOf(at-from.offeredAt, from.offered > 0),
	}.decide(!from.streams)
	if d.offers && l.Float64() >= there {
		to.receive(at, false)
		to.offered, to.offeredAt = at, at
	}
	if lost := l.Float64() < there; d.asks || d.greets {
		to.receive(at, lost)
		if !lost {
			to.renew(at, from.offered)
		}
		if d.asks && !lost {
			to.asked = at
			from.receive(at, l.Float64() < back)
		}
	}
	from.next = at + d.wait
}

// silences returns how often an end that runs is told dead in some hours, and how often the proof of the client's address expires.
func (l *lossy) silences(hours int, clientStreams, serverStreams bool) (silences, expired int) {
	client, server := &greeter{streams: clientStreams}, &greeter{streams: serverStreams, proves: true}
	for at := time.Duration(0); at < time.Duration(hours)*time.Hour; at += askEvery {
		l.greet(at, client, server, l.toServer, l.toClient)
		l.greet(at, server, client, l.toClient, l.toServer)
	}
	return client.silences + server.silences, server.expired
}

// Two hello packets a second would tell an end dead that runs some 100 times in an hour at 90 % loss.
func TestEndThatRunsIsRarelyToldDeadOnALossyPath(t *testing.T) {
	const hours = 20
	for name, c := range map[string]struct {
		toClient, toServer                 float64
		streams                            bool
		most, mostWithAStream, mostExpired int // in hours; mostWithAStream: the load server sends one, and no hellos
	}{
		"to the client, which sends":            {0.9, 0, true, 0, 0, 0},
		"to the client":                         {0.9, 0, false, 0, 0, 0},
		"to the server":                         {0, 0.9, false, 0, 0, 0},
		"to the client, and half back":          {0.9, 0.5, false, 0, 0, 0},
		"half of both, and the client sends":    {0.5, 0.5, true, 0, 0, 0},
		"19 of 20 to the client, which sends":   {0.95, 0, true, 10, 10, 10},
		"of both":                               {0.9, 0.9, false, 10, 40, 5},
		"of both, and the client sends as well": {0.9, 0.9, true, 20, 20, 20},
	} {
		for _, serverStreams := range []bool{false, true} {
			l := &lossy{rand.New(rand.NewPCG(1, 2)), c.toClient, c.toServer}
			got, expired := l.silences(hours, c.streams, serverStreams)
			t.Logf("%s, server sends %v: %d in %d hours, %d proofs expired", name, serverStreams, got, hours, expired)
			most := c.most
			if serverStreams {
				most = c.mostWithAStream
			}
			if got > most || expired > c.mostExpired {
				t.Errorf("%s, server sends %v: told dead %d times in %d hours, want %d at most; %d proofs expired, want %d", name, serverStreams, got, hours, most, expired, c.mostExpired)
			}
		}
	}
}
