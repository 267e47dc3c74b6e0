package voice

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/estimate/delay"
	"oneway.example/tests/testseed"
)

var g107 = Model{"g107", G107}

func codec(t *testing.T, name string) Codec {
	t.Helper()
	c, err := CodecByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMouthToEarIsCodecNetworkAndBuffer(t *testing.T) {
	path := Path{Delay: 30 * msec, Decided: 100}
	a, ok := path.Assess(codec(t, "G.729"), Buffered{Played: 100, Delay: 40 * msec}, Defaults(), g107)
	if !ok || a.MouthToEar != 95*msec || a.Loss != 0 || a.BurstR != 1 {
		t.Errorf("%+v %v", a, ok)
	}
	near(t, "R", a.R, G107(Defaults().WithCodec(codec(t, "G.729")).WithDelay(95*msec)).R)
}

func TestLateAndLostPacketsAddUp(t *testing.T) {
	path := Path{Decided: 100, Lost: 10, Bursts: 10}
	b := Buffered{Played: 72, Late: 18, LateBursts: 18}
	a, ok := path.Assess(codec(t, "G.711"), b, Defaults(), g107)
	if !ok {
		t.Fatal("not rated")
	}
	near(t, "loss", a.Loss, 0.28)
	if a.BurstR != 1 {
		t.Errorf("BurstR %v for single losses", a.BurstR)
	}
	// Only half of the 90 received packets had a timestamp: their share of late ones counts.
	half, _ := path.Assess(codec(t, "G.711"), Buffered{Played: 36, Late: 9, LateBursts: 9}, Defaults(), g107)
	near(t, "loss with half of the timestamps", half.Loss, 0.28)
}

func TestBurstsRateWorseThanSingleLosses(t *testing.T) {
	b := Buffered{Played: 98}
	single, _ := Path{Decided: 100, Lost: 2, Bursts: 2}.Assess(codec(t, "G.729"), b, Defaults(), g107)
	burst, _ := Path{Decided: 100, Lost: 2, Bursts: 1}.Assess(codec(t, "G.729"), b, Defaults(), g107)
	near(t, "BurstR", burst.BurstR, 2*0.98)
	if burst.R >= single.R {
		t.Errorf("R %v in a burst, %v apart", burst.R, single.R)
	}
}

func TestTooFewPacketsOrNoDelayIsNotRated(t *testing.T) {
	g711 := codec(t, "G.711")
	if a, ok := (Path{Decided: MinPackets - 1}).Assess(g711, Buffered{Played: 9}, Defaults(), g107); ok {
		t.Errorf("9 packets: %+v", a)
	}
	if a, ok := (Path{Decided: 100, Lost: 100, Bursts: 1}).Assess(g711, Buffered{}, Defaults(), g107); ok {
		t.Errorf("nothing received: %+v", a)
	}
}

func TestAllLateRatesAtTheBottom(t *testing.T) {
	a, ok := Path{Decided: 10}.Assess(codec(t, "G.711"), Buffered{Late: 10, LateBursts: 1}, Defaults(), Models()[1])
	if !ok || a.Loss != 1 || a.R > 6 || a.MOS != 1 {
		t.Errorf("%+v %v", a, ok)
	}
}

func TestInvalidRemoteCountsMakeNoLossAboveOne(t *testing.T) {
	a, ok := Path{Decided: 10, Lost: 1 << 40, Bursts: 1}.Assess(codec(t, "G.711"), Buffered{Played: 5}, Defaults(), g107)
	if !ok || !(a.Loss >= 0 && a.Loss <= 1) || !(a.R >= 0 && a.R <= 100) {
		t.Errorf("%+v %v", a, ok)
	}
}

// From delays to the rating: a clock offset changes neither the buffers' verdicts nor, with the true minimum, the
// rating.
func TestPlayoutIsFreeOfAConstantClockOffset(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 9))
	var delays []time.Duration
	for range 500 {
		delays = append(delays, 25*msec+time.Duration(rng.ExpFloat64()*float64(15*msec)))
	}
	rate := func(offset time.Duration, p *Playout) Assessment {
		var pdv delay.PDV
		for seq, d := range delays {
			pdv.Add(uint64(seq), d+offset)
		}
		for seq, v := range pdv.Drain() {
			p.Add(seq, v)
		}
		path := Path{Delay: slices.Min(delays), Decided: 500}
		a, _ := path.Assess(codec(t, "G.729"), p.Snapshot(), Defaults(), g107)
		return a
	}
	for name, make := range map[string]func() *Playout{
		"fixed":    func() *Playout { return FixedPlayout(40 * msec) },
		"adaptive": func() *Playout { return AdaptivePlayout(time.Second) },
	} {
		want := rate(0, make())
		if want.Loss == 0 || want.R < 30 {
			t.Errorf("%s: %+v is not a valid test case", name, want)
		}
		for _, offset := range []time.Duration{-37 * time.Second, time.Hour} {
			if got := rate(offset, make()); got != want {
				t.Errorf("%s, offset %v: %+v, want %+v", name, offset, got, want)
			}
		}
	}
}

// Packets of a bad second overtake each other; a listener hears one gap, in the order of the numbers.
func TestLatePacketsThatOvertakeEachOtherAreOneRun(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 10))
	const interval = 20 * msec
	delays := make([]time.Duration, 5000)
	for i := range delays {
		if i%500 >= 450 {
			delays[i] = 100*msec + time.Duration(rng.Int64N(int64(900*msec)))
		}
	}
	arrived := func(i int) time.Duration { return time.Duration(i)*interval + delays[i] }
	order := make([]int, len(delays))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(arrived(a), arrived(b)) })
	var pdv delay.PDV
	for _, i := range order {
		pdv.Add(uint64(i), delays[i])
	}
	p := FixedPlayout(60 * msec)
	for seq, v := range pdv.Drain() {
		p.Add(seq, v)
	}
	if b := p.Snapshot(); b.Late != 500 || b.LateBursts != 10 {
		t.Errorf("%d late packets in %d runs, want 500 in 10", b.Late, b.LateBursts)
	}
}

// TestRHoldsWhateverBecameOfUnknownPackets: some packets of a window are hidden, each lost, late, or played.
func TestRHoldsWhateverBecameOfUnknownPackets(t *testing.T) {
	seed := testseed.Of(t)
	for round := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, round))
		var truth, seen struct {
			Path
			Buffered
		}
		truth.Path.Delay, seen.Path.Delay = 50*time.Millisecond, 50*time.Millisecond
		n, loss, hide, unknown := 20+rng.IntN(500), rng.Float64()*rng.Float64()/2, rng.Float64()*rng.Float64()/5, uint64(0)
		last, lastSeen := 0, 0
		for range n {
			outcome, hidden := 0, rng.Float64() < hide // 1: lost, 2: late
			if chance := rng.Float64(); chance < loss || last > 0 && chance < 0.5 {
				outcome = 1 + rng.IntN(2)
			}
			count := func(p *Path, b *Buffered, last int) {
				p.Decided++
				switch outcome {
				case 0:
					b.Played++
				case 1:
					p.Lost++
					if last != 1 {
						p.Bursts++
					}
				case 2:
					b.Late++
					if last != 2 {
						b.LateBursts++
					}
				}
			}
			count(&truth.Path, &truth.Buffered, last)
			last = outcome
			if hidden {
				unknown++
				lastSeen = 0
				if outcome != 1 && rng.IntN(2) == 0 {
					seen.Decided++ // it was received; whether in time is unknown
				}
				continue
			}
			count(&seen.Path, &seen.Buffered, lastSeen)
			lastSeen = outcome
		}
		for _, codec := range Codecs() {
			got, ok := seen.Assess(codec, seen.Buffered, Defaults(), g107)
			want, known := truth.Assess(codec, truth.Buffered, Defaults(), g107)
			if off := seen.RError(0, unknown, got.R, codec, seen.Buffered, Defaults(), g107); ok && known && math.Abs(got.R-want.R) > off+1e-9 {
				t.Fatalf("round %d, %s: R %v with the bound %v, true value %v; %d of %d unknown", round, codec.Name, got.R, off, want.R, unknown, n)
			}
		}
	}
}
