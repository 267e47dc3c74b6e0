package stamp

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/exporter/reflector"
)

// wheel is a session without a socket, and the replies of our reflector to its first packets. After the last one it
// starts anew.
type wheel struct {
	tb      testing.TB
	s       *session
	out     tstamp.Out
	replies []tstamp.In
	hub     hubSeries
	at      int
	passed  time.Duration // since the start, in addition to the time of the test
}

func (w *wheel) now() time.Duration { return sched.Now() + w.passed }

// wheelTurn is how many replies are made before the timer starts.
const wheelTurn = 1 << 12

var wheelStart = instant.FromUnix(1_800_000_000, 0)

func newWheel(tb testing.TB) *wheel {
	w := &wheel{tb: tb, hub: newHubSeries(metric.Discard{}, netip.MustParseAddrPort("127.0.0.1:9"))}
	w.restart()
	for seq := range uint32(wheelTurn) {
		w.replies = append(w.replies, tstamp.In{
			Payload: w.reply(seq), Stamp: sample.Stamp{At: userTime(seq) + 300_000, Origin: sample.Kernel}, At: userTime(seq) + 310_000,
		})
	}
	return w
}

func userTime(seq uint32) instant.Time { return wheelStart.Add(time.Duration(seq) * time.Millisecond) }

func (w *wheel) restart() {
	o := DefaultOptions()
	if err := o.check(); err != nil {
		w.tb.Fatal(err)
	}
	s, err := newSession(nil, netip.MustParseAddrPort("127.0.0.1:862"), &o, static.New(time.Microsecond, metric.Discard{}), newSeries(metric.Discard{}, "p", "stamp"))
	if err != nil {
		w.tb.Fatal(err)
	}
	s.run = 7
	w.s, w.at = s, 0
}

// reply is the reply of our reflector to packet seq on a path without faults.
func (w *wheel) reply(seq uint32) []byte {
	f := timefmt.NTP
	honest := timefmt.MakeErrorEstimate(time.Microsecond, true, f)
	b := stampfmt.ReflectorPacket{
		Seq: seq, T3: f.Encode(userTime(seq)+200_000, 0), Error: honest, T2: f.Encode(userTime(seq)+100_000, 0),
		SenderSeq: seq, SenderT1: f.Encode(userTime(seq), 0), SenderError: honest, SenderTTL: 255,
	}.AppendTo(nil)
	followUp := stampfmt.FollowUp{}
	if seq > 0 {
		followUp = stampfmt.FollowUp{Seq: seq - 1, T3: f.Encode(userTime(seq-1)+210_000, 0), Mode: 2}
	}
	b = followUp.AppendTo(b)
	b = stampfmt.Receipt{
		Words: w.s.layout.words, Filled: true, T2Origin: sample.Kernel, Run: 7, Epoch: 1,
		EarlierTX: [stampfmt.ReportedReplies]stampfmt.ReplyTX{{Known: seq > 0, After: 10_000}},
		Next:      seq + 1, Base: seq + 1, Received: seq + 1, Tx: seq + 1, Recent: [4]uint64{^uint64(0)},
	}.AppendTo(b)
	if w.s.layout.padding >= 0 {
		b = stampfmt.AppendPadding(b, w.s.layout.padding, seq)
	}
	for rest := b[stampfmt.UnauthenticatedBytes:]; len(rest) > 0; {
		rest[0] = 0 // recognized
		_, after, err := stampfmt.NextTLV(rest)
		if err != nil {
			w.tb.Fatal(err)
		}
		rest = after
	}
	stampfmt.SealCRC(b, false)
	return b
}

// turn passes one packet through everything but the socket: sending, its transmit timestamp, its reply.
func (w *wheel) turn() {
	seq := uint32(w.at)
	w.s.account.Send(w.now(), userTime(seq), ledger.ClockThen{Bound: sample.Bound{Reason: sample.OK}})
	w.s.transmitted(w.s.cookie(uint64(seq)), sample.Stamp{At: userTime(seq) + 20_000, Origin: sample.Kernel}, &w.hub)
	w.s.received(0, &w.replies[seq], w.now())
	w.at++
}

func (w *wheel) check() {
	w.tb.Helper()
	n, received := w.s.account.RoundTripsReceived, w.s.account.Direction(sample.Forward).Received
	if n != uint64(w.at) || received.Value != uint64(w.at) {
		w.tb.Fatalf("%d of %d replies accepted, %+v received forward; discarded %v", n, w.at, received, w.s.account.Faults().Discarded)
	}
}

// BenchmarkReply measures the cost of a reply without the socket: parsing, checksum, counts of both directions,
// delays, variation, playout buffers.
func BenchmarkReply(b *testing.B) {
	w := newWheel(b)
	b.ReportAllocs()
	for b.Loop() {
		if w.at == wheelTurn {
			b.StopTimer()
			w.check()
			w.restart()
			b.StartTimer()
		}
		w.turn()
	}
	w.check()
}

// BenchmarkRequest measures the cost of a test packet without the socket.
func BenchmarkRequest(b *testing.B) {
	for _, c := range []struct {
		name string
		key  *stampfmt.Key
	}{{"open", nil}, {"authenticated", stampfmt.NewKey([]byte("a shared secret"))}} {
		b.Run(c.name, func(b *testing.B) {
			w := newWheel(b)
			w.secure(c.key)
			b.ReportAllocs()
			for b.Loop() {
				w.s.build(&w.out, sched.Now())
			}
		})
	}
}

// BenchmarkTick measures the cost of a session without its packets, once a second.
func BenchmarkTick(b *testing.B) {
	w := newWheel(b)
	for range 1000 {
		w.turn()
	}
	now := sched.Now()
	b.ReportAllocs()
	for b.Loop() {
		now += time.Microsecond
		w.s.tick(now, now)
	}
}

// BenchmarkPublish publishes 10,000 sessions once a round, each with one packet and its reply since the last round.
func BenchmarkPublish(b *testing.B) {
	for name, sink := range map[string]metric.Sink{"discard": metric.Discard{}, "prometheus": promsink.New(promsink.Options{})} {
		b.Run(name, func(b *testing.B) {
			w := newWheel(b)
			for range 1000 {
				w.turn()
			}
			w.s.window = w.s.estimator.close(w.s.account.Known())
			v := w.s.snapshot()
			all := make([]*series, 10_000)
			for i := range all {
				all[i] = newSeries(sink, fmt.Sprint("p", i), "stamp")
				all[i].publish(&v)
			}
			v.next()
			for _, one := range all { // opens the series of the first seconds
				one.publish(&v)
			}
			b.ReportAllocs()
			cpu := cpuTime()
			for b.Loop() {
				v.next()
				for _, one := range all {
					one.publish(&v)
				}
			}
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N)/float64(len(all)), "cpu-ns/session")
			for _, one := range all {
				one.scope.Close()
			}
		})
	}
}

// next changes the snapshot to one of a second later.
func (v *snapshot) next() {
	v.RoundTripsReceived++
	v.LastSuccess = v.LastSuccess.Add(time.Second)
	for i := range v.directions {
		d := &v.directions[i]
		d.Sent.Value++
		d.Received.Value++
		d.jitter.Value += 1e-9
	}
	for event := range v.stamps {
		v.stamps[event][sample.Kernel]++
	}
}

func TestPublishingASecondTimeAllocatesNothing(t *testing.T) {
	w := newWheel(t)
	for range 100 {
		w.turn()
	}
	w.s.window = w.s.estimator.close(w.s.account.Known())
	s, v := newSeries(promsink.New(promsink.Options{}), "p", "stamp"), w.s.snapshot()
	defer s.scope.Close()
	s.publish(&v)
	v.next()
	s.publish(&v)
	if n := testing.AllocsPerRun(100, func() { v.next(); s.publish(&v) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// secure gives the session a key.
func (w *wheel) secure(k *stampfmt.Key) {
	if k == nil {
		return
	}
	var err error
	if w.s.layout, err = planLayout(DefaultSize(true), true); err != nil {
		w.tb.Fatal(err)
	}
	w.s.useKeys([]*stampfmt.Key{k})
}

func TestNothingIsAllocatedForAPacket(t *testing.T) {
	for _, k := range []*stampfmt.Key{nil, stampfmt.NewKey([]byte("a shared secret"))} {
		w := newWheel(t)
		w.secure(k)
		if n := testing.AllocsPerRun(1000, func() { w.s.build(&w.out, sched.Now()) }); n != 0 {
			t.Errorf("request, authenticated %v: %v allocations, want 0", k != nil, n)
		}
	}
	w := newWheel(t)
	if n := testing.AllocsPerRun(wheelTurn-10, w.turn); n != 0 {
		t.Errorf("reply: %v allocations, want 0", n)
	}
	w.check()
}

// BenchmarkThousandSessions runs 1,000 sessions at one packet a second against a reflector in the same process, for
// 5 s, and reports the CPU time of both and the losses, which the host causes.
func BenchmarkThousandSessions(b *testing.B) {
	const sessions, lasts = 1000, 5 * time.Second
	for b.Loop() {
		r := newCrowd(b, sessions)
		time.Sleep(time.Second) // the sessions open in this time
		before, cpu, start := r.sums(), cpuTime(), time.Now()
		time.Sleep(lasts) // the measured time
		after, used, took := r.sums(), cpuTime()-cpu, time.Since(start)
		r.stop()
		b.ReportMetric(100*used.Seconds()/took.Seconds(), "%core")
		b.ReportMetric(float64(after.received-before.received)/took.Seconds(), "replies/s")
		b.ReportMetric(float64(after.lost-before.lost), "lost")
		b.ReportMetric(float64(after.skipped-before.skipped), "skipped")
	}
}

// crowd is many probers, their reflector, and the environment that they share.
type crowd struct {
	kind *Type
	stop func()
}

type crowdSums struct{ received, lost, skipped uint64 }

func (c *crowd) sums() (sum crowdSums) {
	for _, s := range c.kind.anyHub().all(nil) {
		s.mu.Lock()
		sum.received += s.account.RoundTripsReceived
		sum.lost += s.account.RoundTripsLost
		for _, n := range s.account.Faults().Skipped {
			sum.skipped += n
		}
		s.mu.Unlock()
	}
	return sum
}

func newCrowd(b *testing.B, sessions int) *crowd {
	b.Helper()
	env, peer, stopTestbed := openTestbed(b, reflector.Options{
		Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, RatePackets: -1,
	})
	c := &crowd{kind: NewType()}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range sessions {
		p, err := c.kind.NewProber(env, probe.Target{Path: fmt.Sprint("p", i), Probe: "stamp", Peer: peer}, DefaultOptions())
		if err != nil {
			b.Fatal(err)
		}
		running.Go(func() {
			if err := p.Run(ctx); err != nil {
				b.Error(err)
			}
		})
	}
	c.stop = func() {
		cancel()
		running.Wait()
		stopTestbed()
	}
	return c
}

// cpuTime is the user and kernel CPU time of this process.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
