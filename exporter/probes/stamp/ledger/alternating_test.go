package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/tests/testseed"
)

// oneOfSeveral is one of our reflectors at an address, with its session of the present run.
type oneOfSeveral struct {
	epoch, sent uint32
	window      seqwin.Window
}

// receives counts a request and returns the reply.
func (o *oneOfSeveral) receives(seq, t1 uint64, now, wait time.Duration) (r Reply) {
	if o.sent == 0 {
		o.window.Reserve(1024)
		o.window.Start(seq)
	}
	o.window.Expire(now, wait)
	o.window.Add(seq, now)
	c := o.window.Counts()
	at := timefmt.NTP.Encode(testStart.Add(now), 0)
	r.Packet = stampfmt.ReflectorPacket{Seq: o.sent, SenderSeq: uint32(seq), SenderT1: t1, T2: at, T3: at}
	o.sent++
	r.HasReceipt = true
	r.Receipt = stampfmt.Receipt{
		Filled: true, Words: 3, Epoch: o.epoch, Base: uint32(c.Base), Next: uint32(c.Next), Received: uint32(c.Received), Lost: uint32(c.Lost), Bursts: uint32(c.Bursts),
		Tx: o.sent, Recent: c.Recent,
	}
	return r
}

// TestReflectorsThatReplyInTurnLoseNothing: a load balancer distributes the requests; more of them than one may be on the way. Nothing is
// lost. Reflectors that replace one another are measured.
func TestReflectorsThatReplyInTurnLoseNothing(t *testing.T) {
	const count = 2000
	rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
	for name, c := range map[string]struct {
		where    func(i int) int
		several  bool
		first    int // the request from which on several reflectors reply
		restarts uint64
		returned bool // the first reflector replies again, after one or two others
	}{
		"one":                    {where: func(int) int { return 0 }},
		"two in turn":            {where: func(i int) int { return i % 2 }, several: true},
		"two by chance":          {where: func(int) int { return rng.IntN(2) }, several: true},
		"three in turn":          {where: func(i int) int { return i % 3 }, several: true},
		"five by chance":         {where: func(int) int { return rng.IntN(5) }, several: true},
		"the second much later":  {where: func(i int) int { return max(0, i-1500) % 2 }, several: true, first: 1500},
		"every hundred requests": {where: func(i int) int { return i / 100 % 2 }, several: true},
		"replaced":               {where: func(i int) int { return i / 1000 }, restarts: 1},
		"replaced twice":         {where: func(i int) int { return i / 700 }, restarts: 2},
		"taken back":             {where: func(i int) int { return i / 700 % 2 }, restarts: 1, returned: true},
		"taken back later":       {where: func(i int) int { return i / 500 % 3 }, restarts: 2, returned: true},
	} {
		for _, pace := range []struct{ every, there time.Duration }{
			{time.Millisecond, 10 * time.Millisecond},
			{20 * time.Millisecond, 10 * time.Millisecond},
			{20 * time.Millisecond, 200 * time.Millisecond},
			{200 * time.Millisecond, 10 * time.Millisecond},
			{1200 * time.Millisecond, 10 * time.Millisecond},
		} {
			t.Run(fmt.Sprintf("%s/%v", name, pace), func(t *testing.T) {
				f := newRemoteAgent(t, RemoteUnknown, rng)
				f.s = idleAccountOf(time.Second)
				f.now = f.s.now
				reflectors := make([]oneOfSeveral, 5)
				for i := range reflectors {
					reflectors[i].epoch = uint32(100 + i)
				}
				type onWay struct {
					at time.Duration
					r  Reply
				}
				var way []onWay
				deliver := func(until time.Duration) {
					for len(way) > 0 && way[0].at <= until {
						r := way[0].r
						f.now, way = way[0].at, way[1:]
						at := testStart.Add(f.now)
						in := tstamp.In{Stamp: sample.Stamp{At: at, Origin: sample.Kernel}, At: at}
						q, ok := f.s.Accept(&r, f.now)
						if !ok {
							t.Fatalf("the reply to %d is refused", r.Packet.SenderSeq)
						}
						present := f.s.Report(&r, q, f.now)
						one := pendingOf(&in, &r, q)
						f.s.Judge(&in, &r, q, &one, f.now, present)
					}
					f.now = until
					f.s.expire(f.now)
					f.s.Flush(f.now - time.Second)
					if lost := f.s.fwd.now.lost + f.s.rev.now.lost; lost > 0 {
						t.Fatalf("%d lost after %d requests, shared by %v", lost, f.s.Next(), f.s.Shared)
					}
				}
				for i := range count {
					seq, user := f.s.outstandingPackets.next, testStart.Add(f.now)
					f.s.lose(f.s.outstandingPackets.add(seq, f.now, user, ClockThen{}))
					r := reflectors[c.where(i)].receives(seq, timefmt.NTP.Encode(user, 0), f.now+pace.there, f.s.opts.LossTimeout)
					way = append(way, onWay{f.now + 2*pace.there, r})
					deliver(f.now + pace.every)
					if f.s.Shared != SharedByNone && i < c.first {
						t.Fatalf("shared by %v after %d requests", f.s.Shared, i)
					}
				}
				deliver(f.now + 10*time.Second)
				want, kind := SharedByNone, RemoteOurs
				if c.several {
					want, kind = SharedAddress, RemoteStateless
				}
				s := f.s
				if s.Shared != want || s.Kind != kind || s.fwd.known == c.several || s.rev.known == c.several || s.RoundTripsReceived != count {
					t.Errorf("shared by %v, want %v; kind %v, directions known %v %v, %d round trips", s.Shared, want, s.Kind, s.fwd.known, s.rev.known, s.RoundTripsReceived)
				}
				if !c.several && (s.Returned() != c.returned || s.Restarts != c.restarts) {
					t.Errorf("%d restarts, and the first reflector has replied again: %v", s.Restarts, !c.returned)
				}
			})
		}
	}
}

// TestPacketWithAReplyIsNotLostForward: the test packets have no space for Receipts. By a query, one of two reflectors counts as lost what
// the other received.
func TestPacketWithAReplyIsNotLostForward(t *testing.T) {
	f := known(t, RemoteOurs)
	f.tells(5, 0, 0)
	f.askTimes(100)
	f.wait(100 * time.Millisecond)
	f.s.learn(&Reply{HasReceipt: true, Receipt: stampfmt.Receipt{Filled: true, StatsQuery: true, Words: 3, Epoch: 5, Next: 100, Base: 100, Received: 50, Lost: 50, Tx: 50}}, f.now, true)
	f.askTimes(100)
	f.wait(5 * time.Second)
	if s := f.s; s.Shared != SharedAddress || s.Kind != RemoteStateless || s.fwd.known || s.rev.known || s.fwd.now.lost+s.rev.now.lost+s.RoundTripsLost > 0 {
		t.Errorf("shared by %v, kind %v, directions known %v %v, %d lost forward, %d in reverse, of %d round trips", s.Shared, s.Kind, s.fwd.known, s.rev.known, s.fwd.now.lost, s.rev.now.lost, s.RoundTripsLost)
	}
}

// TestOnlyReflectorLeftIsMeasuredAnew: one of two reflectors at an address ends. With packets without a Receipt only the replies to queries tell it.
func TestOnlyReflectorLeftIsMeasuredAnew(t *testing.T) {
	f := known(t, RemoteOurs)
	f.s.opts.Receipts = false
	f.tells(5, 0, 0)
	f.askTimes(100)
	f.wait(100 * time.Millisecond)
	query := func(epoch, lost uint32) {
		t.Helper()
		r := &Reply{HasReceipt: true, Receipt: stampfmt.Receipt{Filled: true, StatsQuery: true, Words: 3, Epoch: epoch, Next: 100, Base: 100, Received: 100 - lost, Lost: lost, Tx: 50}}
		q := Request{Seq: 100, StatsQuery: true}
		f.s.unshare(r, q, f.now)
		f.s.Report(r, q, f.now)
	}
	query(5, 50)
	if f.s.Shared != SharedAddress {
		t.Fatalf("shared by %v", f.s.Shared)
	}
	for minutes, epoch := range []uint32{5, 6, 5, 6, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5} {
		if !f.s.QueryDue(f.now + time.Second) {
			t.Fatalf("no query after %d minutes", minutes)
		}
		query(epoch, 50)
		if f.s.Sole(f.now) {
			t.Fatalf("session %d is the only one after %d minutes", epoch, minutes)
		}
		f.now += time.Minute
	}
	if query(5, 50); !f.s.Sole(f.now) {
		t.Error("16 minutes after the last reply of the other reflector, the present one is not the only one")
	}
}
