package incident

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/testseed"
)

const ms, us = time.Millisecond, time.Microsecond

// replied is a packet with these delays, between clocks with a combined bound of 50 us.
func replied(seq uint64, sent instant.Time, forward, reverse time.Duration) *record.Packet {
	p := &record.Packet{Path: "a", Probe: "stamp"}
	p.Seq = seq
	p.T1 = sample.Stamp{At: sent, Origin: sample.Kernel}
	p.T2 = sample.Stamp{At: sent.Add(forward), Origin: sample.InPacket}
	p.T3 = sample.Stamp{At: sent.Add(forward + us), Origin: sample.FollowUp}
	p.T4 = sample.Stamp{At: sent.Add(forward + us + reverse), Origin: sample.Kernel}
	p.Forward = sample.Delay{Value: forward, Bound: 50 * us, Reason: sample.OK}
	p.Reverse = sample.Delay{Value: reverse, Bound: 50 * us, Reason: sample.OK}
	return p
}

// lost is a packet without a reply.
func lost(seq uint64, sent instant.Time) *record.Packet {
	p := &record.Packet{Path: "a", Probe: "stamp", Outcome: record.Lost}
	p.Seq, p.T1 = seq, sample.Stamp{At: sent, Origin: sample.Kernel}
	p.Forward.Reason, p.Reverse.Reason = sample.NoStamp, sample.NoStamp
	return p
}

// anyPacket is a random packet of any outcome.
func anyPacket(rng *rand.Rand, seq uint64) *record.Packet {
	at := instant.Time(1_790_000_000e9 + int64(seq)*int64(time.Second) + rng.Int64N(int64(ms)))
	if rng.IntN(10) == 0 {
		return lost(seq-rng.Uint64N(min(seq, 4)+1), at.Add(-time.Duration(rng.Int64N(3e9))))
	}
	p := replied(seq, at, time.Duration(rng.Int64N(1e9)-1e8), time.Duration(rng.Int64N(1e7)))
	if rng.IntN(20) == 0 {
		p.Outcome = record.Late
	}
	for _, d := range []*sample.Delay{&p.Forward, &p.Reverse} {
		switch rng.IntN(8) {
		case 0:
			d.Reason = sample.Reasons()[rng.IntN(len(sample.Reasons()))]
		case 1:
			d.Bound = time.Duration(rng.Int64N(1e9))
		}
	}
	return p
}

func TestRingKeepsTheNewestPacketsUnchanged(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(testseed.Of(t), seed))
		var r ring
		var put []row
		for seq := range uint64(5000) {
			p := anyPacket(rng, seq)
			p.T1.At = instant.Time(1_790_000_000e9) + p.T1.At%instant.Time(Span/2)
			one := rowOf(p)
			put = append(put, one)
			r.add(&one, 8192)
			if seq == 2500 {
				r.add(&one, 4096)
				put = append(put, one)
			}
		}
		got := r.rows()
		if len(got) < 150 || r.size() > 8192 {
			t.Fatalf("%d packets in %d bytes", len(got), r.size())
		}
		if !slices.Equal(got, put[len(put)-len(got):]) {
			t.Fatalf("of seed %d %v, want %v", seed, got, put[len(put)-len(got):])
		}
	}
}

func TestRowHasTheDefinedValuesOfAPacket(t *testing.T) {
	p := replied(7, 1000, 30*ms, 10*ms)
	p.Reverse.Reason = sample.BoundTooLarge
	want := row{7, 1000, int64(record.Received), int64(30 * ms), int64(50 * us), int64(sample.OK), record.NoTime, record.NoTime, int64(sample.BoundTooLarge), int64(40 * ms)}
	if got := rowOf(p); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	want = row{7, 1000, int64(record.Lost), record.NoTime, record.NoTime, int64(sample.NoStamp), record.NoTime, record.NoTime, int64(sample.NoStamp), record.NoTime}
	if got := rowOf(lost(7, 1000)); got != want {
		t.Errorf("lost: %v, want %v", got, want)
	}
}

func TestPacketTakesFewBytesOnOrdinaryPaths(t *testing.T) {
	for name, jitter := range map[string]time.Duration{"quiet": 20 * us, "busy": 4 * ms, "cellular": 80 * ms} {
		rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
		var r ring
		at := instant.Time(1_790_000_000e9)
		for seq := range uint64(20_000) {
			at = at.Add(20 * ms)
			p := rowOf(replied(seq, at.Add(time.Duration(rng.Int64N(int64(50*us)))), 30*ms+time.Duration(rng.Int64N(int64(jitter))), 10*ms+time.Duration(rng.Int64N(int64(jitter)))))
			if rng.IntN(100) == 0 {
				p = rowOf(lost(seq, at))
			}
			r.add(&p, perPath)
		}
		bytes := float64(r.size()) / float64(len(r.rows()))
		t.Logf("%s: %.1f bytes a packet, %d packets", name, bytes, len(r.rows()))
		if bytes > 26 || r.size() > perPath {
			t.Errorf("%s: %.1f bytes a packet, %d in all", name, bytes, r.size())
		}
	}
}

func TestRingDropsPacketsOlderThanItsSpan(t *testing.T) {
	var r ring
	for seq := range uint64(20_000) {
		p := rowOf(replied(seq, instant.Time(int64(seq)*int64(time.Second)), ms, ms))
		r.add(&p, perPath)
	}
	if want := int(Span/time.Second) + 1; len(r.rows()) != want || r.size() > perPath/2 {
		t.Errorf("%d packets of one a second in %d bytes, want %d", len(r.rows()), r.size(), want)
	}
}

func TestKeepingAPacketHardlyAllocates(t *testing.T) {
	var r ring
	p := replied(0, 0, ms, ms)
	add := func() {
		p.Seq++
		p.T1.At = p.T1.At.Add(20 * ms)
		k := rowOf(p)
		r.add(&k, perPath)
	}
	if n := testing.AllocsPerRun(100_000, add); n != 0 { // one block for two hundred packets rounds to zero
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	var r ring
	b.ReportAllocs()
	p := *replied(0, 0, ms, ms)
	for b.Loop() {
		p.Seq++
		p.T1.At = p.T1.At.Add(20 * ms)
		k := rowOf(&p)
		r.add(&k, perPath)
	}
}
