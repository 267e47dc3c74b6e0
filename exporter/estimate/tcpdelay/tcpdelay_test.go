package tcpdelay

import (
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/tcpstamp"

	"github.com/google/go-cmp/cmp"
)

const (
	ms = time.Millisecond
	t0 = instant.Time(1_700_000_000_000_000_000)
)

func at(d time.Duration) instant.Time { return t0.Add(d) }

func TestEvaluateClassifiesEachByte(t *testing.T) {
	const g = tcpstamp.Grid
	once := func(k int64, sent, acked time.Duration) tcpstamp.Sent {
		return tcpstamp.Sent{Offset: k * g, Written: at(sent - 2*ms), Scheduled: at(sent - ms), First: at(sent), Last: at(sent), Acked: at(acked), Transmissions: 1}
	}
	again := once(2, 20*ms, 300*ms)
	again.Last, again.Transmissions = at(220*ms), 2
	unstamped := once(5, 50*ms, 90*ms)
	unstamped.First = 0
	f := Flow{
		Sent: []tcpstamp.Sent{once(1, 10*ms, 60*ms), again, once(3, 30*ms, 80*ms), once(4, 40*ms, 85*ms), unstamped, once(6, 60*ms, 99*ms), once(8, 80*ms, 0)},
		Received: []tcpstamp.Received{
			{Offset: 1 * g, At: at(40 * ms)},
			{Offset: 2 * g, At: at(260 * ms)},
			{Offset: 3 * g, At: at(62 * ms), Early: 2 * ms},
			{Offset: 4 * g, At: at(262 * ms), Reordered: true},
			{Offset: 5 * g, At: at(263 * ms)},
			{Offset: 7 * g, At: at(90 * ms)},
		},
	}
	r := Evaluate([]Flow{f}, Errors{Clocks: sample.Bound{Error: ms, Reason: sample.OK}, Stamps: 100 * time.Microsecond})
	if r.Disproved {
		t.Error("no byte arrived before it was sent")
	}
	want := []Sample{
		{0, g, at(10 * ms), 30 * ms, 1100 * time.Microsecond, Delay},
		{0, 2 * g, at(20 * ms), 240 * ms, 1100 * time.Microsecond, Retransmitted},
		{0, 3 * g, at(30 * ms), 31 * ms, 2100 * time.Microsecond, Delay}, // from 30 to 32 ms
		{0, 4 * g, at(40 * ms), 0, 0, Reordered},
		{0, 5 * g, 0, 0, 0, NoStamp},
		{0, 6 * g, at(60 * ms), 0, 0, NoStamp},
		{0, 8 * g, at(80 * ms), 0, 0, NoStamp}, // on its way at the end
	}
	if diff := cmp.Diff(want, r.Samples); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if r.Counts != [Classes]int{2, 1, 1, 3, 0} || r.Bound != 2100*time.Microsecond {
		t.Errorf("counts %v, bound %v", r.Counts, r.Bound)
	}
	if diff := cmp.Diff([]time.Duration{200 * ms}, r.Resend); diff != "" || len(r.Recovery) != 1 || r.HostQueue[0] != ms || r.Socket[0] != ms || r.Acked[0] != 45*ms {
		t.Errorf("resend %v, recovery %v, queue %v, socket %v, acked %v", r.Resend, r.Recovery, r.HostQueue, r.Socket, r.Acked)
	}
	r = Evaluate([]Flow{f}, Errors{Clocks: sample.Bound{Reason: sample.LocalUnsynchronized}})
	if r.Counts != [Classes]int{Clocks: 4, NoStamp: 3} || r.Tested != 0 || len(r.HostQueue) == 0 {
		t.Errorf("without synchronized clocks: counts %v, tested %d", r.Counts, r.Tested)
	}
}

// The receiver kept multiples of 4 only: the others are not missing.
func TestBytesThatAnEndDidNotKeepAreNoMissingStamps(t *testing.T) {
	f := Flow{}
	for k := int64(1); k <= 16; k++ {
		f.Sent = append(f.Sent, tcpstamp.Sent{Offset: k * tcpstamp.Grid, First: at(time.Duration(k) * ms), Transmissions: 1})
		if k%4 == 0 {
			f.Received = append(f.Received, tcpstamp.Received{Offset: k * tcpstamp.Grid, At: at(time.Duration(k+9) * ms)})
		}
	}
	r := Evaluate([]Flow{f, {Sent: f.Sent}}, Errors{Clocks: sample.Bound{Reason: sample.OK}})
	if r.Counts != [Classes]int{Delay: 4} || r.Delays[0] != 9*ms {
		t.Errorf("counts %v, delays %v", r.Counts, r.Delays)
	}
	// A flow without records does not shift the others' index.
	if s := Evaluate([]Flow{{Sent: f.Sent}, f}, Errors{}).Samples; len(s) != 4 || s[0].Flow != 1 {
		t.Errorf("samples %+v, want those of flow 1", s)
	}
}

// A reader that never finds its socket empty knows little about arrivals, but they are not before the transmission.
func TestEarlyArrivalIsNotBeforeTheTransmission(t *testing.T) {
	f := Flow{
		Sent:     []tcpstamp.Sent{{Offset: tcpstamp.Grid, First: at(0), Transmissions: 1}, {Offset: 2 * tcpstamp.Grid, First: at(0), Transmissions: 1}},
		Received: []tcpstamp.Received{{Offset: tcpstamp.Grid, At: at(4 * ms), Early: 50 * ms}, {Offset: 2 * tcpstamp.Grid, At: at(-5 * ms), Early: 9 * ms}},
	}
	r := Evaluate([]Flow{f}, Errors{Clocks: sample.Bound{Error: ms, Reason: sample.OK}, Stamps: ms})
	if s := r.Samples[0]; s.Value != 1*ms || s.Bound != 5*ms { // -2 to 4 ms, +- 2 ms
		t.Errorf("%+v", s)
	}
	// A negative delay beyond the errors is a fault of a clock, and stays.
	if s := r.Samples[1]; s.Value != -6*ms || s.Bound != 3*ms || !r.Disproved {
		t.Errorf("%+v, disproved %v", s, r.Disproved)
	}
}

func TestQuantileNeedsValuesBeyondIt(t *testing.T) {
	all := make([]time.Duration, 99)
	if _, ok := Quantile(all, 0.99); ok {
		t.Error("99 values have a quantile of 0.99")
	}
	if _, ok := Quantile(append(all, 1), 0.99); !ok {
		t.Error("100 values have none")
	}
	if _, ok := Quantile(nil, 0.5); ok {
		t.Error("no values have a median")
	}
}

func TestAcks(t *testing.T) {
	var even, groups, clumps Flow
	for i := range int64(60) {
		offset, steady, clumped := (i+1)*2*tcpstamp.Grid, time.Duration(i)*2*ms, time.Duration(i/4)*8*ms+time.Duration(i%4)*ms/10
		even.Acks = append(even.Acks, tcpstamp.Ack{Offset: offset, At: at(steady + 30*ms)})
		even.Received = append(even.Received, tcpstamp.Received{Offset: offset, At: at(steady + time.Hour)}) // another clock
		// Groups of four within 0.3 ms, as the uplink held them back (Halepovic 2008 figure 18).
		groups.Acks = append(groups.Acks, tcpstamp.Ack{Burst: 1, Offset: offset, At: at(clumped + 30*ms), Early: ms / 20})
		// Data that arrive in such groups have acknowledgments in groups, too.
		clumps.Received = append(clumps.Received, tcpstamp.Received{Offset: offset, At: at(clumped)})
	}
	groups.Received, clumps.Acks = even.Received, groups.Acks
	r := Acks(even, groups)
	if len(r.Times) != 118 || r.Uncertain != 45 || r.Bound != ms/20 || r.Compressed != 45 || r.Tested != 118 {
		t.Errorf("%d times, %d uncertain, bound %v, %d of %d compressed", len(r.Times), r.Uncertain, r.Bound, r.Compressed, r.Tested)
	}
	// Arrivals within a group are closer together than what the comparison can tell.
	if r := Acks(clumps); r.Compressed != 0 || r.Tested != 14 {
		t.Errorf("of data that arrived in groups %d of %d are compressed", r.Compressed, r.Tested)
	}
	for i := range clumps.Received {
		clumps.Received[i].Reordered = true
	}
	if r := Acks(clumps, Flow{Acks: even.Acks[:2]}); r.Tested != 0 || len(r.Times) != 59 {
		t.Errorf("of data whose arrivals are not known %d are tested, of %d times", r.Tested, len(r.Times))
	}
}

// TestCompressionIsTestedWhereItCanBeFound has 4 KiB of data at rates up to 1 Gb/s, and nine of ten acknowledgments
// 1 us after the previous one.
func TestCompressionIsTestedWhereItCanBeFound(t *testing.T) {
	for apart, want := range map[time.Duration]int{
		ms: 119, 400 * time.Microsecond: 119, 270 * time.Microsecond: 119, 264 * time.Microsecond: 0, 164 * time.Microsecond: 0, 33 * time.Microsecond: 0,
	} {
		var f, waited Flow
		for i := range int64(120) {
			o := (i + 1) * tcpstamp.Grid
			f.Received = append(f.Received, tcpstamp.Received{Offset: o, At: at(time.Duration(i) * apart)})
			f.Acks = append(f.Acks, tcpstamp.Ack{Offset: o, At: at(time.Duration(i/10+1)*10*apart + time.Duration(i%10)*time.Microsecond)})
		}
		r := Acks(f)
		if r.Tested != want || r.Compressed != want*108/119 {
			t.Errorf("%v apart: %d of %d are compressed, want %d of %d", apart, r.Compressed, r.Tested, want*108/119, want)
		}
		waited.Received = f.Received
		for _, a := range f.Acks {
			a.Early = ms
			waited.Acks = append(waited.Acks, a)
		}
		if r := Acks(waited); r.Tested != 0 {
			t.Errorf("%v apart: %d pairs whose acknowledgments waited longer are tested", apart, r.Tested)
		}
	}
}

// The data out of order were sent before the receiver noticed them.
func TestByteSentAfterTheDoubtHasADelay(t *testing.T) {
	const error, doubt = 10, 1000
	for sent, want := range map[instant.Time]Class{doubt - 5: Reordered, doubt + error: Reordered, doubt + error + 1: Delay} {
		for _, read := range []instant.Time{3000, doubt} {
			f := Flow{
				Sent:     []tcpstamp.Sent{{Offset: tcpstamp.Grid, First: sent, Last: sent, Transmissions: 1}},
				Received: []tcpstamp.Received{{Offset: tcpstamp.Grid, At: 2000, Read: read, Reordered: true, Doubt: doubt}},
			}
			if read == doubt { // its own read began the doubt
				want = Reordered
			}
			r := Evaluate([]Flow{f}, Errors{Clocks: sample.Bound{Error: 7, Reason: sample.OK}, Stamps: 3})
			if r.Counts[want] != 1 {
				t.Errorf("sent at %d, read at %d: %v, want %v", sent, read, r.Counts, want)
			}
		}
	}
}

func TestSpacingLeavesOutOneLargeGap(t *testing.T) {
	var all []pair
	for _, offset := range []int64{100, 200, 200 + 3<<30} {
		all = append(all, pair{sent: &tcpstamp.Sent{Offset: offset}})
	}
	if got := spacing(all); got != 100 {
		t.Errorf("spacing %d, want 100", got)
	}
}
