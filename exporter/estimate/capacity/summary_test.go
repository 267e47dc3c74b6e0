package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func clean(size int, capacity float64) Verdict {
	return Verdict{IPBytes: size, Capacity: capacity, MeanGap: time.Duration(float64(size) / capacity * 1e9)}
}

func TestSummaryIsBySizeLargestFirst(t *testing.T) {
	var all []Verdict
	for i := range 20 {
		all = append(all, clean(828, float64(1000+i)), clean(1500, float64(2000-i)))
	}
	all = append(all, Verdict{IPBytes: 828, Result: Lost}, Verdict{IPBytes: 828, Result: 99})
	got := Summarise(all)
	if len(got) != 2 || got[0].IPBytes != 1500 || got[1].IPBytes != 828 {
		t.Fatalf("%+v", got)
	}
	s := got[1]
	if !s.OK || s.P5 != 1000 || s.Median != 1009.5 || s.P95 != 1018 || len(s.Capacities) != 20 || s.Trains[Lost] != 1 {
		t.Errorf("%+v", s)
	}
	if want := 828 / 1009.5; math.Abs(s.MeanGap.Seconds()-want) > 1e-3 {
		t.Errorf("mean gap %v, want %v s", s.MeanGap, want)
	}
}

func TestSummaryRefusesWhereMoreTrainsAreContaminatedThanClean(t *testing.T) {
	few := []Verdict{clean(1500, 1), clean(1500, 1), clean(1500, 1)}
	for name, c := range map[string]struct {
		extra []Verdict
		ok    bool
	}{
		"three clean":        {nil, true},
		"losses":             {[]Verdict{{IPBytes: 1500, Result: Lost}, {IPBytes: 1500, Result: Lost}, {IPBytes: 1500, Result: Reordered}, {IPBytes: 1500, Result: Duplicated}}, true},
		"three contaminated": {[]Verdict{{IPBytes: 1500, Result: Batched}, {IPBytes: 1500, Result: Coalesced}, {IPBytes: 1500, Result: TokenBucket}}, true},
		"four contaminated":  {[]Verdict{{IPBytes: 1500, Result: Batched}, {IPBytes: 1500, Result: Batched}, {IPBytes: 1500, Result: SenderPace}, {IPBytes: 1500, Result: Unstamped}}, false},
	} {
		s := Summarise(append(few[:3:3], c.extra...))[0]
		if s.OK != c.ok || s.OK == (s.Refusal != "") {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if got := Summarise(few[:2])[0]; got.OK || got.Refusal != "only 2 trains, want 3" || got.Median != 0 {
		t.Errorf("two trains: %+v", got)
	}
	if diff := cmp.Diff([]Summary(nil), Summarise(nil)); diff != "" {
		t.Error(diff)
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
		"a pair":           {at(0, 12000), Clean},
		"a pair, merged":   {at(0, 0), Coalesced},
		"three":            {at(0, 12000, 24000), Clean},
		"arrived too soon": {at(0, -12000), Reordered},
	} {
		v := Judge(Train{IPBytes: 1500, Packets: c.packets}, Options{})
		if v.Result != c.want || (v.Result == Clean) == (v.Evidence != "") {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := Judge(Train{IPBytes: 1500, Packets: at(0, 12000)}, Options{}); v.Capacity != 125e6 || v.MeanGap != 12*us {
		t.Errorf("%+v", v)
	}
}

func TestEveryResultHasItsWord(t *testing.T) {
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
		if v := Judge(train, Options{}); v.Result != Clean {
			b.Fatal(v)
		}
	}
}
