package bottleneck

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/testseed"
)

const start = instant.Time(1_700_000_000_000_000_000)

// offer sends packets of the sizes given by size at the offered rate, in bit/s, for the given time.
func offer(c Config, offered float64, length time.Duration, size func(i int) int) []Out {
	var out []Out
	l := New(c, 1, func(o Out) { out = append(out, o) })
	at := start
	for i := 0; at < start.Add(length); i++ {
		n := size(i)
		l.Enter(Packet{ID: uint64(i), Size: n, Entry: at})
		at = at.Add(time.Duration(float64(n) * 8e9 / offered))
	}
	l.Advance(at.Add(time.Hour))
	return out
}

func of(size int) func(int) int { return func(int) int { return size } }

const ms = time.Millisecond

func configs() map[string]Config {
	return map[string]Config{
		"wire":          {Rate: 2.5e6, Queue: 110_000},
		"trace":         {Trace: Cellular(1, 2.5e6, time.Minute), Queue: 110_000},
		"slots":         {Rate: 2.5e6, Slot: 10 * ms, Queue: 110_000},
		"bucket":        {Rate: 2.5e6, Bucket: 20_000, Peak: 100e6, Queue: 110_000},
		"policer":       {Rate: 2.5e6, Bucket: 20_000, Police: true},
		"packets":       {Rate: 2.5e6, QueuePackets: 50},
		"timer":         {Rate: 2.5e6, QueueTime: 200 * ms},
		"head drop":     {Rate: 2.5e6, Queue: 110_000, Discipline: HeadDrop},
		"CoDel":         {Rate: 2.5e6, QueuePackets: 1000, Discipline: CoDel},
		"fq_codel":      {Rate: 2.5e6, Discipline: FQCoDel},
		"RED":           {Rate: 2.5e6, Queue: 110_000, Discipline: RED},
		"two in series": {Rate: 2.5e6, Queue: 110_000, Second: &Config{Rate: 2e6, Queue: 50_000}, Between: 5 * ms},
		"others":        {Rate: 2.5e6, Queue: 110_000, Others: 500_000},
	}
}

// TestEveryPacketHasOneOutcome also checks that none leaves before it enters, or before the one ahead of it.
func TestEveryPacketHasOneOutcome(t *testing.T) {
	seed := testseed.Of(t)
	for name, c := range configs() {
		if err := c.Check(); err != nil {
			t.Fatal(name, err)
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		sent := 0
		out := offer(c, 5e6, 10*time.Second, func(i int) int { sent = i + 1; return 40 + rng.IntN(1461) })
		seen := make(map[uint64]bool, sent)
		var last instant.Time
		left := 0
		for _, o := range out {
			if seen[o.ID] {
				t.Fatalf("%s: packet %d has two outcomes, want one", name, o.ID)
			}
			seen[o.ID] = true
			if o.At < o.Entry {
				t.Fatalf("%s: packet %d has its outcome %v before it entered", name, o.ID, o.Entry.Sub(o.At))
			}
			if o.Outcome == Left {
				if o.At < last {
					t.Fatalf("%s: packet %d leaves out of order", name, o.ID)
				}
				last = o.At
				left++
			}
		}
		if len(seen) != sent || left == 0 || left == sent {
			t.Errorf("%s: %d of %d packets have an outcome, %d left", name, len(seen), sent, left)
		}
	}
}

// TestTailDropAdmitsPacketsThatFit checks the decision for each packet.
func TestTailDropAdmitsPacketsThatFit(t *testing.T) {
	for _, name := range []string{"wire", "trace", "slots", "bucket"} {
		c := configs()[name]
		for _, o := range offer(c, 10e6, 5*time.Second, func(i int) int { return 100 + i*7%1300 }) {
			if space := o.Queued+o.Size <= c.Queue; space != (o.Outcome == Left) {
				t.Fatalf("%s: packet of %[3]d bytes with a queue of %[2]d bytes: outcome %[4]d", name, o.Queued, o.Size, o.Outcome)
			}
		}
	}
}

// TestTransmittedBytesMatchTheRate: under permanent load.
func TestTransmittedBytesMatchTheRate(t *testing.T) {
	cellular := configs()["trace"].Trace
	for name, want := range map[string]func(from, to time.Duration) (low, high float64){
		"wire": func(from, to time.Duration) (float64, float64) {
			n := (to - from).Seconds() * 2.5e6 / 8
			return n - 1500, n + 1500
		},
		"slots": func(from, to time.Duration) (float64, float64) {
			n := (to - from).Seconds() * 2.5e6 / 8
			return n - 3125 - 1500, n + 3125 + 1500
		},
		"bucket": func(from, to time.Duration) (float64, float64) { // the bucket is empty by then
			n := (to - from).Seconds() * 2.5e6 / 8
			return n - 3000, n + 3000
		},
		"trace": func(from, to time.Duration) (float64, float64) {
			n := 0
			for _, at := range cellular {
				if d := time.Duration(at) * ms; d >= from && d < to {
					n++
				}
			}
			return float64(n-2) * Opportunity, float64(n+2) * Opportunity
		},
	} {
		out := offer(configs()[name], 10e6, 20*time.Second, of(1000))
		for from := 2 * time.Second; from < 15*time.Second; from += time.Second {
			to, byteCount := from+time.Second, 0
			for _, o := range out {
				if d := o.At.Sub(start); o.Outcome == Left && d >= from && d < to {
					byteCount += o.Size
				}
			}
			if low, high := want(from, to); float64(byteCount) < low || float64(byteCount) > high {
				t.Errorf("%s: %d bytes left in the second from %v, want %.0f to %.0f", name, byteCount, from, low, high)
			}
		}
	}
}

func TestPacketsLeaveAtMultiplesOfTheSlot(t *testing.T) {
	for _, o := range offer(configs()["slots"], 1e6, 2*time.Second, of(1400)) {
		if d := o.At.Sub(start); d%(10*ms) != 0 {
			t.Fatalf("packet %d leaves at %v", o.ID, d)
		}
	}
}

// TestBucketIsNeverExceeded: in any time d at most rate x d plus the bucket.
func TestBucketIsNeverExceeded(t *testing.T) {
	for _, name := range []string{"bucket", "policer"} {
		c := configs()[name]
		var at []float64
		for _, o := range offer(c, 20e6, 5*time.Second, of(1000)) {
			if o.Outcome == Left {
				at = append(at, o.At.Sub(start).Seconds())
			}
		}
		most := 0.0
		for i := range at {
			for j := i; j < min(len(at), i+100); j++ {
				most = max(most, float64(j-i+1)*1000-(at[j]-at[i])*float64(c.Rate)/8)
			}
		}
		if most > float64(c.Bucket)+1 || most < float64(c.Bucket)-2000 {
			t.Errorf("%s: %.0f bytes above its rate, want its bucket of %d", name, most, c.Bucket)
		}
	}
}

func TestDiscardTimerDropsOldPackets(t *testing.T) {
	most := time.Duration(0)
	for _, o := range offer(configs()["timer"], 5e6, 5*time.Second, of(1400)) {
		waited := o.At.Sub(o.Entry)
		if o.Outcome == Expired && waited <= 200*ms {
			t.Fatalf("packet %d is discarded after %v", o.ID, waited)
		}
		if o.Outcome == Left {
			most = max(most, waited)
		}
	}
	if most > 200*ms || most < 190*ms {
		t.Errorf("longest wait %v, want up to 200 ms", most)
	}
}

func TestHeadDropEvictsTheOldest(t *testing.T) {
	last := uint64(0)
	evicted := 0
	for _, o := range offer(configs()["head drop"], 5e6, 5*time.Second, of(1400)) {
		if o.Outcome == Refused {
			t.Fatalf("packet %d was refused, want none", o.ID)
		}
		if o.Outcome == Evicted {
			evicted++
		}
		if o.ID < last {
			t.Fatalf("packet %d has its outcome after packet %d", o.ID, last)
		}
		last = o.ID
	}
	if evicted == 0 {
		t.Error("no packet was evicted")
	}
}

// TestCoDelLimitsTheDelayOfAResponsiveLoad: with a sender 2 % above the link's rate, CoDel reaches its target soon; a
// link without overload drops nothing.
func TestCoDelLimitsTheDelayOfAResponsiveLoad(t *testing.T) {
	for _, o := range offer(configs()["CoDel"], 2.4e6, 10*time.Second, of(1400)) {
		if o.Outcome != Left {
			t.Fatalf("packet %d of a link without overload: outcome %d", o.ID, o.Outcome)
		}
	}
	late, dropped := time.Duration(0), 0
	for _, o := range offer(configs()["CoDel"], 2.55e6, 60*time.Second, of(1400)) {
		if o.Outcome == Managed {
			dropped++
		} else if o.At.Sub(start) > 30*time.Second {
			late = max(late, o.At.Sub(o.Entry))
		}
	}
	if late > 100*ms || dropped == 0 {
		t.Errorf("delays of up to %v after 30 s, dropped %d; want less than 100 ms, and above 0", late, dropped)
	}
}

// TestFQCoDelIsolatesFlows: a sparse flow does not wait for another flow's queue.
func TestFQCoDelIsolatesFlows(t *testing.T) {
	var most, other time.Duration
	l := New(configs()["fq_codel"], 1, func(o Out) {
		if o.Flow == 1 {
			most = max(most, o.At.Sub(o.Entry))
		} else if o.Outcome == Left {
			other = max(other, o.At.Sub(o.Entry))
		}
	})
	at := start
	for i := range uint64(5000) {
		l.Enter(Packet{ID: 2 * i, Size: 1400, Entry: at})
		if i%50 == 49 {
			l.Enter(Packet{ID: 2*i + 1, Flow: 1, Size: 200, Entry: at})
		}
		at = at.Add(2 * ms)
	}
	l.Advance(at.Add(time.Hour))
	if most > 10*ms || other < 100*ms {
		t.Errorf("a sparse flow waited up to %v, a dense one up to %v; want at most 2 packets, and a queue", most, other)
	}
}

func TestCrossTrafficTakesItsShare(t *testing.T) {
	byteCount := 0
	for _, o := range offer(configs()["others"], 4.7e6, 60*time.Second, of(1400)) {
		if d := o.At.Sub(start); o.Outcome == Left && d > 5*time.Second && d < 55*time.Second {
			byteCount += o.Size
		}
	}
	// Both meet the same full queue: of the offered 5.2 Mb/s, 4.7 are the test's. (At exactly twice the rate a test
	// packet would enter whenever there is space.)
	if share := float64(byteCount) * 8 / 50 / 2.5e6; share < 0.85 || share > 0.97 {
		t.Errorf("the test's share of the link is %.3f, want about 0.90", share)
	}
}

func TestNarrowerSecondQueueOverflows(t *testing.T) {
	most := 0
	for _, o := range offer(configs()["two in series"], 5e6, 10*time.Second, of(1400)) {
		if o.Outcome == Left {
			most = max(most, o.Queued+o.Size)
		}
	}
	if most < 150_000 || most > 160_000 {
		t.Errorf("maximum length of both queues %d bytes, want about 160,000", most)
	}
}

func TestSetChangesTheRate(t *testing.T) {
	var left []Out
	l := New(Config{Rate: 1e6, Queue: 1e6}, 1, func(o Out) { left = append(left, o) })
	for i := range uint64(100) {
		l.Enter(Packet{ID: i, Size: 1250, Entry: start})
		if i == 49 {
			l.Set(Config{Rate: 10e6, Queue: 1e6})
		}
	}
	l.Advance(start.Add(time.Hour))
	if gap := left[60].At.Sub(left[59].At); gap != ms {
		t.Errorf("1250 bytes at 10 Mb/s take %v, want 1 ms", gap)
	}
}

func TestCellularTracesHaveTheirMeanAndVary(t *testing.T) {
	for seed := range uint64(20) {
		trace := Cellular(seed, 5e6, 5*time.Minute)
		if !slices.IsSorted(trace) || trace[len(trace)-1] != 300_000 {
			t.Fatalf("seed %d: trace is not in order, or has a length of %d ms", seed, trace[len(trace)-1])
		}
		seconds := make([]float64, 300)
		for _, at := range trace[:len(trace)-1] {
			seconds[at/1000] += Opportunity * 8
		}
		slices.Sort(seconds)
		mean := float64(len(trace)) * Opportunity * 8 / 300
		if mean < 2.5e6 || mean > 10e6 || seconds[270] < 2*seconds[30] {
			t.Errorf("seed %d: mean %.0f bit/s; 31st lowest second %.0f, 271st %.0f", seed, mean, seconds[30], seconds[270])
		}
	}
}

func TestInvalidConfigurationsAndTracesAreErrors(t *testing.T) {
	for want, c := range map[string]Config{
		"negative":       {Rate: -1},
		"one of both":    {Rate: 1, Trace: []uint32{1}},
		"takes time":     {Trace: []uint32{0, 0}},
		"after 5 ms":     {Trace: []uint32{5, 4}},
		"need a rate":    {Slot: ms},
		"passes nothing": {Rate: 1, Police: true},
		"no more than":   {Rate: 1, Second: &Config{Rate: 1, Others: 5}},
	} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", c, err, want)
		}
	}
	for text, want := range map[string]string{"": "empty", "1\n2\nx\n": "line 3", "1\n\n3": "line 2", "5000000000": "line 1"} {
		if _, err := ParseTrace([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("trace %q: got %v, want %q", text, err, want)
		}
	}
	if got, err := ParseTrace([]byte("0\n0\n7\r\n9")); err != nil || !slices.Equal(got, []uint32{0, 0, 7, 9}) {
		t.Errorf("got %v %v", got, err)
	}
	if _, err := ParseDiscipline("best"); err == nil || !strings.Contains(err.Error(), "tail_drop") {
		t.Errorf("%v", err)
	}
}

func BenchmarkLink(b *testing.B) {
	for name, c := range configs() {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			l := New(c, 1, func(Out) {})
			at, i := start, uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				i++
				at = at.Add(2240 * time.Microsecond)
				l.Enter(Packet{ID: i, Size: 1400, Entry: at})
			}
		})
	}
}
