package stream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/await"
)

// long returns a plan that is longer than the tests.
func long() Plan {
	return Plan{Segments: []Segment{{PayloadBytes: 200, Interval: time.Millisecond, Burst: 1, Bursts: 600_000}}}
}

func TestEndedSendReturnsWhatWasSent(t *testing.T) {
	e := newEnds(t)
	r, err := e.there.Expect(1, long())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var reported atomic.Int64
	sent, err := e.here.Send(ctx, 1, e.server.LocalAddr(), long(), SendOptions{Progress: func(p Progress) {
		reported.Store(int64(p.Packets))
		if p.Packets > 100 {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	n := len(sent.Packets)
	if n <= 100 || n >= 600_000 || sent.Planned != 600_000 || int(reported.Load()) != n {
		t.Errorf("%d of %d packets sent, progress %d", n, sent.Planned, reported.Load())
	}
	for i, p := range sent.Packets {
		if !p.Stamp.Present() || p.Due == 0 {
			t.Fatalf("packet %d of %d: %+v", i, n, p)
		}
	}
	if sent.Begin != sent.Packets[0].Stamp.At || sent.End != sent.Packets[n-1].Stamp.At {
		t.Errorf("from %v to %v", sent.Begin, sent.End)
	}
	if got := r.Finish(t.Context(), n, testLimit); len(got.Packets) != n {
		t.Errorf("%d of %d arrived", len(got.Packets), n)
	}
}

func TestLeaveEndsSendAndReception(t *testing.T) {
	e := newEnds(t)
	r, err := e.there.Expect(1, long())
	if err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		if _, err := e.here.Send(t.Context(), 1, e.server.LocalAddr(), long(), SendOptions{}); err != nil {
			t.Error(err)
		}
	})
	var got *Received
	ended.Go(func() { got = r.Finish(t.Context(), -1, time.Hour) })
	await.That(t, "packets arrive", func() bool { return r.Progress().Packets > 10 })
	begin := time.Now()
	e.there.Leave()
	e.here.Leave()
	ended.Wait()
	if took := time.Since(begin); took > testLimit/2 {
		t.Errorf("the end took %v", took)
	}
	if len(got.Packets) <= 10 {
		t.Errorf("%d packets arrived", len(got.Packets))
	}
	if _, err := e.there.Expect(2, long()); !errors.Is(err, ErrSessionLeft) {
		t.Errorf("%v, want ErrSessionLeft", err)
	}
	if _, err := e.here.Send(t.Context(), 2, e.server.LocalAddr(), long(), SendOptions{}); !errors.Is(err, ErrSessionLeft) {
		t.Errorf("%v, want ErrSessionLeft", err)
	}
	if again := e.there.endpoint.Join(testSession); again == e.there {
		t.Error("Join returned a session that has left")
	}
}

func TestSendContinuesAfterTheEndOfTheReceiver(t *testing.T) {
	client := running(t, Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	server, err := Open(Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	dead := make(chan error)
	go func() { dead <- server.Run(t.Context()) }()
	e := joined(client, server)
	p := Plan{Segments: []Segment{{PayloadBytes: 200, Interval: time.Millisecond, Burst: 1, Bursts: 500}}}
	var once sync.Once
	sent, err := e.here.Send(t.Context(), 1, server.LocalAddr(), p, SendOptions{Progress: func(p Progress) {
		if p.Packets > 50 {
			once.Do(server.Close)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-dead; err != nil {
		t.Error(err)
	}
	// ECONNREFUSED refers to earlier packets, which were sent.
	if len(sent.Packets) != 500 || sent.Refused > 0 {
		t.Errorf("%d of 500 packets sent, %d refused", len(sent.Packets), sent.Refused)
	}
}

func TestSendOfAClosedEndpointFails(t *testing.T) {
	e := newEnds(t)
	var once sync.Once
	_, err := e.here.Send(t.Context(), 1, e.server.LocalAddr(), long(), SendOptions{Progress: func(p Progress) {
		if p.Packets > 50 {
			once.Do(e.client.Close)
		}
	}})
	if !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v, want net.ErrClosed", err)
	}
	if _, err := e.here.Hello(t.Context(), e.server.LocalAddr()); err == nil {
		t.Error("Hello of a closed endpoint returned no error")
	}
}

func TestReceptionEndsAfterTheIdleTimeout(t *testing.T) {
	e := newEnds(t)
	p := Plan{Segments: []Segment{{PayloadBytes: 100, Burst: 1, Bursts: 10}}}
	s := newUnknownPeer(t, e.server.LocalAddr())
	r, err := e.there.Expect(7, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.there.Expect(7, p); !errors.Is(err, ErrTransferInUse) {
		t.Errorf("%v, want ErrTransferInUse", err)
	}
	for _, seq := range []uint32{0, 1, 1, 5} {
		s.send(dataPacket(testSession, 7, seq, 100))
	}
	await.That(t, "all packets arrive", func() bool { return e.server.Stats().Accepted == 4 })
	begin := time.Now()
	got := r.Finish(t.Context(), 10, 50*time.Millisecond)
	if len(got.Packets) != 4 || time.Since(begin) < 50*time.Millisecond {
		t.Errorf("%d packets in %v", len(got.Packets), time.Since(begin))
	}
	s.send(dataPacket(testSession, 7, 6, 100)) // of a finished transfer
	await.That(t, "the late packet is counted", func() bool { return e.server.Stats().Ignored[UnknownTransfer] == 1 })
	if len(got.Packets) != 4 {
		t.Error("a packet after the end was accepted")
	}

	// The number of packets sent is set late: duplicates do not count.
	if r, err = e.there.Expect(8, p); err != nil {
		t.Fatal(err)
	}
	for _, seq := range []uint32{0, 1, 1} {
		s.send(dataPacket(testSession, 8, seq, 100))
	}
	await.That(t, "two packets arrive", func() bool { return r.Progress().Packets == 2 })
	done := make(chan *Received)
	go func() { done <- r.Finish(t.Context(), -1, time.Hour) }()
	r.SetSent(3)
	s.send(dataPacket(testSession, 8, 2, 100))
	if got := <-done; len(got.Packets) != 4 {
		t.Errorf("%d packets, want 4", len(got.Packets))
	}

	if r, err = e.there.Expect(9, p); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := r.Finish(ctx, -1, time.Hour); len(got.Packets) != 0 {
		t.Errorf("%d packets", len(got.Packets))
	}
}

// Each packet of the plan has an entry, whatever arrives, and other packets have few.
func TestReceptionUsesLittleMoreMemoryThanThePlan(t *testing.T) {
	e, err := Open(Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const planned, slack, spare = 640, 1024, 640/64 + 1024
	s := e.Join(testSession)
	r, err := s.Expect(1, Plan{Segments: []Segment{{PayloadBytes: 100, Burst: 1, Bursts: planned}}})
	if err != nil {
		t.Fatal(err)
	}
	rx := newReceiver(e)
	deliver := func(b []byte) {
		rx.batch.In = rx.batch.In[:1]
		rx.batch.In[0].Payload, rx.batch.In[0].Stamp = b, sample.Stamp{At: 1, Origin: sample.Kernel}
		rx.take()
	}
	damaged := dataPacket(testSession, 1, 0, 100)
	damaged[20] ^= 1
	for range 2 * slack {
		deliver(damaged)
		deliver(dataPacket(testSession, 1, 7, 100))
	}
	for seq := range uint32(planned) {
		deliver(dataPacket(testSession, 1, seq, 100))
	}
	if at := r.Progress(); at.Packets != planned || at.Bytes != planned*100 {
		t.Errorf("%+v", at)
	}
	space := cap(r.received.Packets)
	got := r.Finish(t.Context(), planned, time.Hour)
	if len(got.Packets) != planned+spare || cap(got.Packets) != space || got.Overflow != 4*slack-spare || got.CorruptPackets != 2*slack {
		t.Errorf("%d entries of %d, %d without, %d damaged", len(got.Packets), planned+spare, got.Overflow, got.CorruptPackets)
	}
	s.Leave()
}

func TestSessionsShareAnEndpoint(t *testing.T) {
	server := running(t, Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	p := Plan{Segments: []Segment{{PayloadBytes: 300, Interval: 2 * time.Millisecond, Burst: 3, Bursts: 50}}}
	var all sync.WaitGroup
	for i := range uint64(4) {
		client := running(t, Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
		here, there := client.Join(i+1), server.Join(i+1)
		if _, err := here.Hello(t.Context(), server.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		for _, way := range [][2]*Session{{here, there}, {there, here}} {
			r, err := way[1].Expect(uint16(i), p)
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				sent, err := way[0].Send(t.Context(), uint16(i), way[1].endpoint.LocalAddr(), p, SendOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				got := r.Finish(t.Context(), p.Packets(), testLimit)
				for _, k := range got.Packets {
					if d := k.Stamp.At.Sub(sent.Packets[k.Seq].Stamp.At); k.Damage != Intact || d < 0 || d > testLimit {
						t.Errorf("session %d: packet %d: %v, took %v", i, k.Seq, k.Damage, d)
						return
					}
				}
				if len(got.Packets) != p.Packets() {
					t.Errorf("session %d: %d of %d arrived", i, len(got.Packets), p.Packets())
				}
			})
		}
	}
	all.Wait()
}

// The system clock is stepped by an hour during the stream: the packets are sent at their planned times,
// and the timestamps follow the clock.
func TestStepOfTheSystemClockDelaysNoPacket(t *testing.T) {
	e := newEnds(t)
	var readings atomic.Int64
	e.client.wall = func() instant.Time {
		if readings.Add(1) > 20 {
			return instant.Now().Add(time.Hour)
		}
		return instant.Now()
	}
	p := Plan{Segments: []Segment{{PayloadBytes: 300, Interval: time.Millisecond, Burst: 1, Bursts: 2000}}}
	begin := time.Now()
	sent, received := transfer(t, e.here, e.there, p)
	if took := time.Since(begin); took < p.Duration()-time.Millisecond || took > testLimit {
		t.Errorf("Send took %v, planned %v", took, p.Duration())
	}
	if len(received.Packets) != 2000 {
		t.Errorf("%d packets arrived", len(received.Packets))
	}
	steps := 0
	for i := 1; i < len(sent.Packets); i++ {
		switch d := sent.Packets[i].Due.Sub(sent.Packets[i-1].Due) - time.Millisecond; {
		case d > 59*time.Minute:
			steps++
		case d.Abs() > testLimit: // a busy host may stall between two readings
			t.Errorf("packet %d was due %v after the previous one", i, d+time.Millisecond)
		}
	}
	if steps != 1 {
		t.Errorf("%d steps, want 1", steps)
	}
}

func TestKeepAliveHasNoReply(t *testing.T) {
	e := newEnds(t)
	if err := e.here.KeepAlive(e.server.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	await.That(t, "the packet arrives", func() bool { return e.server.Stats().Hellos > 0 })
	if s := e.server.Stats(); s.Challenges != 0 {
		t.Errorf("%d challenges", s.Challenges)
	}
}

func TestPlanWithoutChecksumsRequiresIPv4(t *testing.T) {
	p := Plan{NoChecksum: true, Segments: []Segment{{PayloadBytes: 300, Burst: 5, Bursts: 1}}}
	v4 := newEnds(t)
	if _, got := transfer(t, v4.here, v4.there, p); len(got.Packets) != 5 {
		t.Errorf("%d of 5 arrived", len(got.Packets))
	}
	p.Unstamped = true
	if _, got := transfer(t, v4.here, v4.there, p); len(got.Packets) != 5 {
		t.Errorf("%d of 5 arrived unstamped", len(got.Packets))
	}
	local := netip.MustParseAddrPort("[::1]:0")
	v6 := joined(running(t, Options{Local: local}), running(t, Options{Local: local}))
	if _, err := v6.here.Send(t.Context(), 1, v6.server.LocalAddr(), p, SendOptions{}); !errors.Is(err, ErrChecksum) {
		t.Errorf("%v, want ErrChecksum", err)
	}
	if _, err := v6.here.Send(t.Context(), 1, v4.server.LocalAddr(), p, SendOptions{}); !errors.Is(err, ErrFamily) {
		t.Errorf("%v, want ErrFamily", err)
	}
	p.NoChecksum = false
	if _, got := transfer(t, v6.here, v6.there, p); len(got.Packets) != 5 {
		t.Errorf("%d of 5 arrived over IPv6", len(got.Packets))
	}
	p.Segments[0].Burst = 0
	if _, err := v6.here.Send(t.Context(), 1, v6.server.LocalAddr(), p, SendOptions{}); !errors.Is(err, ErrPlan) {
		t.Errorf("%v, want ErrPlan", err)
	}
}

func TestNoGoroutineIsLeft(t *testing.T) {
	t.Run("runs", func(t *testing.T) {
		e := newEnds(t)
		if _, err := e.here.Hello(t.Context(), e.server.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		transfer(t, e.here, e.there, Plan{Segments: []Segment{{PayloadBytes: 300, Burst: 5, Bursts: 1}}})
	})
	b := make([]byte, 1<<20)
	await.That(t, "no goroutine is left", func() bool {
		for g := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
			if strings.Contains(g, "exporter/load/stream.") && !strings.Contains(g, "testing.tRunner") {
				return false
			}
		}
		return true
	})
}

func TestLabelsAreUnique(t *testing.T) {
	seen := make(map[string]bool)
	for d := Intact; d <= BadHeader; d++ {
		seen[d.String()] = true
	}
	for i := range Reasons {
		seen[Ignored(i).String()] = true
	}
	if len(seen) != int(BadHeader)+1+Reasons || seen["invalid"] || seen[""] {
		t.Errorf("%v", seen)
	}
	if Damage(99).String() != "invalid" || Ignored(99).String() != "invalid" {
		t.Error("an unknown value must be invalid")
	}
}

func TestLastUnstampedReceptionEndsCoalescing(t *testing.T) {
	e := newEnds(t)
	p := Plan{Unstamped: true, Segments: []Segment{{PayloadBytes: 300, Burst: 5, Bursts: 1}}}
	coalescing := func() int {
		e.server.coalesceMu.Lock()
		defer e.server.coalesceMu.Unlock()
		return e.server.coalescing
	}
	first, err := e.there.Expect(1, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.there.Expect(1, p); !errors.Is(err, ErrTransferInUse) || coalescing() != 1 {
		t.Errorf("%v, %d coalesced", err, coalescing())
	}
	if _, err := e.there.Expect(2, p); err != nil {
		t.Fatal(err)
	}
	if first.Finish(t.Context(), 0, 0); coalescing() != 1 {
		t.Errorf("%d coalesced after the first, want 1", coalescing())
	}
	if e.there.Leave(); coalescing() != 0 { // the second is not finished, but its session has left
		t.Errorf("%d coalesced after the last, want none", coalescing())
	}
}
