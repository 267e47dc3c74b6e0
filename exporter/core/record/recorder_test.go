package record

import (
	"encoding/json"
	"sync"
	"testing"

	"oneway.example/exporter/core/sample"
)

func packet(seq uint64) *Packet {
	return &Packet{Path: "a", Probe: "stamp", Packet: sample.Packet{Seq: seq}}
}

func take(l *Listener[Packet]) (seqs []uint64, missed uint64) {
	into := make([]Packet, 100)
	n, missed := l.Take(into)
	for _, p := range into[:n] {
		seqs = append(seqs, p.Seq)
	}
	return seqs, missed
}

func TestEachListenerGetsEverySampleInOrder(t *testing.T) {
	var r Recorder
	r.Packets().Record(packet(1)) // no listener
	a := r.Packets().Listen(4)
	r.Packets().Record(packet(2))
	b := r.Packets().Listen(4)
	r.Packets().Record(packet(3))
	for name, c := range map[string]struct {
		l    *Listener[Packet]
		want []uint64
	}{"first": {a, []uint64{2, 3}}, "second": {b, []uint64{3}}} {
		got, missed := take(c.l)
		if len(got) != len(c.want) || got[0] != c.want[0] || missed != 0 {
			t.Errorf("%s listener got %v, missed %d; want %v", name, got, missed, c.want)
		}
	}
}

func TestFullQueueDropsAndCountsMissedSamples(t *testing.T) {
	var r Recorder
	slow, other := r.Packets().Listen(4), r.Packets().Listen(16)
	for seq := range uint64(10) {
		r.Packets().Record(packet(seq))
	}
	got, missed := take(slow)
	if len(got) != 4 || got[3] != 3 || missed != 6 {
		t.Errorf("got %v and missed %d, want 0 to 3 and 6", got, missed)
	}
	if got, missed := take(other); len(got) != 10 || missed != 0 {
		t.Errorf("the other listener got %v and missed %d", got, missed)
	}
	r.Packets().Record(packet(10))
	if got, missed := take(slow); len(got) != 1 || got[0] != 10 || missed != 0 {
		t.Errorf("then got %v and missed %d", got, missed)
	}
}

func TestNothingIsRecordedAfterTheLastListenerHasClosed(t *testing.T) {
	var r Recorder
	a, b := r.Packets().Listen(1), r.Packets().Listen(1)
	a.Close()
	a.Close()
	if !r.Packets().HasListeners() {
		t.Error("a listener is still registered")
	}
	b.Close()
	if r.Packets().HasListeners() {
		t.Error("nobody listens")
	}
}

func TestWeightOfQueuedSamplesIsLimited(t *testing.T) {
	var r Recorder
	l := r.Tables().ListenWeighed(8, 10, func(v *Table) int { return len(v.Rows) })
	defer l.Close()
	into := make([]Table, 8)
	for round := range 3 {
		for _, rows := range []int{6, 5, 4, 1} { // the second and the last do not fit
			r.Tables().Record(&Table{Rows: make([][]int64, rows)})
		}
		if n, missed := l.Take(into); n != 2 || missed != 2 || len(into[0].Rows) != 6 || len(into[1].Rows) != 4 {
			t.Errorf("round %d: %d taken, %d missed", round, n, missed)
		}
		r.Tables().Record(&Table{Rows: make([][]int64, 100)})
		r.Tables().Record(&Table{Rows: make([][]int64, 1)})
		if n, missed := l.Take(into); n != 1 || missed != 1 || len(into[0].Rows) != 100 {
			t.Errorf("round %d: of a table above the limit and one more, %d taken, %d missed", round, n, missed)
		}
	}
}

func TestNilRecorderHasNoListeners(t *testing.T) {
	var r *Recorder
	if r.Packets().HasListeners() || r.Rows().HasListeners() || r.Tables().HasListeners() {
		t.Error("it has listeners")
	}
	r.Packets().Record(packet(0))
}

func TestSamplesAreConservedAmongWritersAndReaders(t *testing.T) {
	const writers, each = 4, 5000
	var r Recorder
	l := r.Packets().Listen(64)
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for seq := range uint64(each) {
				r.Packets().Record(packet(seq))
			}
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	var got, lost uint64
	into := make([]Packet, 16)
	for ended := false; ; {
		n, missed := l.Take(into)
		got, lost = got+uint64(n), lost+missed
		if ended && n == 0 {
			break
		}
		select {
		case <-done:
			ended = true
		default:
		}
	}
	if got+lost != writers*each {
		t.Errorf("%d taken and %d missed of %d", got, lost, writers*each)
	}
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	var r Recorder
	record := func() {
		if packets := r.Packets(); packets.HasListeners() {
			packets.Record(&Packet{Path: "a", Probe: "stamp"})
		}
	}
	if n := testing.AllocsPerRun(100, record); n != 0 {
		t.Errorf("%v allocations without listeners", n)
	}
	l := r.Packets().Listen(8)
	defer l.Close()
	if n := testing.AllocsPerRun(100, record); n != 0 {
		t.Errorf("%v allocations with one listener", n)
	}
}

func TestRowIsAnArrayInTheOrderOfItsColumns(t *testing.T) {
	got, err := json.Marshal(Row{Seq: 1, Segment: 2, Copies: 3, IPBytes: 4, Sent: 5, Arrived: NoTime, Damage: 7})
	if err != nil || string(got) != "[1,2,4,5,null,3,7]" {
		t.Errorf("%s, %v", got, err)
	}
	if len(RowColumns()) != 7 {
		t.Errorf("columns %v", RowColumns())
	}
}

func BenchmarkNobodyListens(b *testing.B) {
	var r Recorder
	b.ReportAllocs()
	for b.Loop() {
		if packets := r.Packets(); packets.HasListeners() {
			packets.Record(&Packet{Path: "a", Probe: "stamp"})
		}
	}
}

func BenchmarkOneListens(b *testing.B) {
	var r Recorder
	l := r.Packets().Listen(4096)
	defer l.Close()
	into := make([]Packet, 4096)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if packets := r.Packets(); packets.HasListeners() {
			packets.Record(&Packet{Path: "a", Probe: "stamp"})
		}
		if i%2048 == 0 {
			l.Take(into)
		}
	}
}
