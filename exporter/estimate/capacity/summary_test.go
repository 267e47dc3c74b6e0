package capacity

import (
	"math"
	"testing"
	"time"
)

func clean(capacity float64) Verdict {
	gap := time.Duration(1500 / capacity * 1e9)
	return Verdict{IPBytes: 1500, Capacity: capacity, MeanGap: gap, Dispersion: 24 * gap, Error: gap / 100}
}

func TestSummaryIsTheMedianOfCleanTrainsWithAnIntervalOfRanks(t *testing.T) {
	var all []Verdict
	for i := range 20 {
		all = append(all, clean(float64(2000-i)))
	}
	s := Summarize(append(all, Verdict{Result: Lost}), MinClean)
	if !s.OK || s.P5 != 1981 || s.Median != 1990.5 || s.P95 != 1999 || len(s.Capacities) != 20 || s.Trains[Lost] != 1 {
		t.Errorf("%+v", s)
	}
	if want := 1500 / 1990.5; math.Abs(s.MeanGap.Seconds()-want) > 1e-3 {
		t.Errorf("mean gap %v, want %v s", s.MeanGap, want)
	}
	off := 1 / 2400.0
	if math.Abs(s.Low-1981/(1+off)) > 1e-6 || math.Abs(s.High-1999/(1-off)) > 1e-6 {
		t.Errorf("%v to %v, want %v to %v", s.Low, s.High, 1981/(1+off), 1999/(1-off))
	}
}

func TestSummaryRefusesWhereTrainsAreFewContaminatedOrDisagree(t *testing.T) {
	results := func(all ...Result) (v []Verdict) {
		for _, r := range all {
			v = append(v, Verdict{Result: r, Evidence: "why"})
		}
		return v
	}
	three := []Verdict{clean(1e6), clean(1e6), clean(1e6)}
	for name, c := range map[string]struct {
		trains []Verdict
		least  int
		want   string
	}{
		"none":               {nil, 3, "0 of 0 trains are clean, 3 are needed"},
		"two":                {three[:2], 0, "2 of 2 trains are clean, 3 are needed"},
		"three":              {three, 0, ""},
		"three of four":      {three, 4, "3 of 3 trains are clean, 4 are needed"},
		"losses":             {append(three[:3:3], results(Lost, Lost, Reordered, Duplicated)...), 3, ""},
		"held up":            {append(three[:3:3], results(SenderPace, SenderPace, SenderPace, SenderPace, Unstamped)...), 3, ""},
		"one contaminated":   {append(three[:3:3], results(Interleaved)...), 3, ""},
		"three contaminated": {append(three[:3:3], results(Batched, Batched, TooShort)...), 3, ""},
		"four contaminated":  {append(three[:3:3], results(Batched, Batched, Batched, TooShort)...), 3, "3 of 7 trains are clean, 4 are needed; 3 in batches, such as: why"},
		"two interleaved":    {append(three[:3:3], results(Interleaved, Interleaved)...), 3, "3 of 5 trains are clean, 4 are needed; 2 mixed with other packets, such as: why"},
		"disagree": {
			append(three[:3:3], clean(1.2e6)), 3,
			"the trains disagree: 5 % found 8 Mb/s or less, 5 % 9.6 Mb/s or more; the link's rate varies, or others use it",
		},
	} {
		if s := Summarize(c.trains, c.least); s.Refusal != c.want || s.OK != (c.want == "") || !s.OK && s.Median != 0 {
			t.Errorf("%s: %+v, want %q", name, s, c.want)
		}
	}
}

// A link alternates between 10 and 2 Mb/s. Its queue overflows in the slow state: of each such train it loses packets, and clean trains
// are of the fast state alone.
func TestTrainsThatASlowStateLosesDisagree(t *testing.T) {
	train := func(rate float64, arrive int) Train {
		all := Train{IPBytes: 1500}
		for i := range 25 {
			p := Packet{Sent: epoch.Add(time.Duration(i) * 12 * us), Lost: i >= arrive}
			if !p.Lost {
				p.Arrived = epoch.Add(20*ms + time.Duration(float64(i)*1500*8e9/rate))
			}
			all.Packets = append(all.Packets, p)
		}
		return all
	}
	for name, c := range map[string]struct {
		slow    int
		rate    float64
		refusal string
	}{
		"one of three":             {5, 2e6, "the trains disagree: 5 % found 2 Mb/s or less, 5 % 10 Mb/s or more; the link's rate varies, or others use it"},
		"losses at the same rate":  {5, 10e6, ""},
		"faster while it loses":    {5, 50e6, "the trains disagree: 5 % found 10 Mb/s or less, 5 % 50 Mb/s or more; the link's rate varies, or others use it"},
		"no losses":                {0, 2e6, ""},
		"as many as the clean":     {10, 2e6, "the trains disagree: 5 % found 2 Mb/s or less, 5 % 10 Mb/s or more; the link's rate varies, or others use it"},
		"one of many, an accident": {1, 10.5e6, ""},
	} {
		var all []Verdict
		for range 10 {
			all = append(all, Evaluate(train(10e6, 25), Options{}))
		}
		for range c.slow {
			all = append(all, Evaluate(train(c.rate, 12), Options{}))
		}
		s := Summarize(all, MinClean)
		if s.Refusal != c.refusal || s.OK != (c.refusal == "") || s.Trains[Lost] != c.slow {
			t.Errorf("%s: %+v, want %q", name, s, c.refusal)
		}
	}
}

func TestShortAndEmptyTrainsAreJudged(t *testing.T) {
	at := func(ns ...int64) (p []Packet) {
		for _, n := range ns {
			p = append(p, Packet{Sent: epoch, Arrived: epoch.Add(time.Duration(n))})
		}
		return p
	}
	for name, c := range map[string]struct {
		packets []Packet
		want    Result
	}{
		"none":             {nil, Lost},
		"one":              {at(1), Lost},
		"a pair":           {at(0, 120_000), Clean},
		"a pair, merged":   {at(0, 0), Coalesced},
		"a pair, too near": {at(0, 12_000), TooShort},
		"three":            {at(0, 120_000, 240_000), Clean},
		"arrived too soon": {at(0, -12000), Reordered},
	} {
		v := Evaluate(Train{IPBytes: 1500, Packets: c.packets}, Options{})
		if v.Result != c.want || (v.Result == Clean) == (v.Evidence != "") {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := Evaluate(Train{IPBytes: 1500, Packets: at(0, 120_000)}, Options{}); v.Capacity != 12.5e6 || v.MeanGap != 120*us {
		t.Errorf("%+v", v)
	}
}

// 25 packets within 7 us would be a link of 41 Gb/s, beyond the resolution of kernel timestamps.
func TestDispersionBelowTheTimestampErrorIsTooShort(t *testing.T) {
	for dispersion, want := range map[time.Duration]Result{7 * us: TooShort, 24 * us: TooShort, 240 * us: TooShort, 264 * us: Clean} {
		train := Train{IPBytes: 1500}
		for i := range 25 {
			train.Packets = append(train.Packets, Packet{Sent: epoch, Arrived: epoch.Add(time.Duration(i) * dispersion / 24)})
		}
		v := Evaluate(train, Options{StampError: 25 * us})
		if low, high := v.interval(); v.Result != want || v.Error < 25*us || low > v.Capacity || high < v.Capacity || math.IsInf(high, 1) != (dispersion < 25*us) {
			t.Errorf("%v: %+v, want %v", dispersion, v, want)
		}
	}
}

func TestEveryResultHasItsOwnLabel(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Results() {
		if w := r.String(); w == "invalid" || seen[w] {
			t.Errorf("%d: %q", r, w)
		} else {
			seen[w] = true
		}
	}
	if len(seen) != len(Summary{}.Trains) || Result(200).String() != "invalid" {
		t.Errorf("%v", seen)
	}
}

// BenchmarkJudge is one train of the WPI report (section 3.5).
func BenchmarkJudge(b *testing.B) {
	train := Train{IPBytes: 1500}
	for i := range 25 {
		train.Packets = append(train.Packets, Packet{Sent: epoch, Arrived: epoch.Add(time.Duration(i) * ms)})
	}
	b.ReportAllocs()
	for b.Loop() {
		if v := Evaluate(train, Options{}); v.Result != Clean {
			b.Fatal(v)
		}
	}
}
