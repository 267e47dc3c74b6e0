package tcp

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/endclock"
	"oneway.example/exporter/probe/report"
)

// stamped is a transfer of 400 sampled bytes with a delay of 20 ms, of which the sender gets acknowledgments after `acked`; each
// tenth byte is retransmitted and arrives 100 ms later. Both ends read one clock.
func stamped(acked time.Duration) *tcptraffic.Result {
	r := steady(1, 1_000_000)
	r.Plan.Stamps, r.SharedClock = true, true
	ok := endclock.State{Bound: ms / 10}
	r.Local = endclock.Span{Before: ok, After: ok, Largest: ok.Bound}
	r.Remote = r.Local
	from, to := &r.Sender[0], &r.Receiver[0]
	begin := instant.FromTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for i := range 400 {
		at, late, times := begin.Add(time.Duration(i)*10*ms), 20*ms, int32(1)
		if i%10 == 9 {
			late, times = 120*ms, 2
		}
		offset := int64(i+1) * tcpstamp.Grid
		from.Sent = append(from.Sent, tcpstamp.Sent{
			Offset: offset, Written: at.Add(-2 * ms), Scheduled: at.Add(-ms), First: at, Last: at.Add(late - 20*ms), Acked: at.Add(late - 20*ms + acked), Transmissions: times,
		})
		to.Received = append(to.Received, tcpstamp.Received{Offset: offset, At: at.Add(late), NotBefore: at.Add(late - ms), Read: at.Add(late)})
		from.Acks = append(from.Acks, tcpstamp.Ack{Burst: int32(i / 100), Offset: offset, At: at.Add(40 * ms)})
	}
	return r
}

func evaluateStamps(r *tcptraffic.Result, clocks *endclock.Proof) *Direction {
	d := evaluated(r, time.Second)
	d.stamps(r, 0, clocks)
	judgeTogether([]*Direction{d})
	return d
}

func TestDelayOfTCPDataIsThatOfBytesSentOnce(t *testing.T) {
	d := evaluateStamps(stamped(40*ms), nil)
	if d.Delay == nil || d.Acks == nil || d.Split == nil {
		t.Fatalf("%+v", d)
	}
	if got := d.Delay.Quantiles["0.5"]; got != 0.02 {
		t.Errorf("median %g s, want 0.02", got)
	}
	if got := d.Delay.Samples; got["delay"] != 360 || got["retransmitted"] != 40 {
		t.Errorf("samples %v", got)
	}
	if got := d.Delay.Recovery["0.5"]; got != 0.12 {
		t.Errorf("recovery %g s, want 0.12", got)
	}
	if got := d.Delay.HostQueue["0.5"]; got != 0.001 {
		t.Errorf("host queue %g s, want 0.001", got)
	}
	if n := len(d.Delay.Rows); n != 400 || d.Delay.Rows[1][record.ByteSent] != int64(10*ms) || len(d.Delay.Columns) != len(d.Delay.Rows[1]) {
		t.Errorf("%d rows, second %v", n, d.Delay.Rows[1])
	}
	// The retransmitted bytes arrive 100 ms after their acknowledgments in time, which come closer together than that.
	if a := d.Acks; a.Count != 396 || a.Median != 0.01 || a.Tested != 360 || a.Compressed == nil || *a.Compressed != 40.0/360 {
		t.Errorf("acknowledgments: %d, median %g s, %d tested, compressed %v", a.Count, a.Median, a.Tested, a.Compressed)
	}
	if d.Split.State == "yes" || d.Split.Early != 0 || d.Split.Tested == 0 {
		t.Errorf("split %+v", d.Split)
	}
}

func TestBytesAcknowledgedBeforeTheyArriveAreSplitTCP(t *testing.T) {
	d := evaluateStamps(stamped(5*ms), nil)
	if d.Split.State != "yes" || d.Split.Lead == nil || *d.Split.Lead < 0.013 {
		t.Fatalf("split %+v", d.Split)
	}
	run := &loadtest.Run{}
	d.note(run)
	if all := strings.Join(run.Notes, "\n"); !strings.Contains(all, "a proxy acknowledges bytes up to 1") {
		t.Errorf("notes %q", all)
	}
	for _, one := range d.summary() {
		if one.Quantity == "split TCP" && one.Text() != "yes" {
			t.Errorf("%+v", one)
		}
	}
	lines := (&Result{Directions: []*Direction{d}}).EvidenceLines()
	if len(lines) < 3 || lines[0].Quantity != "split TCP" {
		t.Errorf("evidence %v", lines)
	}
}

func TestWithoutClocksNoByteHasADelay(t *testing.T) {
	r := stamped(5 * ms)
	r.SharedClock = false
	r.Remote.Before.Reason = sample.LocalUnsynchronized.String()
	d := evaluateStamps(r, nil)
	if d.Delay.Samples["delay"] != 0 || d.Delay.Bound != nil || len(d.Delay.Rows) != 0 || d.Split.State != "cannot tell" {
		t.Errorf("%+v %+v", d.Delay, d.Split)
	}
}

func TestStampsAreDrawn(t *testing.T) {
	names := map[string]bool{}
	for _, one := range (&Result{Directions: []*Direction{evaluateStamps(stamped(40*ms), nil)}}).Drawings() {
		names[one.Direction+": "+one.Title] = true
	}
	for _, want := range []string{"forward: one-way delay of TCP data", "forward: share of sampled bytes by one-way delay", "forward: time between acknowledgments"} {
		if !names[want] {
			t.Errorf("no drawing %q", want)
		}
	}
}

func TestWithTooManyWithheldBytesThereIsNoQuantile(t *testing.T) {
	for every, known := range map[int]bool{7: true, 2: false} {
		r := stamped(40 * ms)
		for i := range r.Receiver[0].Received {
			r.Receiver[0].Received[i].Reordered = i%every == 0
		}
		d := evaluateStamps(r, nil)
		text := ""
		for _, line := range d.stampLines(func(quantity string, numbers ...report.Number) probe.Result {
			return probe.Result{Quantity: quantity, Numbers: numbers}
		}) {
			if line.Quantity == "delay of TCP data" {
				text = line.Value
			}
		}
		if _, ok := d.Delay.Quantiles["0.5"]; ok != known || len(d.Delay.QuantileBounds) != len(d.Delay.Quantiles) || (d.Delay.NoQuantiles == "") != known || strings.HasPrefix(text, "unknown (") == known {
			t.Errorf("one of %d withheld: %v ± %v, %q, %q", every, d.Delay.Quantiles, d.Delay.QuantileBounds, d.Delay.NoQuantiles, text)
		}
		if d.Delay.Withheld == nil || *d.Delay.Withheld > 0.3 == known {
			t.Errorf("one of %d withheld: %v", every, d.Delay.Withheld)
		}
	}
}

// Withheld bytes widen the interval of a quantile to one side: its middle is no estimate, and is not told.
func TestWideQuantilesAreToldAsIntervals(t *testing.T) {
	d := &Direction{Delay: &Delay{
		Quantiles:      map[string]float64{"0.5": 0.1, "0.95": 0.601},
		QuantileBounds: map[string]float64{"0.5": 0.001, "0.95": 0.209},
	}}
	text := func() string {
		return d.stampLines(func(quantity string, numbers ...report.Number) probe.Result {
			return probe.Result{Quantity: quantity, Numbers: numbers}
		})[0].Text()
	}
	if got := text(); got != "100.0 ms ± 1.0 ms, 95 % 392 ms to 810 ms" {
		t.Errorf("%q", got)
	}
	d.Delay.QuantileBounds["0.5"], d.Delay.QuantileBounds["0.95"] = 0.02, 0.06
	if got := text(); got != "80 ms to 120 ms, 95 % 601 ms ± 60 ms" {
		t.Errorf("%q", got)
	}
}

func TestRowsOfTCPDataAreInTheOrderOfTheirTimes(t *testing.T) {
	r := stamped(40 * ms)
	from, to := &r.Sender[0], &r.Receiver[0]
	for i := range from.Sent {
		later := time.Duration(i/200) * 3 * time.Second
		s, at := &from.Sent[i], &to.Received[i]
		for _, time := range []*instant.Time{&s.Written, &s.Scheduled, &s.First, &s.Last, &s.Acked, &at.At, &at.NotBefore, &at.Read} {
			*time = time.Add(later)
		}
	}
	rows := evaluateStamps(r, nil).Delay.Rows
	if !slices.IsSortedFunc(rows, func(a, b byteRow) int { return cmp.Compare(a[record.ByteSent], b[record.ByteSent]) }) || len(rows) == 0 {
		t.Errorf("%d rows are not in order", len(rows))
	}
}

// A byte that arrives before it is sent proves that a clock is wrong: the delays of the other direction, which are too large, are as
// wrong, and so is the order of arrivals and acknowledgments.
func TestClocksDisprovedInOneDirectionGiveNoDelayOfTCPDataInTheOther(t *testing.T) {
	for wrong, known := range map[time.Duration]bool{0: true, time.Second: false} {
		clocks := &endclock.Proof{}
		var all []*tcptraffic.Result
		for d, by := range map[sample.Direction]time.Duration{sample.Forward: -wrong, sample.Reverse: wrong} {
			r := stamped(40 * ms)
			r.Plan.Direction, r.SharedClock = d, false
			ok := endclock.State{Bound: ms / 10, Reason: sample.OK.String()}
			r.Local = endclock.Span{Before: ok, After: ok, Largest: ok.Bound}
			r.Remote = r.Local
			for i := range r.Receiver[0].Received {
				one := &r.Receiver[0].Received[i]
				one.At, one.NotBefore, one.Read = one.At.Add(by), one.NotBefore.Add(by), one.Read.Add(by)
			}
			all = append(all, r)
		}
		checkClocks(all, clocks)
		run := &loadtest.Run{}
		noteClocks(run, all, clocks)
		if noted := len(run.Notes) == 1; noted == known {
			t.Errorf("%v: notes %q", wrong, run.Notes)
		}
		for _, r := range all {
			d := evaluateStamps(r, clocks)
			if got := len(d.Delay.Quantiles) > 0; got != known || !known && d.Split.State == "yes" {
				t.Errorf("%v, %v: quantiles %v, split %s", wrong, r.Plan.Direction, d.Delay.Quantiles, d.Split.State)
			}
		}
	}
}
