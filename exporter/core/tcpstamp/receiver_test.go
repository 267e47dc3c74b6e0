package tcpstamp

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/testseed"
)

// skb is a part of the kernel's queue: the bytes (from, to], with the stamp of the part joined last.
type skb struct {
	from, to int64
	stamp    instant.Time
}

// kernel is a receiving TCP, as of Linux 6.12 net/ipv4/tcp_input.c.
type kernel struct {
	rng          *rand.Rand
	now          instant.Time
	queue, ooo   []skb
	read, rcvNxt int64
	outOfOrder   int64
	joins        float64
	window       int64
	arrived      map[int64]instant.Time // of sampled bytes, first arrival
	processed    map[int64]instant.Time // in order
}

// join is tcp_try_coalesce: it may fail for lack of space for fragments.
func (k *kernel) join(q []skb, s skb) ([]skb, bool) {
	if n := len(q); n > 0 && q[n-1].to == s.from && k.rng.Float64() < k.joins {
		q[n-1].to, q[n-1].stamp = s.to, s.stamp
		return q, true
	}
	return append(q, s), false
}

// segment is tcp_data_queue.
func (k *kernel) segment(s skb) {
	s.stamp = k.now
	if s.to <= k.rcvNxt || s.from-k.read > k.window {
		return
	}
	for x := (s.from/Grid + 1) * Grid; x <= s.to; x += Grid {
		if _, ok := k.arrived[x]; !ok {
			k.arrived[x] = k.now
		}
	}
	if s.from > k.rcvNxt {
		k.outOfOrder++
		k.toOOO(s)
		return
	}
	s.from = k.rcvNxt
	k.queue, _ = k.join(k.queue, s)
	k.advance(s.to)
	for len(k.ooo) > 0 && k.ooo[0].from <= k.rcvNxt { // tcp_ofo_queue
		o := k.ooo[0]
		k.ooo = k.ooo[1:]
		if o.to > k.rcvNxt {
			o.from = k.rcvNxt
			k.queue, _ = k.join(k.queue, o)
			k.advance(o.to)
		}
	}
}

func (k *kernel) advance(to int64) {
	for x := (k.rcvNxt/Grid + 1) * Grid; x <= to; x += Grid {
		k.processed[x] = k.now
	}
	k.rcvNxt = to
}

// toOOO is tcp_data_queue_ofo: a copy is dropped, a segment may be joined with the one before it.
func (k *kernel) toOOO(s skb) {
	for i := range k.ooo {
		o := &k.ooo[i]
		if s.from >= o.from && s.to <= o.to {
			return
		}
		if o.to == s.from && k.rng.Float64() < k.joins {
			o.to, o.stamp = s.to, s.stamp
			return
		}
	}
	k.ooo = append(k.ooo, s)
	slices.SortFunc(k.ooo, func(a, b skb) int { return int(a.from - b.from) })
}

// take is tcp_recvmsg.
func (k *kernel) take(most int64) (n int64, stamp instant.Time) {
	for most > 0 && len(k.queue) > 0 {
		s := &k.queue[0]
		m := min(most, s.to-s.from)
		s.from += m
		n, most, stamp = n+m, most-m, s.stamp
		if s.from == s.to {
			k.queue = k.queue[1:]
		}
	}
	k.read += n
	return n, stamp
}

// flight is a segment on its way.
type flight struct {
	skb
	at   instant.Time
	sent instant.Time
}

// random is a stream of segments of random sizes, some lost and sent again, some delayed, some duplicated.
func random(rng *rand.Rand, n int, full bool) (flights []flight, first map[int64]instant.Time, again map[int64]bool) {
	first, again = map[int64]instant.Time{}, map[int64]bool{}
	loss, late, twice := 0.0, 0.0, 0.0
	if rng.IntN(3) > 0 {
		loss, late, twice = rng.Float64()*0.005, rng.Float64()*0.01, rng.Float64()*0.01
	}
	now, offset, arrival := instant.Time(1e9), int64(0), instant.Time(0)
	for range n {
		now += instant.Time(rng.IntN(300_000))
		size := int64(1448)
		if !full && rng.IntN(4) == 0 {
			size = 1 + rng.Int64N(1448)
		}
		if rng.IntN(20) == 0 { // of GRO
			size *= 1 + rng.Int64N(30)
		}
		if cut := (offset/Grid + 1) * Grid; !full && rng.IntN(2) == 0 && offset+size > cut {
			size = cut - offset // the end of a write
		}
		s := skb{from: offset, to: offset + size}
		for x := (s.from/Grid + 1) * Grid; x <= s.to; x += Grid {
			first[x] = now
		}
		offset += size
		at := max(arrival, now+10_000_000+instant.Time(rng.IntN(2_000_000)))
		switch r := rng.Float64(); {
		case r < loss:
			at += instant.Time(rng.IntN(60_000_000))
			for x := (s.from/Grid + 1) * Grid; x <= s.to; x += Grid {
				again[x] = true
			}
		case r < loss+late:
			at += instant.Time(rng.IntN(5_000_000))
		default:
			arrival = at
		}
		flights = append(flights, flight{s, at, now})
		if rng.Float64() < twice {
			flights = append(flights, flight{s, at + instant.Time(rng.IntN(5_000_000)), now})
		}
	}
	slices.SortStableFunc(flights, func(a, b flight) int { return int(a.at - b.at) })
	return flights, first, again
}

// A byte arrived within [At-Early, At] unless it is marked, also one that is marked and was first sent after the doubt; and
// the receiver had not processed it before NotBefore.
func TestByteArrivedWithinTheBoundsOfItsRecord(t *testing.T) {
	seed := testseed.Of(t)
	total, marked, cleared, exact := 0, 0, 0, 0
	for round := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, round))
		flights, first, again := random(rng, 2500, round%2 == 1)
		k := &kernel{
			rng: rng, joins: rng.Float64(), window: 1 << (18 + rng.IntN(5)),
			arrived: map[int64]instant.Time{}, processed: map[int64]instant.Time{},
		}
		r, lazy, most := NewReceiver(), rng.Float64(), int64(1)<<(8+rng.IntN(11))
		for len(flights) > 0 || len(k.queue) > 0 {
			if len(flights) > 0 && (rng.Float64() < lazy || len(k.queue) == 0) {
				if len(k.queue) == 0 && rng.IntN(2) == 0 {
					r.Empty(k.read, k.now)
				}
				k.now = max(k.now+1, flights[0].at)
				f := flights[0]
				flights = flights[1:]
				if f.from-k.read > k.window {
					continue // a hole in the simulation's stream that nobody sends again ends it
				}
				k.segment(f.skb)
				continue
			}
			if len(k.queue) == 0 {
				break
			}
			begin, from := k.now, k.read
			size := 1 + rng.Int64N(most)
			n, stamp := k.take(size)
			k.now += instant.Time(rng.IntN(20_000))
			if len(flights) > 0 && rng.IntN(4) == 0 { // while the call lasts
				k.now = max(k.now+1, flights[0].at)
				k.segment(flights[0].skb)
				flights = flights[1:]
			}
			left := k.rcvNxt - k.read
			if len(flights) > 0 && rng.IntN(4) == 0 { // between both calls
				k.now = max(k.now+1, flights[0].at)
				k.segment(flights[0].skb)
				flights = flights[1:]
			}
			k.now++
			r.Add(Read{From: from, To: from + n, Stamp: stamp, Left: left, Begin: begin, End: k.now, OutOfOrder: k.outOfOrder, Window: k.window})
			k.now++
		}
		for _, x := range r.Records() {
			total++
			if p := k.processed[x.Offset]; x.NotBefore > p {
				t.Fatalf("round %d: byte %d was processed at %d, before %d", round, x.Offset, p, x.NotBefore)
			}
			if x.Reordered {
				marked++
				if x.Doubt >= first[x.Offset] || again[x.Offset] {
					continue
				}
				cleared++
			}
			if x.Early == 0 {
				exact++
			}
			if a := k.arrived[x.Offset]; a > x.At || a < x.At.Add(-x.Early) {
				t.Fatalf("round %d: byte %d arrived at %d, want %d to %d (%+v)", round, x.Offset, a, x.At.Add(-x.Early), x.At, x)
			}
		}
	}
	t.Logf("%d samples, %d marked as reordered, %d of them cleared by the sender; %d exact", total, marked, cleared, exact)
	if total < 10_000 || marked == 0 || cleared == 0 || exact == 0 {
		t.Errorf("%d samples, %d marked, %d cleared, %d exact: the simulation has not the cases", total, marked, cleared, exact)
	}
}

// A proxy, or a sender that waits for its application, cuts segments anywhere: the stamp of a read is that of its last one.
func TestByteBeforeAShortSegmentMayHaveArrivedBeforeTheStamp(t *testing.T) {
	r := NewReceiver()
	r.Add(Read{From: 0, To: 1000, Stamp: 1000, Begin: 1100, End: 1200})
	r.Add(Read{From: 1000, To: Grid + 100, Stamp: 9000, Begin: 9100, End: 9200})
	r.Add(Read{From: Grid + 100, To: 2 * Grid, Stamp: 9900, Begin: 9950, End: 9960})
	x := r.Records()
	if len(x) != 2 || x[0].At != 9000 || x[0].Early != 8000 || x[1].Early != 0 {
		t.Errorf("%+v", x)
	}
}

func TestReceiverKeepsNestedSamplesWithinItsLimit(t *testing.T) {
	r := NewReceiver()
	at := instant.Time(1e9)
	for from := int64(0); from < 1<<30; from += 300_000 {
		at += 1000
		r.Add(Read{From: from, To: from + 300_000, Stamp: at, Begin: at, End: at})
	}
	x := r.Records()
	if err := CheckReceived(x, 1<<31); err != nil || len(x) < MaxReceived/4 {
		t.Fatalf("%d records: %v", len(x), err)
	}
	for i := range x {
		if x[i].Offset != int64(i+1)*r.grid {
			t.Fatalf("sample %d is byte %d, want multiples of %d", i, x[i].Offset, r.grid)
		}
	}
}

func TestKernelWithoutACountOfReorderedSegmentsLeavesDoubt(t *testing.T) {
	r := NewReceiver()
	r.Add(Read{From: 0, To: 10, Stamp: 5, Begin: 5, End: 6, OutOfOrder: -1})
	r.Add(Read{From: 10, To: 5000, Stamp: 10, Begin: 10, End: 11, OutOfOrder: -1})
	if x := r.Records(); len(x) != 1 || !x[0].Reordered || x[0].Doubt != 11 {
		t.Errorf("%+v", x)
	}
}

func TestReceiverDoesNotAllocate(t *testing.T) {
	r, at, from := NewReceiver(), instant.Time(1e9), int64(0)
	if n := testing.AllocsPerRun(20_000, func() {
		at += 1000
		r.Add(Read{From: from, To: from + 60_000, Stamp: at, Left: 3000, Begin: at, End: at})
		from += 60_000
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkReceiver(b *testing.B) {
	r, at, from := NewReceiver(), instant.Time(1e9), int64(0)
	for b.Loop() {
		at += instant.Time(time.Microsecond)
		r.Add(Read{From: from, To: from + 60_000, Stamp: at, Left: 3000, Begin: at, End: at})
		from += 60_000
	}
}

// A fast flow has few samples at each time, at multiples of one grid, and with later ones more.
func TestReceiverLimitsTheRateOfItsSamples(t *testing.T) {
	r := NewReceiver()
	const read, every = 128 << 10, 50 * time.Microsecond
	begin := instant.Time(1e18)
	for i := range int64(40_000) { // 2 s
		end := begin.Add(time.Duration(i) * every)
		r.Add(Read{From: i * read, To: (i + 1) * read, Stamp: end, Begin: end, End: end})
		if n, most := len(r.Records()), first+1+int(end.Sub(begin)/spacing); n > most {
			t.Fatalf("%d samples after %v, want at most %d", n, end.Sub(begin), most)
		}
	}
	x := r.Records()
	if len(x) < first {
		t.Errorf("%d samples, want at least %d", len(x), first)
	}
	for i := 1; i < len(x); i++ {
		if x[i].Offset-x[i-1].Offset != x[0].Offset {
			t.Fatalf("bytes %d and %d, want all multiples of %d", x[i-1].Offset, x[i].Offset, x[0].Offset)
		}
	}
}
