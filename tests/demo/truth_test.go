package main

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
	"oneway.example/tests/testseed"
)

func TestChanceMatchesTheBinomialDistribution(t *testing.T) {
	for _, c := range []struct {
		k, n uint64
		p    float64
		want float64
	}{
		{0, 1000, 0, 1},
		{1, 1000, 0, 0},
		{0, 10, 0.5, 2.0 / 1024},
		{10, 10, 0.5, 2.0 / 1024},
		{5, 10, 0.5, 1},
		// Twice the tails, summed with Python's fractions and math.comb.
		{20, 2000, 0.02, 0.0006625298534057263},
		{80, 2000, 0.02, 2.2506842201030197e-08},
	} {
		if got := chance(c.k, c.n, c.p); math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("%d of %d at %v: %.6g, want %.6g", c.k, c.n, c.p, got, c.want)
		}
	}
}

// TestMedianRangeCoversAllChoices tries all choices of the packets that may be in the window.
func TestMedianRangeCoversAllChoices(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 5))
	for range 300 {
		var m members
		some := func(n int) (all []bracket) {
			for range n {
				v := math.Floor(10 * rng.Float64())
				all = append(all, bracket{v, v})
			}
			return all
		}
		m.sure, m.maybe = some(1+rng.IntN(6)), some(rng.IntN(7))
		want := span{math.Inf(1), math.Inf(-1)}
		for choice := range 1 << len(m.maybe) {
			var all []float64
			for _, b := range m.sure {
				all = append(all, b.least)
			}
			for i, b := range m.maybe {
				if choice>>i&1 == 1 {
					all = append(all, b.least)
				}
			}
			slices.Sort(all)
			v := all[(len(all)+1)/2-1]
			want.Low, want.High = min(want.Low, v), max(want.High, v)
		}
		if got := *m.median(); got != want {
			t.Fatalf("sure %v, maybe %v: got %v, want %v", m.sure, m.maybe, got, want)
		}
	}
}

func TestLostPacketsHaveInfiniteDelay(t *testing.T) {
	one := bracket{1, 1}
	m := members{sure: []bracket{one, one, lostDelay()}, maybe: []bracket{lostDelay()}}
	if got := m.median(); got == nil || *got != (span{1, 1}) {
		t.Errorf("%v", got)
	}
	m.maybe = append(m.maybe, lostDelay())
	if got := m.median(); got != nil {
		t.Errorf("median is %v with three of five possibly lost, want none", *got)
	}
}

func TestRowIsComparedWithTheLogAndNotTheConfiguration(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	for name, c := range map[string]struct {
		row  row
		want status
	}{
		"inside of the span":        {row{Configured: 9, Truth: &span{1, 2}, Measured: v(1.5)}, statusOK},
		"within the bound":          {row{Configured: 9, Truth: &span{1, 2}, Measured: v(2.4), Bound: 0.5}, statusOK},
		"beyond the bound":          {row{Configured: 2.6, Truth: &span{1, 2}, Measured: v(2.6), Bound: 0.5}, statusOutside},
		"within the tolerance too":  {row{Truth: &span{1, 2}, Measured: v(0.4), Bound: 0.5, Tolerance: 0.2}, statusOK},
		"no value in the log":       {row{Configured: 9, Measured: v(9.1), Tolerance: 0.2}, statusOK},
		"unreported":                {row{Truth: &span{1, 2}}, statusUnreported},
		"no number":                 {row{Truth: &span{1, 2}, Measured: v(math.NaN())}, statusOutside},
		"a link that is improbable": {row{Truth: &span{1, 2}, Measured: v(1), Chance: v(1e-8)}, statusOutside},
	} {
		c.row.judge()
		if c.row.Status != c.want || (c.want != statusOK) != (c.row.Reason != "") {
			t.Errorf("%s: %s (%s), want %s", name, c.row.Status, c.row.Reason, c.want)
		}
	}
}

// A refusal requires a reason, and a value of a link that has none can be wrong.
func TestRefusalIsCorrectIfTheLinkHasNoSuchValue(t *testing.T) {
	v := 1.0
	for name, c := range map[string]struct {
		row  row
		want status
	}{
		"refused":              {row{Undefined: "the rate moves", Reason: "the trains disagree"}, statusOK},
		"refused, no reason":   {row{Undefined: "the rate moves"}, statusUnreported},
		"refused, and defined": {row{Reason: "the trains disagree"}, statusUnreported},
		"a wrong value":        {row{Undefined: "the rate moves", Truth: &span{2, 3}, Measured: &v}, statusOutside},
	} {
		if c.row.judge(); c.row.Status != c.want {
			t.Errorf("%s: %s (%s), want %s", name, c.row.Status, c.row.Reason, c.want)
		}
	}
}

func TestExitStatusAndLastLineNameTheRows(t *testing.T) {
	good := row{Name: "a", Direction: "forward", Status: statusOK}
	bad := row{Name: "b", Direction: "reverse", Status: statusOutside, Measured: new(3000.0), Bound: 500, Truth: &span{4000, 4200}, Unit: "bytes"}
	absent := row{Name: "c", Direction: "both", Status: statusUnreported}
	for name, c := range map[string]struct {
		rows []row
		err  error
		code int
		last string
	}{
		"all well":            {[]row{good}, nil, 0, ""},
		"outside":             {[]row{good, bad}, nil, 3, "outside: b reverse is 3.0 kB ± 0.5 kB, want 4.0..4.2 kB"},
		"unreported":          {[]row{good, absent}, nil, 4, "unreported: c both"},
		"both":                {[]row{absent, bad}, nil, 3, "outside: b reverse is 3.0 kB ± 0.5 kB, want 4.0..4.2 kB; unreported: c both"},
		"a demo that failed":  {[]row{bad}, errors.New("agent ended"), 1, "agent ended; outside: b reverse is 3.0 kB ± 0.5 kB, want 4.0..4.2 kB"},
		"a failure in 2 rows": {nil, errors.Join(errors.New("x"), errors.New("y")), 1, "x; y"},
	} {
		if code, last := verdict(c.rows, c.err, false); code != c.code || last != c.last {
			t.Errorf("%s: got %d, %q, want %d, %q", name, code, last, c.code, c.last)
		}
	}
	var out strings.Builder
	if err := printTable(&out, "p", []row{{Name: "c", Direction: "both", Status: statusUnreported, Reason: "no reply", Unit: "seconds"}}); err != nil || !strings.Contains(out.String(), "unreported: no reply") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestQueriedCountersSufficeForTheRows(t *testing.T) {
	v := map[string]float64{}
	for _, name := range counterNames {
		v[name] = 0
	}
	v["sent"], v["received"] = 1, 1
	log := pathLog{requests: []lab.Record{{Outcome: lab.Delivered, Entry: base, Exit: at(time.Millisecond)}}}
	for _, r := range judged(countRows(sample.Forward, lab.Link{}, &log, v)) {
		if r.Status != statusOK {
			t.Errorf("%s: %s: %s", r.Name, r.Status, r.Reason)
		}
	}
}

func TestRepeatedRunKeepsEarlierValues(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	got := merge([]row{{Name: "a", Measured: v(1), Status: statusOK}, {Name: "b", Status: statusUnreported}}, []row{{Name: "a", Status: statusUnreported}, {Name: "b", Measured: v(2), Status: statusOK}})
	if len(got) != 2 || got[0].Status != statusOK || got[1].Status != statusOK {
		t.Errorf("%+v", got)
	}
}

// base is the start of the logs of these tests.
const base = instant.Time(1_700_000_000_000_000_000)

// at is an exit known to 1 us.
func at(d time.Duration) lab.Interval {
	return lab.Interval{After: base.Add(d), Before: base.Add(d + 1000)}
}

// The sender pauses from 2.2 s to 7.5 s: seconds with a pause do not show the link's rate.
func TestThroughputOmitsSecondsWithAPause(t *testing.T) {
	l := loadLog{begin: base, to: 9 * time.Second, told: 1e6, idle: []lab.Record{{Outcome: lab.Delivered, Entry: base, Exit: at(0), Size: 1000}}}
	for ms := range 9000 {
		if since := time.Duration(ms) * time.Millisecond; ms < 2200 || ms > 7500 {
			l.load = append(l.load, lab.Record{Outcome: lab.Delivered, Entry: base.Add(since), Exit: at(since), Size: 1000})
		}
	}
	if got := l.throughput(); got == nil || math.Abs(got.Low-1e6) > 2000 {
		t.Errorf("throughput %v, want 1e6", got)
	}
	l.from, l.to = 2*time.Second, 7*time.Second
	if got := l.throughput(); got == nil || got.Low > 3e5 {
		t.Errorf("throughput %v of seconds that all had a pause, of which the first alone has packets", got)
	}
}

func TestQueueSizeAndDelayByTheLog(t *testing.T) {
	l := loadLog{begin: base, to: time.Second, idle: []lab.Record{{Outcome: lab.Delivered, Entry: base, Exit: at(10 * time.Millisecond), Size: 1000}}}
	for i, queued := range []int{0, 5000, 8900, 9050, 8200} {
		r := lab.Record{Outcome: lab.Delivered, Entry: base, Queued: queued, Size: 1000, Exit: at(10*time.Millisecond + time.Duration(queued)*time.Microsecond)}
		if i == 3 {
			r.Outcome = lab.DroppedQueue
		}
		l.load = append(l.load, r)
	}
	if got := *l.queueSize(); got != (span{9900, 10_049}) {
		t.Errorf("size %v", got)
	}
	// 8900 and 8200 bytes before them left no space for another 1000 in 9900; the upper is the median.
	if got := *l.queueDelay(); math.Abs(got.Low-0.0089) > 2e-6 || math.Abs(got.High-0.0089) > 2e-6 {
		t.Errorf("delay %v", got)
	}
	l.load = l.load[:3]
	if l.queueSize() != nil {
		t.Error("got a queue size without any dropped packet")
	}
}

func TestCapacityCoversAllTrainsThatMayBeClean(t *testing.T) {
	r := run{Begin: base.Time(), End: base.Add(time.Minute).Time(), Result: "completed"}
	report := `{"results":{"directions":[{"direction":"reverse","sizes":[{"payload_bytes":972,"trains":{"clean":1,"lost":1}}]}]},
		"transfers":[{"direction":"reverse","plan":{"segments":[{"payload_bytes":972,"burst":3,"bursts":4}]},"begin_ns":1700000000000000000}]}`
	if err := json.Unmarshal([]byte(report), &r); err != nil {
		t.Fatal(err)
	}
	var log []lab.Record
	for n := range uint64(12) {
		train, k := n/3, n%3
		spacing := time.Duration(train+1) * time.Millisecond // 1, 2, 3 MB/s^-1 ...
		one := lab.Record{Key: loadKey | 7<<32 | n, Outcome: lab.Delivered, Size: 1000, Entry: base.Add(time.Duration(n)), Exit: at(time.Duration(train)*time.Second + time.Duration(k)*spacing)}
		if n == 10 {
			one.Outcome = lab.DroppedLoss
		}
		log = append(log, one)
	}
	got := trainCapacity(log, sample.Reverse, &r, 972)
	if got == nil || math.Abs(got.Low-1e6/3) > 1 || math.Abs(got.High-1e6) > 1 {
		t.Errorf("got %v, want a third to one MB/s: any of three complete trains may be the clean one", got)
	}
}

func TestClassifierDistinguishesRequestsRepliesAndLoad(t *testing.T) {
	log := []lab.Record{{Key: 5}, {Key: replyKey | 5<<31 | 9}, {Key: loadKey | 1<<32 | 3}}
	if q, _ := light(log, sample.Forward); len(q) != 1 || q[0].Key != 5 {
		t.Errorf("requests %+v", q)
	}
	if a, to := light(log, sample.Reverse); len(a) != 1 || a[0].Key != 9 || to[0] != 5 {
		t.Errorf("replies %+v to %v", a, to)
	}
}

func TestWhyReturnsTheRunsReason(t *testing.T) {
	for name, c := range map[string]struct{ report, want string }{
		"a run that broke": {`{"result":"incomplete","reason":"timeout","error":"it was not over after 1m0s"}`, "the run was incomplete (timeout): it was not over after 1m0s"},
		"a load refused":   {`{"result":"completed","results":{"directions":[{"direction":"forward","load":{"state":"aqm","evidence":"dropped early","clocks_reason":"ok"}}]}}`, "aqm: dropped early"},
		"trains refused":   {`{"result":"completed","results":{"directions":[{"direction":"forward","sizes":[{"payload_bytes":800,"no_capacity_reason":"2 of 15 trains clean"}]}]}}`, "trains of 800 B: 2 of 15 trains clean"},
	} {
		var r run
		if err := json.Unmarshal([]byte(c.report), &r); err != nil {
			t.Fatal(err)
		}
		if got := r.why(sample.Forward); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// After a stall longer than the waiting time the link delivers packets that are lost nevertheless; without a reply, the
// receive time is unknown.
func TestPacketsAfterTheWaitingTimeAreLost(t *testing.T) {
	const n = 1000
	p := &pathLog{answered: map[uint64][]int{}, lost: time.Second}
	for i := range uint64(n) {
		entry, delay := instant.Time(i)*instant.Time(10*time.Millisecond), 40*time.Millisecond
		if i >= 300 && i < 400 {
			delay = time.Duration(3040-10*(i-300)) * time.Millisecond
		}
		exit := entry.Add(delay)
		p.requests = append(p.requests, lab.Record{Key: i, Entry: entry, Exit: lab.Interval{Before: exit, After: exit}, Outcome: lab.Delivered})
		if i != 310 {
			p.answered[i] = []int{int(i)}
		}
	}
	_, _, lost := p.counted(sample.Forward, n)
	// All 100 take 2.05 s and more; that of number 310 may be unknown.
	if lost != [2]uint64{99, 100} {
		t.Errorf("got %v lost, want 99 to 100", lost)
	}
	m := p.members(sample.Forward, window{sure: instant.Time(n) * instant.Time(time.Second), maybe: instant.Time(n) * instant.Time(time.Second)})
	infinite := 0
	for _, b := range append(m.sure, m.maybe...) {
		if math.IsInf(b.least, 1) {
			infinite++
		}
	}
	if infinite != 100 {
		t.Errorf("got %d infinite delays, want 100", infinite)
	}
}
