package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/tests/testseed"
)

func TestNumberBeyondWhatIsOutstandingIsRefusedUntilThreeAgree(t *testing.T) {
	for name, first := range map[string]uint64{"0": 0, "the wrap": 1<<32 - 2, "far": 5 << 32} {
		o := order{}
		o.begin(first, 0)
		for i := range uint64(5) {
			o.take(first+i, i+1, 0, time.Duration(i))
		}
		// One request is outstanding: it may have arrived twice.
		for n, want := range map[uint64]place{first + 5: placeFits, first + 7: placeFits, first + 8: placeRefused, first + 1<<30: placeRefused, first + 2: placeFits} {
			if got := o.judge(n, 6, false, false); got != want {
				t.Errorf("%s: %d after %d: %d, want %d", name, n, first+4, got, want)
			}
		}
		for i, want := range []place{placeRefused, placeRefused, placeRestarted} {
			if got := o.judge(first+1<<30+uint64(i), 6+uint64(i), true, false); got != want {
				t.Errorf("%s: unexpected number %d: %d, want %d", name, i, got, want)
			}
		}
		o.take(first+5, 7, 0, 1)
		for range 10 {
			if got := o.judge(first+1<<30, 8, true, false); got != placeRefused {
				t.Errorf("%s: the same number repeated: %d, want refused", name, got)
			}
		}
	}
}

func TestLowerNumberToALaterRequestIsARestart(t *testing.T) {
	o := order{}
	o.take(200, 201, 0, time.Second)
	if got := o.judge(0, 202, false, false); got != placeFits {
		t.Errorf("requested before 200 arrived: %d, want overtaken", got)
	}
	if got := o.judge(0, 202, true, false); got != placeRestarted {
		t.Errorf("requested after 200 arrived: %d, want a restart", got)
	}
	if got := o.judge(0, 202, true, true); got != placeRefused {
		t.Errorf("our reflector, which reports restarts: %d, want refused", got)
	}
}

// remoteAgent simulates a path to a reflector that numbers its replies.
type remoteAgent struct {
	t    *testing.T
	s    *Account // of the path's sender
	rng  *rand.Rand
	now  time.Duration
	next uint32
	// onWay are replies that have not arrived yet.
	onWay []replyOnWay
	asked map[uint64]uint64 // T1 by number
	every time.Duration
	port  Port // from which it asks
	// copies are the possible numbers of copies of a request, losses is the percentage of lost replies; calm: no
	// losses, copies or reordering.
	copies []int
	losses int
	calm   bool
}

type replyOnWay struct {
	at     time.Duration
	seq    uint64
	number uint32
	port   Port
}

func newRemoteAgent(t *testing.T, kind RemoteKind, rng *rand.Rand) *remoteAgent {
	s := idleAccountOf(time.Second)
	s.Kind = kind
	return &remoteAgent{
		t: t, s: s, rng: rng, now: s.now, asked: map[uint64]uint64{}, every: 2 * time.Millisecond,
		copies: []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 2}, losses: 10,
	}
}

// ask sends a request, and delivers what arrives until the next one.
func (f *remoteAgent) ask() {
	seq := f.s.outstandingPackets.next
	user := testStart.Add(f.now)
	f.s.lose(f.s.outstandingPackets.add(seq, f.now, user, ClockThen{}))
	f.asked[seq] = timefmt.NTP.Encode(user, 0)
	copies := 1
	if !f.calm {
		copies = f.copies[f.rng.IntN(len(f.copies))]
	}
	for range copies {
		number := f.next
		f.next++
		delay := 10 * time.Millisecond
		if !f.calm && f.rng.IntN(100) < f.losses {
			continue
		}
		if !f.calm && f.rng.IntN(10) == 0 {
			delay += time.Duration(f.rng.IntN(20)) * time.Millisecond
		}
		f.onWay = append(f.onWay, replyOnWay{f.now + delay, seq, number, f.port})
	}
	f.wait(f.every)
}

func (f *remoteAgent) wait(d time.Duration) {
	for end := f.now + d; ; {
		i := f.earliest()
		if i < 0 || f.onWay[i].at > end {
			f.now = end
			break
		}
		a := f.onWay[i]
		f.onWay = slices.Delete(f.onWay, i, i+1)
		f.now = a.at
		f.bringTo(a.port, a.seq, f.asked[a.seq], a.number)
	}
	f.s.expire(f.now)
	f.s.Flush(f.now - time.Second)
	f.check()
}

func (f *remoteAgent) earliest() int {
	least := -1
	for i := range f.onWay {
		if least < 0 || f.onWay[i].at < f.onWay[least].at {
			least = i
		}
	}
	return least
}

// bring delivers a reply, true or forged, at the port from which it asks.
func (f *remoteAgent) bring(seq, t1 uint64, number uint32) { f.bringTo(f.port, seq, t1, number) }

func (f *remoteAgent) bringTo(port Port, seq, t1 uint64, number uint32) {
	at := testStart.Add(f.now)
	in := tstamp.In{Stamp: sample.Stamp{At: at, Origin: sample.Kernel}, At: at}
	r := Reply{Port: port}
	r.Packet.Seq, r.Packet.SenderSeq, r.Packet.SenderT1 = number, uint32(seq), t1
	r.Packet.T2 = timefmt.NTP.Encode(at, 0)
	r.Packet.T3 = r.Packet.T2
	if q, ok := f.s.Accept(&r, f.now); ok {
		one := pendingOf(&in, &r, q)
		f.s.Judge(&in, &r, q, &one, f.now, f.s.Report(&r, q, f.now))
	}
}

func (f *remoteAgent) check() {
	f.t.Helper()
	for _, d := range []*counts{&f.s.fwd, &f.s.rev} {
		sent := d.now.sent
		if d.dir == sample.Forward {
			sent = f.s.outstandingPackets.next
		}
		if d.known && d.now.received+d.now.lost+d.now.dropped > sent {
			f.t.Fatalf("%v: sent %d, but %+v", d.dir, sent, d.now)
		}
	}
	f.checkReplies()
}

// checkReplies counts the packets without a reply again.
func (f *remoteAgent) checkReplies() {
	f.t.Helper()
	unheard := uint32(0)
	for _, e := range f.s.outstandingPackets.ring {
		if e.unheard() {
			unheard++
		}
	}
	if f.s.outstandingPackets.unheard != unheard {
		f.t.Fatalf("%d without a reply, counted %d", unheard, f.s.outstandingPackets.unheard)
	}
}

// TestPathIsMeasuredAgainAfterEveryDisturbance: the remote end restarts with other numbers, replies are forged on
// and off the path, and the path loses, copies and reorders.
func TestPathIsMeasuredAgainAfterEveryDisturbance(t *testing.T) {
	seed := testseed.Of(t)
	const rounds, calm = 40, 30
	for _, kind := range []RemoteKind{RemoteUnknown, RemoteOurs} {
		disturb := map[string]func(f *remoteAgent){
			"restart with zero": func(f *remoteAgent) {
				if kind != RemoteOurs {
					f.next = 0
				}
			},
			"restart with any number": func(f *remoteAgent) {
				if kind != RemoteOurs {
					f.next = f.rng.Uint32()
				}
			},
			"forged without sight": func(f *remoteAgent) {
				for range 100 {
					f.bring(uint64(f.rng.Uint32()), f.rng.Uint64(), f.rng.Uint32())
					f.bring(uint64(f.rng.IntN(int(f.s.outstandingPackets.next))), f.rng.Uint64(), f.rng.Uint32())
				}
			},
			"one forged with sight": func(f *remoteAgent) {
				f.bring(f.s.outstandingPackets.next-1, f.asked[f.s.outstandingPackets.next-1], f.rng.Uint32())
			},
			"many forged with sight": func(f *remoteAgent) {
				number := f.rng.Uint32()
				for i := range uint32(20) {
					f.ask()
					f.bring(f.s.outstandingPackets.next-1, f.asked[f.s.outstandingPackets.next-1], number+i)
				}
			},
			"outage of the way back": func(f *remoteAgent) {
				for range 200 {
					f.ask()
					f.onWay = nil
				}
			},
		}
		for name, what := range disturb {
			t.Run(fmt.Sprintf("%s/%v", name, kind), func(t *testing.T) {
				f := newRemoteAgent(t, kind, rand.New(rand.NewPCG(seed, uint64(kind))))
				f.next = f.rng.Uint32() >> (8 * f.rng.IntN(4))
				for range rounds {
					f.calm = false
					for range 20 + f.rng.IntN(100) {
						f.ask()
					}
					f.wait(50 * time.Millisecond)
					f.calm = true
					what(f)
					f.wait(50 * time.Millisecond)
					// Five are outstanding; three more may have to agree.
					for range agreeing + 5 {
						f.ask()
					}
					f.wait(50 * time.Millisecond)
					answered, received := f.s.answered(), f.s.rev.now.received
					for range calm {
						f.ask()
					}
					f.wait(50 * time.Millisecond)
					if got := f.s.answered() - answered; got != calm {
						t.Fatalf("%d of %d replies accepted; refused %v", got, calm, f.s.Faults().Discarded)
					}
					if got := f.s.rev.now.received - received; got != calm {
						t.Fatalf("%d of %d replies received; refused %v, %+v", got, calm, f.s.Faults().Discarded, f.s.order)
					}
				}
				// Packets that were not sent are not lost: at most twice the outstanding ones per disturbance.
				if most := f.s.outstandingPackets.next * 2; f.s.rev.now.lost > most {
					t.Errorf("%d replies lost, want at most %d", f.s.rev.now.lost, most)
				}
			})
		}
	}
}

// TestRestartLosesNoMoreThanWasOutstanding checks the counts of both directions, for a reflector that restarts four
// times on a path without losses.
func TestRestartLosesNoMoreThanWasOutstanding(t *testing.T) {
	f := newRemoteAgent(t, RemoteUnknown, nil)
	f.calm = true
	for _, first := range []uint32{0, 0, 1 << 31, 1<<32 - 5, 7} {
		f.next = first
		for range 300 {
			f.ask()
		}
	}
	f.wait(3 * f.s.opts.LossTimeout)
	s := f.s
	if s.Restarts != 4 || s.RoundTripsReceived != 1500 || s.fwd.now.received != 1500 || s.fwd.now.lost != 0 || s.rev.now.lost != 0 {
		t.Errorf("%d restarts, %d answered, forward %+v, reverse %+v", s.Restarts, s.RoundTripsReceived, s.fwd.now, s.rev.now)
	}
	if refused := s.Faults().Discarded[DiscardWrongNumber] + s.rev.now.late; s.rev.now.received+refused != 1500 || refused > 4*(5+agreeing) {
		t.Errorf("%d received, %d refused or late", s.rev.now.received, refused)
	}
}

// TestLossesAfterARestartHaveTheirDirection: of 300 requests before a restart 10 are lost forward, of 400 after it
// 38, and 19 replies are lost in reverse.
func TestLossesAfterARestartHaveTheirDirection(t *testing.T) {
	f := newRemoteAgent(t, RemoteUnknown, nil)
	f.calm = true
	lost := func() { f.onWay, f.next = f.onWay[:len(f.onWay)-1], f.next-1 } // the request never arrived
	for i := range 300 {
		f.ask()
		if i%30 == 7 {
			lost()
		}
	}
	f.wait(50 * time.Millisecond)
	f.next = 0
	for i := range 400 {
		f.ask()
		if last := len(f.onWay) - 1; i > 10 && i%10 == 3 && i < 390 {
			lost()
		} else if i > 10 && i%20 == 5 && i < 390 {
			f.onWay = f.onWay[:last]
		}
	}
	f.wait(4 * f.s.opts.LossTimeout)
	if s := f.s; s.Restarts != 1 || s.fwd.now.lost != 48 || s.rev.now.lost != 19 || s.fwd.now.received+s.fwd.now.lost != 700 {
		t.Errorf("%d restarts, forward %+v, reverse %+v", s.Restarts, s.fwd.now, s.rev.now)
	}
}

// TestBadPathIsNoRestart: losses, copies and reordering, up to nine of ten replies lost and each request copied.
func TestBadPathIsNoRestart(t *testing.T) {
	seed := testseed.Of(t)
	for name, bad := range map[string]remoteAgent{
		"some of all":       {copies: []int{0, 1, 1, 1, 2}, losses: 10},
		"every request two": {copies: []int{2}, losses: 50},
		"most replies lost": {copies: []int{0, 1, 1, 1, 1}, losses: 90},
		"most requests":     {copies: []int{0, 0, 0, 0, 1}, losses: 10},
	} {
		for _, every := range []time.Duration{2 * time.Millisecond, 100 * time.Millisecond, time.Second} {
			t.Run(fmt.Sprintf("%s/%v", name, every), func(t *testing.T) {
				f := newRemoteAgent(t, RemoteUnknown, rand.New(rand.NewPCG(seed, uint64(every))))
				f.copies, f.losses, f.every = bad.copies, bad.losses, every
				for range 5000 {
					f.ask()
				}
				if f.s.Restarts > 0 || f.s.Faults().Discarded[DiscardWrongNumber] > 0 {
					t.Errorf("%d restarts, refused %v", f.s.Restarts, f.s.Faults().Discarded)
				}
			})
		}
	}
}
