package lab

import (
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
)

func TestSinglePacketHasExactlyTheDelay(t *testing.T) {
	s := newSim(t, Link{Rate: 2_500_000, Delay: 30 * time.Millisecond, Queue: 110_000}, Options{})
	for n := range uint64(5) {
		s.send(n, 1500, time.Duration(n)*100*time.Millisecond)
	}
	for _, r := range s.finish() {
		if r.Delay() != 30*time.Millisecond || r.Outcome != Delivered {
			t.Errorf("packet %d: %v after %v", r.Key, r.Outcome, r.Delay())
		}
	}
}

func TestTrainLeavesAtExactlyTheRate(t *testing.T) {
	s := newSim(t, Link{Rate: 514_000, Delay: 80 * time.Millisecond, Queue: 64_000}, Options{})
	for n := range uint64(25) {
		s.send(n, 1228, 0)
	}
	log := s.finish()
	want := time.Duration(1228 * 8_000_000_000 / 514_000)
	for i := 1; i < len(log); i++ {
		if gap := log[i].Due.Sub(log[i-1].Due); gap != want {
			t.Errorf("gap %d: %v, want %v", i, gap, want)
		}
	}
}

func TestFullQueueAddsQueueOverRateAndDropsTheRest(t *testing.T) {
	const rate, queue, size = 2_500_000, 110_000, 1410
	s := newSim(t, Link{Rate: rate, Delay: 30 * time.Millisecond, Queue: queue}, Options{})
	// Twice the rate, for three seconds.
	gap := time.Duration(size * 8_000_000_000 / (2 * rate))
	for n := range uint64(3 * time.Second / gap) {
		s.send(n, size, time.Duration(n)*gap)
	}
	full := time.Duration(queue * 8_000_000_000 / rate)
	var most time.Duration
	for _, r := range s.finish() {
		if r.Outcome == Delivered {
			most = max(most, r.Delay()-30*time.Millisecond)
		}
	}
	if most > full || most < full*99/100 {
		t.Errorf("queueing delay up to %v, want just below %v", most, full)
	}
	counts, _ := s.log.totals()
	sent := counts.Entered
	if counts.Delivered+counts.DroppedQueue != sent || counts.Inside() != 0 {
		t.Errorf("packets not conserved: %+v", counts)
	}
	// Half of what came in three seconds, and what the queue held at the end.
	if want := sent/2 + queue/size; counts.Delivered < want-2 || counts.Delivered > want+2 {
		t.Errorf("delivered %d, want %d +- 2", counts.Delivered, want)
	}
}

func TestQueueIsBytesNotPackets(t *testing.T) {
	s := newSim(t, Link{Rate: 1000, Queue: 1500}, Options{})
	s.send(0, 1500, 0) // goes at once: it does not wait
	s.send(1, 1000, 0)
	s.send(2, 501, 0) // 1000 + 501 > 1500
	s.send(3, 500, 0)
	log := s.finish()
	got := []Outcome{log[0].Outcome, log[1].Outcome, log[2].Outcome, log[3].Outcome}
	if want := []Outcome{Delivered, Delivered, DroppedQueue, Delivered}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestJitterStaysInItsWidthAndNeverReorders(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	l := Link{Delay: 10 * time.Millisecond, Jitter: 20 * time.Millisecond}
	s := newSim(t, l, Options{Seed: seed})
	// First as dense as jitter would reorder, then so sparse that it is all seen.
	for n := range uint64(1000) {
		s.send(n, 100, time.Duration(n)*time.Millisecond)
	}
	for n := range uint64(1000) {
		s.send(1000+n, 100, time.Second+time.Duration(n)*25*time.Millisecond)
	}
	log := s.finish()
	if !slices.IsSorted(s.out) {
		t.Error("jitter reordered")
	}
	low, high := time.Hour, time.Duration(0)
	for _, r := range log {
		low, high = min(low, r.Delay()), max(high, r.Delay())
	}
	if low < l.Delay || high > l.Delay+l.Jitter || high-low < l.Jitter*9/10 {
		t.Errorf("delays %v..%v, want most of %v..%v", low, high, l.Delay, l.Delay+l.Jitter)
	}
}

func TestHeldPacketIsOvertakenByAsManyAsChosen(t *testing.T) {
	for behind := 1; behind <= 3; behind++ {
		script := func(_ sample.Direction, key uint64, f Faults) Faults {
			if key == 10 {
				f.HoldBehind = behind
			}
			return f
		}
		s := newSim(t, Link{Delay: time.Millisecond}, Options{Script: script})
		for n := range uint64(20) {
			s.send(n, 100, time.Duration(n)*time.Millisecond)
		}
		log := s.finish()
		if at := slices.Index(s.out, 10); at != 10+behind {
			t.Errorf("behind %d: left as number %d: %v", behind, at, s.out)
		}
		if r := log[10]; int(r.Overtaken) != behind || !r.Held || r.Delay() != time.Duration(1+behind)*time.Millisecond {
			t.Errorf("behind %d: record %+v", behind, r)
		}
		if c, _ := s.log.totals(); c.Reordered != 1 || c.Held != 1 {
			t.Errorf("behind %d: counts %+v", behind, c)
		}
	}
}

func TestHeldPacketLeavesAfterTheTimeoutWhenNothingFollows(t *testing.T) {
	script := func(_ sample.Direction, key uint64, f Faults) Faults {
		f.HoldBehind = 1
		return f
	}
	s := newSim(t, Link{Delay: time.Millisecond}, Options{Script: script})
	s.send(0, 100, 0)
	r := s.finish()[0]
	if r.Delay() != time.Millisecond+HoldTimeout || r.Overtaken != 0 || !r.Held {
		t.Errorf("record %+v, delay %v", r, r.Delay())
	}
	if c, _ := s.log.totals(); c.Reordered != 0 || c.Held != 1 {
		t.Errorf("counts %+v: nothing overtook it", c)
	}
}

func TestOtherTrafficDoesNotOvertakeForTheTest(t *testing.T) {
	script := func(_ sample.Direction, _ uint64, f Faults) Faults {
		f.HoldBehind = 1
		return f
	}
	s := newSim(t, Link{}, Options{Script: script})
	s.send(0, 100, 0)
	other := netip.AddrPortFrom(families[0].dst.Addr(), 53)
	s.enter(udpFrame(t, families[0].src, other, make([]byte, 8)), start.Add(time.Millisecond))
	if r := s.finish()[0]; r.Overtaken != 0 {
		t.Errorf("overtaken by a packet of another class: %+v", r)
	}
}

func TestFaultRatiosAreThoseOfTheLink(t *testing.T) {
	const seed, packets = 3, 100_000
	t.Logf("seed %d", seed)
	l := Link{Loss: 0.02, Duplicate: 0.01, Reorder: 0.03, Corrupt: 0.005}
	s := newSim(t, l, Options{Seed: seed})
	for n := range uint64(packets) {
		s.send(n, 40, time.Duration(n)*time.Millisecond)
	}
	s.finish()
	c, _ := s.log.totals()
	if c.Inside() != 0 || c.Delivered+c.DroppedLoss != packets {
		t.Errorf("packets not conserved: %+v", c)
	}
	delivered := float64(c.Delivered)
	for _, f := range []struct {
		name      string
		got       uint64
		want, per float64
	}{
		{"loss", c.DroppedLoss, l.Loss, packets},
		{"duplicate", c.Duplicated, l.Duplicate, delivered},
		{"reorder", c.Reordered, l.Reorder, delivered},
		{"corrupt", c.Corrupted, l.Corrupt, delivered},
	} {
		// 5.4 standard deviations of a binomial: of 1,000,000 seeds fewer than one fails one of
		// the four (4 x 6.7e-8).
		limit := 5.4 * math.Sqrt(f.want*(1-f.want)/f.per)
		if got := float64(f.got) / f.per; math.Abs(got-f.want) > limit {
			t.Errorf("%s: %.5f, want %.5f +- %.5f", f.name, got, f.want, limit)
		}
	}
}

func TestLossBurstsHaveTheMeanRunAndKeepTheRatio(t *testing.T) {
	const seed, packets = 5, 2_000_000
	t.Logf("seed %d", seed)
	d := newDice(seed, 0)
	l := Link{Loss: 0.05, LossBurst: 4}
	lost, runs, before := 0, 0, false
	for range packets {
		now := d.roll(&l).Lose
		if now {
			lost++
			if !before {
				runs++
			}
		}
		before = now
	}
	// Losses come 4 at a time: the ratio's standard deviation is 0.0004, that of the mean of
	// 25,000 geometric runs 0.022. Twelve and nine of them: no seed of 1e15 fails.
	if ratio := float64(lost) / packets; ratio < 0.045 || ratio > 0.055 {
		t.Errorf("ratio %.4f, want 0.05", ratio)
	}
	if run := float64(lost) / float64(runs); run < 3.8 || run > 4.2 {
		t.Errorf("mean run %.2f, want 4", run)
	}
}

func TestSameSeedSameOutcomesWhateverTheTiming(t *testing.T) {
	l := Link{Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.1}
	outcomes := func(seed uint64, gap time.Duration) []draw {
		s := newSim(t, l, Options{Seed: seed})
		for n := range uint64(500) {
			s.send(n, 60, time.Duration(n)*gap)
		}
		var all []draw
		for _, r := range s.finish() {
			all = append(all, draw{Faults: Faults{
				Lose: r.Outcome == DroppedLoss, Duplicate: r.Duplicated, Corrupt: r.Corrupted, HoldBehind: int(r.Overtaken),
			}})
		}
		return all
	}
	first := outcomes(11, time.Millisecond)
	if !slices.Equal(first, outcomes(11, 3*time.Millisecond)) {
		t.Error("the same seed gave other outcomes")
	}
	if slices.Equal(first, outcomes(12, time.Millisecond)) {
		t.Error("another seed gave the same outcomes")
	}
}

func TestSparedOthersKeepTheirPackets(t *testing.T) {
	other := netip.AddrPortFrom(families[0].dst.Addr(), 53)
	for _, spare := range []bool{false, true} {
		s := newSim(t, Link{Loss: 1}, Options{SpareOthers: spare})
		s.send(0, 100, 0)
		s.enter(udpFrame(t, families[0].src, other, make([]byte, 8)), start)
		s.run(1 << 62)
		counted, others := s.log.totals()
		if counted.DroppedLoss != 1 || (others.Delivered == 1) != spare {
			t.Errorf("spare %v: counted %+v, others %+v", spare, counted, others)
		}
	}
}

func TestFullLogIsAnErrorAndForwardsOn(t *testing.T) {
	s := newSim(t, Link{}, Options{LogLimit: 3})
	for n := range uint64(5) {
		s.send(n, 100, 0)
	}
	if got := len(s.finish()); got != 3 {
		t.Errorf("%d records, want 3", got)
	}
	const want = "the log is full: more than 3 classified packets, raise Options.LogLimit"
	if err := s.log.err(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if c, _ := s.log.totals(); c.Delivered != 5 {
		t.Errorf("counts %+v, want 5 delivered", c)
	}
}

// BenchmarkPipe is one packet through the model: at 60 000 packets a second
// and direction it may take 16 us.
func BenchmarkPipe(b *testing.B) {
	s := newSim(b, Link{Rate: 1e9, Delay: time.Millisecond, Queue: 1e6, Loss: 0.01, Reorder: 0.01}, Options{LogLimit: 1})
	data := udpFrame(b, families[0].src, families[0].dst, make([]byte, 1000))
	at := start
	b.ReportAllocs()
	for b.Loop() {
		at += 20_000
		s.enter(data, at)
		for p := s.pop(at); p != nil; p = s.pop(at) {
			s.left(p, Delivered, Interval{at, at}, Interval{})
		}
	}
}

func TestICMPMeetsDelayButNoFaults(t *testing.T) {
	s := newSim(t, Link{Delay: 7 * time.Millisecond, Loss: 1, Duplicate: 1, Reorder: 1}, Options{})
	echo := udpFrame(t, families[0].src, families[0].dst, make([]byte, 56))
	echo[ethernetHeader+9] = 1
	s.enter(echo, start)
	if due, some := s.next(); !some || due != start.Add(7*time.Millisecond) {
		t.Errorf("due %v, want %v", due, start.Add(7*time.Millisecond))
	}
}

// TestLogShowsPacketsThatWaitedInTheQueue: from the log alone, what was let in and what was
// dropped leave to the queue's size less than a packet.
func TestLogShowsPacketsThatWaitedInTheQueue(t *testing.T) {
	const queue, size = 10_000, 1000
	s := newSim(t, Link{Rate: 8_000_000, Queue: queue - 300}, Options{}) // 1 ms a packet
	for n := range uint64(40) {
		s.send(n, size, time.Duration(n)*200*time.Microsecond)
	}
	s.run(start.Add(time.Second))
	held, refused := 0, math.MaxInt
	for i, r := range s.log.snapshot() {
		if r.Outcome == DroppedQueue {
			refused = min(refused, r.Queued+r.Size)
			continue
		}
		// The packet in transmission waits no more.
		if waits := r.Departure.Sub(r.Entry); time.Duration(r.Queued/size)*time.Millisecond > waits || waits > time.Duration(r.Queued/size+1)*time.Millisecond {
			t.Errorf("packet %d: %d bytes waited when it came, and it waited %v", i, r.Queued, waits)
		}
		held = max(held, r.Queued+r.Size)
	}
	if held != 9000 || refused != 10_000 {
		t.Errorf("the log says that the queue held %d bytes, and not %d; it is %d", held, refused, queue-300)
	}
}

func TestTallyCountsByTheRFCs(t *testing.T) {
	at := func(ms int) Interval {
		at := start.Add(time.Duration(ms) * time.Millisecond)
		return Interval{at, at.Add(time.Microsecond)}
	}
	got := TallyOf([]Record{
		{Key: 0, Outcome: Delivered, Exit: at(10)},
		{Key: 1, Outcome: DroppedLoss},
		{Key: 2, Outcome: Delivered, Exit: at(40)}, // behind 3 and 4
		{Key: 3, Outcome: Delivered, Exit: at(20), Copy: at(21), Duplicated: true},
		{Key: 4, Outcome: Delivered, Exit: at(30), Copy: at(31), Duplicated: true, Corrupted: true},
		{Key: 5, Outcome: DroppedQueue},
	})
	want := Tally{Sent: 6, Received: 3, Lost: 3, Duplicated: 1, Reordered: 1, Corrupted: 2}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestOutcomesAreCountedByKeyInsteadOfLogged(t *testing.T) {
	s := newSim(t, Link{Delay: time.Millisecond, Loss: 0.3, Duplicate: 0.2}, Options{Seed: 1, CountKeys: true})
	for n := range uint64(300) {
		s.send(n%3, 100, time.Duration(n)*time.Millisecond)
	}
	if log := s.finish(); len(log) != 0 {
		t.Errorf("%d packets are logged", len(log))
	}
	all, _ := s.log.totals()
	var sum Counts
	for key, c := range s.log.keys() {
		if c.Entered != 100 || c.Inside() != 0 || c.DroppedLoss == 0 || c.Duplicated == 0 {
			t.Errorf("key %d: %+v", key, c)
		}
		sum.Entered += c.Entered
		sum.Delivered += c.Delivered
		sum.DroppedLoss += c.DroppedLoss
		sum.Duplicated += c.Duplicated
	}
	if sum != all {
		t.Errorf("%+v by key, %+v in all", sum, all)
	}
}
