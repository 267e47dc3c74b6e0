package tcp

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/tcpdelay"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/probe/endclock"
)

// Delay is the one-way delay of sampled bytes of the streams of a direction, by timestamps of the kernels of both ends. All
// flows with stamps, which are the first four, are taken together.
type Delay struct {
	// Samples are the sampled bytes by what is known of their delay: delay, retransmitted, reordered, no_stamp, clocks.
	Samples map[string]int `json:"samples"`
	// Quantiles are those of the delays of bytes that were sent once, by rank, each within its QuantileBounds, whatever the
	// delays of the withheld ones. A rank for which there are too few, or whose interval has no end, is absent.
	Quantiles      map[string]float64 `json:"delay_quantiles_seconds,omitempty"`
	QuantileBounds map[string]float64 `json:"delay_quantile_error_bounds_seconds,omitempty"`
	// Withheld is the share of the bytes that were sent once whose delay is only known as an interval, absent without bytes
	// that were sent once. NoQuantiles is why it leaves no quantiles; empty: it does.
	Withheld    *float64 `json:"withheld_ratio,omitempty"`
	NoQuantiles string   `json:"no_quantiles_reason,omitempty"`
	// Bound is the largest error bound of the delays, absent without delays.
	Bound *float64 `json:"delay_error_bound_seconds,omitempty"`
	// Socket has the quantiles of the time from the write of a byte until it entered the packet scheduler, HostQueue those
	// of the time in the packet scheduler: neither is a part of the delay.
	Socket    map[string]float64 `json:"socket_wait_quantiles_seconds,omitempty"`
	HostQueue map[string]float64 `json:"host_queue_quantiles_seconds,omitempty"`
	// Recovery has the quantiles of the time from the first transmission of a retransmitted byte to its arrival, Resend
	// those of the time from the first to its last transmission.
	Recovery map[string]float64 `json:"recovery_quantiles_seconds,omitempty"`
	Resend   map[string]float64 `json:"resend_quantiles_seconds,omitempty"`
	// Begin is when the first sampled byte was sent, by the clock of the sender, in nanoseconds since 1970: the reference of
	// sent_ns.
	Begin int64 `json:"begin_ns"`
	// Rows are the sampled bytes with a delay, at most 4,000, with these Columns; of more, each one of Every is there.
	Every   int       `json:"every"`
	Columns []string  `json:"columns"`
	Rows    []byteRow `json:"rows"`

	values []time.Duration
	all    [][]int64 // of record.TCPBytes
}

// byteRow is a sampled byte, with the columns of record.TCPBytes.
type byteRow [6]int64

// maxDelayRows is the most rows of a direction in a report.
const maxDelayRows = 4000

func delayRanks() []string   { return []string{"0.05", "0.5", "0.95", "0.99"} }
func queueRanks() []string   { return []string{"0.5", "0.95", "0.99"} }
func recoverRanks() []string { return []string{"0.5", "0.95"} }

// ofRank is the quantile of a rank.
func ofRank(rank string) float64 {
	return map[string]float64{"0.05": 0.05, "0.5": 0.5, "0.95": 0.95, "0.99": 0.99}[rank]
}

// quantiles returns those of sorted values by rank; nil: there are too few for each.
func quantiles(ascending []time.Duration, ranks []string) map[string]float64 {
	var all map[string]float64
	for _, rank := range ranks {
		if v, ok := tcpdelay.Quantile(ascending, ofRank(rank)); ok {
			if all == nil {
				all = map[string]float64{}
			}
			all[rank] = v.Seconds()
		}
	}
	return all
}

// stamps evaluates the timestamps of a transfer; udp is the round trip of UDP packets, 0: unknown; clocks is whether the run has proven a
// clock wrong.
func (d *Direction) stamps(t *tcptraffic.Result, udp time.Duration, clocks *endclock.Proof) {
	if !t.Plan.Stamps {
		return
	}
	r, flows, both := joined(t, clocks)
	if len(r.Samples) > 0 {
		d.Delay = newDelay(r)
	}
	if one := tcpdelay.Acks(flows...); len(one.Times) > 0 {
		d.Acks = newAcks(one)
	}
	d.Split = newSplit(t, r, both, udp)
}

// joined evaluates the flows of a transfer, with the error bound of both clocks.
func joined(t *tcptraffic.Result, clocks *endclock.Proof) (*tcpdelay.Result, []tcpdelay.Flow, sample.Bound) {
	kernel := sample.Stamp{At: 1, Origin: sample.Kernel}
	errs := tcpdelay.Errors{Clocks: clocks.Judge(t.Bound()), Stamps: t.Ends.StampError(t.Plan.Direction, kernel, kernel)}
	flows := make([]tcpdelay.Flow, len(t.Sender))
	for i := range t.Sender {
		flows[i] = tcpdelay.Flow{Sent: t.Sender[i].Sent, Received: t.Receiver[i].Received, Acks: t.Sender[i].Acks}
	}
	return tcpdelay.Evaluate(flows, errs), flows, errs.Clocks
}

// checkClocks finds out whether a byte of one of the transfers arrived before it was sent: then no delay of any of them is valid.
func checkClocks(all []*tcptraffic.Result, clocks *endclock.Proof) {
	for _, t := range all {
		if t != nil && t.Plan.Stamps {
			if r, _, _ := joined(t, clocks); r.Disproved {
				clocks.Find()
			}
		}
	}
}

// noteClocks notes that no delay of TCP data is valid, as a clock is wrong.
func noteClocks(r *loadtest.Run, all []*tcptraffic.Result, clocks *endclock.Proof) {
	for _, t := range all {
		if t != nil && t.Plan.Stamps && clocks.Found() {
			r.Note("the delay of TCP data is unknown: " + sample.InWords(sample.ClocksApart.String()))
			return
		}
	}
}

func newDelay(r *tcpdelay.Result) *Delay {
	d := &Delay{
		Samples: map[string]int{}, Socket: quantiles(r.Socket, queueRanks()), HostQueue: quantiles(r.HostQueue, queueRanks()),
		Recovery: quantiles(r.Recovery, recoverRanks()), Resend: quantiles(r.Resend, recoverRanks()), Columns: record.TCPBytes.Names(), values: r.Delays,
	}
	d.setQuantiles(r)
	for c, n := range r.Counts {
		d.Samples[tcpdelay.Class(c).String()] = n
	}
	if len(r.Delays) > 0 {
		d.Bound = new(r.Bound.Seconds())
	}
	rows := make([]byteRow, 0, len(r.Samples))
	for _, s := range r.Samples {
		if s.Class != tcpdelay.Delay && s.Class != tcpdelay.Retransmitted {
			continue
		}
		again := int64(0)
		if s.Class == tcpdelay.Retransmitted {
			again = 1
		}
		rows = append(rows, byteRow{
			record.ByteFlow: int64(s.Flow), record.ByteOffset: s.Offset, record.ByteSent: int64(s.Sent), record.ByteDelay: int64(s.Value),
			record.ByteBound: int64(s.Bound), record.ByteAgain: again,
		})
	}
	slices.SortStableFunc(rows, func(a, b byteRow) int { return cmp.Compare(a[record.ByteSent], b[record.ByteSent]) })
	d.Every = max(1, (len(rows)+maxDelayRows-1)/maxDelayRows)
	if len(rows) > 0 {
		d.Begin = rows[0][record.ByteSent]
	}
	d.Rows = make([]byteRow, 0, len(rows)/d.Every+1)
	for i := range rows {
		rows[i][record.ByteSent] -= d.Begin
		if i%d.Every == 0 {
			d.Rows = append(d.Rows, rows[i])
		}
		d.all = append(d.all, rows[i][:])
	}
	return d
}

// setQuantiles sets the quantiles of the delay with their bounds, or why there are none.
func (d *Delay) setQuantiles(r *tcpdelay.Result) {
	if len(r.Low) == 0 {
		return
	}
	withheld := r.WithheldRatio()
	if d.Withheld = &withheld; withheld > tcpdelay.MaxWithheld {
		d.NoQuantiles = fmt.Sprintf("the delay of %s of the bytes that were sent once is not known, more than %s", unit.Ratio.Format(withheld), unit.Ratio.Format(tcpdelay.MaxWithheld))
		return
	}
	d.Quantiles, d.QuantileBounds = map[string]float64{}, map[string]float64{}
	for _, rank := range delayRanks() {
		if value, bound, ok := r.Quantile(ofRank(rank)); ok {
			d.Quantiles[rank], d.QuantileBounds[rank] = value.Seconds(), bound.Seconds()
		}
	}
}

// Acks is the times between acknowledgments that advanced, in bursts of consecutive sampled segments.
type Acks struct {
	// Count is the number of the times.
	Count int `json:"intervals"`
	// Bounds are the upper bounds of the buckets.
	Bounds []float64 `json:"bucket_bounds_seconds"`
	// Buckets are the numbers of times in each bucket, not cumulative; the last one has those above the last bound.
	Buckets []int `json:"bucket_intervals"`
	// Median is the median of the times.
	Median float64 `json:"median_seconds"`
	// Tested is the number of pairs of acknowledgments of which it is known when the last byte of each arrived at the
	// receiver, and Compressed the share of them that came in less than 0.75 of the time between those arrivals; absent:
	// fewer than 20 pairs.
	Tested     int      `json:"tested_pairs"`
	Compressed *float64 `json:"compressed_ratio,omitempty"`
	// Bound is the error that nine of ten times do not exceed, and Uncertain the share of times with an error larger than a
	// tenth of them: an acknowledgment waits in the backlog of the sender's socket while a system call holds that.
	Bound     float64 `json:"backlog_error_bound_seconds"`
	Uncertain float64 `json:"uncertain_ratio"`

	values []time.Duration
}

// leastTested is the least number of tested pairs of acknowledgments for a share.
const leastTested = 20

func newAcks(r *tcpdelay.Interarrival) *Acks {
	bounds, n := metric.TCPAckInterarrival.Buckets, float64(len(r.Times))
	a := &Acks{
		Count: len(r.Times), Bounds: bounds, Buckets: make([]int, len(bounds)+1), Median: r.Times[len(r.Times)/2].Seconds(),
		Bound: r.Bound.Seconds(), Uncertain: float64(r.Uncertain) / n, values: r.Times,
	}
	if a.Tested = r.Tested; r.Tested >= leastTested {
		a.Compressed = new(float64(r.Compressed) / float64(r.Tested))
	}
	for _, t := range r.Times {
		i, _ := slices.BinarySearch(bounds, t.Seconds())
		a.Buckets[i]++
	}
	return a
}

// Counters returns the counters and histograms of timestamps.
func (k *Kind) Counters(netip.Addr) []loadtest.Counter {
	all := []loadtest.Counter{{Desc: metric.TCPRunThroughput}}
	if !k.opts.Stamps {
		return all
	}
	return append(all, []loadtest.Counter{{Desc: metric.TCPDelaySamples}, {Desc: metric.TCPDelay}, {Desc: metric.TCPAckInterarrival}}...)
}

// publish sets the values of the timestamps of a direction.
func (d *Direction) publishStamps(v *loadtest.Values) {
	if one := d.Delay; one != nil {
		for _, c := range []struct {
			desc   *metric.Desc
			values map[string]float64
		}{{metric.TCPDelayQuantile, one.Quantiles}, {metric.TCPDelayQuantileBound, one.QuantileBounds}, {metric.TCPHostQueue, one.HostQueue}, {metric.TCPRecovery, one.Recovery}} {
			for rank, x := range c.values {
				v.Set(c.desc, x, d.Direction, rank)
			}
		}
		v.SetKnown(metric.TCPDelayErrorBound, one.Bound, d.Direction)
		v.SetKnown(metric.TCPDelayWithheld, one.Withheld, d.Direction)
		for class, n := range one.Samples {
			v.Add(metric.TCPDelaySamples, float64(n), d.Direction, class)
		}
		if one.NoQuantiles == "" {
			v.ObserveAll(metric.TCPDelay, inSeconds(one.values), d.Direction)
		}
	}
	if a := d.Acks; a != nil {
		v.SetKnown(metric.TCPAckCompressed, a.Compressed, d.Direction)
		v.ObserveAll(metric.TCPAckInterarrival, inSeconds(a.values), d.Direction)
	}
	if s := d.Split; s != nil {
		s.publish(v, d.Direction)
	}
}

func inSeconds(all []time.Duration) []float64 {
	list := make([]float64, len(all))
	for i, t := range all {
		list[i] = t.Seconds()
	}
	return list
}
