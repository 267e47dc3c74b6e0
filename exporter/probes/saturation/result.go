package saturation

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/queue"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// Result is the result of a run: loadtest.Run's Body, and the report's "result". Rates are in IP bytes a second; a
// pointer is nil for an unknown value.
type Result struct {
	Mode        string       `json:"mode"`
	PacketBytes int          `json:"packet_bytes"`
	Together    bool         `json:"together,omitempty"`
	Directions  []*Direction `json:"directions"`
}

// Withhold removes the one-way delays: a clock is wrong. Their differences, and with them the queue's delay, stay.
func (r *Result) Withhold() (any bool) {
	for _, d := range r.Directions {
		l := d.Load
		if l == nil || !l.Trusted {
			continue
		}
		any, l.Trusted, l.ClocksReason = true, false, sample.ClocksApart.String()
		l.Idle, l.IdleBound, l.Full, l.FullBound, l.delays = nil, nil, nil, nil, nil
		for _, bins := range [][]Bin{l.PerSecond, l.First} {
			for i := range bins {
				bins[i].Delays = nil
			}
		}
	}
	return any
}

// Direction is one direction's result.
type Direction struct {
	Direction string      `json:"direction"`
	Rate      option.Rate `json:"configured_bytes_per_second"`
	// Load is the result of mode fixed.
	Load   *Load              `json:"load,omitempty"`
	Counts *udptraffic.Counts `json:"counts,omitempty"`
	// Steps are those of modes sweep and search, StepsDescription their description: bursts from an idle link, or parts
	// of one transfer.
	Steps            []Step `json:"steps,omitempty"`
	StepsDescription string `json:"steps_description,omitempty"`
	// Lossless is the highest rate up to which a sweep had no losses.
	Lossless *float64 `json:"lossless_bytes_per_second,omitempty"`
	// Maximum is the highest rate of a second, or a step, of a search (RFC 9097 section 6). Sustained is the rate
	// that nine of ten of the seconds do not exceed that began while the link was full, so that a token bucket is
	// empty. With Unlimited the link was never full, and there is none.
	Maximum   *float64 `json:"maximum_bytes_per_second,omitempty"`
	Sustained *Step    `json:"sustained,omitempty"`
	Unlimited bool     `json:"link_never_full,omitempty"`
	// Unsteady: packets were lost or delayed at widely different rates.
	Unsteady bool `json:"rate_not_steady,omitempty"`
	// Dropped packets arrived and were dropped by the receiving host because its buffer was full.
	Dropped uint64 `json:"host_dropped_packets,omitempty"`
	// Partial is why the direction ended early, has no result, or had too few packets of its load; empty: none of these.
	Partial string `json:"partial,omitempty"`

	remarks []string      // for the notes
	idle    *sample.Delay // of a run that was stopped before the load
}

// Load is the result of a constant load. See queue.Result.
type Load struct {
	State    string `json:"state"`
	Evidence string `json:"evidence"`
	// Offered and Throughput are of the part of the load from From to To. Throughput is the median of its seconds,
	// or its mean if a second has few packets; Loss is of all packets of the load.
	Offered    float64        `json:"offered_bytes_per_second"`
	Throughput float64        `json:"throughput_bytes_per_second"`
	Loss       float64        `json:"loss_ratio"`
	Underrun   float64        `json:"sender_underrun_ratio"`
	From       report.Seconds `json:"from_seconds"`
	To         report.Seconds `json:"to_seconds"`
	// Withheld is the share of the planned packets that the load server did not send because it received nothing, or none of its cookies, from this end;
	// Underrun is without them.
	Withheld float64 `json:"withheld_ratio,omitempty"`
	// Rates are the quantiles 0.05, 0.5 and 0.95 of the rate of a second, from the first loss to the last; Varies:
	// the link's rate is not constant.
	Rates  *[3]float64 `json:"rate_quantiles_bytes_per_second,omitempty"`
	Varies bool        `json:"rate_varies"`
	// Idle and Full are one-way delays, known only with trusted clocks.
	Idle      *report.Seconds `json:"idle_delay_seconds,omitempty"`
	IdleBound *report.Seconds `json:"idle_delay_error_bound_seconds,omitempty"`
	Full      *report.Seconds `json:"full_delay_seconds,omitempty"`
	FullBound *report.Seconds `json:"full_delay_error_bound_seconds,omitempty"`
	// Queue is the delay of the full queue above the idle delay, the quantiles 0.05, 0.5 and 0.95. A constant clock
	// offset cancels: it does not need trusted clocks, and its bounds include their drift.
	Queue      *[3]report.Seconds `json:"queue_delay_quantiles_seconds,omitempty"`
	QueueBound *[3]report.Seconds `json:"queue_delay_error_bounds_seconds,omitempty"`
	Drift      float64            `json:"clock_drift_ratio"`
	SizeBytes  *float64           `json:"queue_size_bytes,omitempty"`
	SizeBound  *float64           `json:"queue_size_error_bound_bytes,omitempty"`
	// SizeRange is the interval of a size whose middle is no estimate; SizeBytes is nil then.
	SizeRange    *[2]float64 `json:"queue_size_range_bytes,omitempty"`
	AtLeastBytes *float64    `json:"queue_at_least_bytes,omitempty"`
	Trusted      bool        `json:"clocks_synchronized"`
	ClocksReason string      `json:"clocks_reason"`
	PerSecond    []Bin       `json:"per_second"`
	First        []Bin       `json:"first_seconds"`

	mean     float64   // rate of arrivals of the part that Offered is of
	delays   []float64 // valid ones, in seconds
	noResult bool      // queue.Result.Interrupted or Impossible
	unsent   string    // the reason of a run whose load was not sent; empty: it was, or it filled the link nevertheless
}

// Bin is a part of the load.
type Bin struct {
	Elapsed  report.Seconds `json:"elapsed_seconds"`
	Sent     float64        `json:"sent_bytes_per_second"`
	Received float64        `json:"received_bytes_per_second"`
	Packets  int            `json:"sent_packets"`
	Lost     int            `json:"lost_packets"`
	// Delays are the smallest, the median and the largest; nil without a valid delay.
	Delays *[3]report.Seconds `json:"delay_min_median_max_seconds,omitempty"`
}

// Step is one rate of a sweep or search, or a part of a search.
type Step struct {
	Offered  float64        `json:"offered_bytes_per_second"`
	Duration report.Seconds `json:"duration_seconds"`
	Sent     float64        `json:"sent_bytes_per_second"`
	// Received is the rate within a time as long as that of sending; later packets do not count.
	Received float64 `json:"received_bytes_per_second"`
	Loss     float64 `json:"loss_ratio"`
	Lossless bool    `json:"lossless,omitempty"`
	Underrun float64 `json:"sender_underrun_ratio"`
	// Variation is the largest delay of received packets less the smallest of all steps; nil: unknown, as it is if
	// more than half was lost, since lost packets have no delay.
	Variation *report.Seconds   `json:"delay_variation_seconds,omitempty"`
	Counts    udptraffic.Counts `json:"counts"`
}

// known is a pointer to v if it is known.
func known[T any](v T, ok bool) *T {
	if !ok {
		return nil
	}
	return &v
}

func duration(d queue.Duration, more time.Duration) (value, off *report.Seconds) {
	return known(report.Seconds(d.Value), d.OK), known(report.Seconds(bound.Sum(d.Bound, more)), d.OK)
}

// summary describes a direction in a few lines.
func (d *Direction) summary() (lines []probe.Result) {
	line := func(quantity string, numbers ...report.Number) {
		lines = append(lines, probe.Result{Quantity: quantity, Direction: d.Direction, Numbers: numbers})
	}
	rate := func(label string, v float64) report.Number {
		return report.Number{Label: label, Value: &v, Unit: unit.BytesPerSecond}
	}
	if d.idle != nil {
		line("idle delay", report.Number{Value: new(d.idle.Value.Seconds()), Bound: new(d.idle.Bound.Seconds()), Unit: unit.Seconds})
	}
	if l := d.Load; l != nil {
		numbers := []report.Number{rate("", l.Throughput), rate("offered", l.Offered)}
		if l.Varies && l.Rates != nil {
			numbers = append(numbers, report.Number{Label: "varies:", Range: &[2]float64{l.Rates[0], l.Rates[2]}, Unit: unit.BytesPerSecond, Text: "in nine of ten seconds"})
		}
		if !l.noResult && l.unsent == "" {
			line("throughput", numbers...)
		}
		line("loss under load", report.Number{Value: &l.Loss, Unit: unit.Ratio})
		lines = append(lines, l.queue(d.Direction))
	}
	switch {
	case d.Sustained != nil:
		line("highest rate", rate("", d.Sustained.Received))
	case d.Unsteady:
		most := rate("up to", *d.Maximum)
		most.Text = "in a second"
		line("highest rate", report.Number{Text: "unknown"}, most)
	case d.Unlimited:
		line("highest rate", rate("at least", *d.Maximum))
	case len(d.Steps) > 0:
		line("throughput", rate("at most", d.best().Received))
	}
	if d.Lossless != nil {
		line("lossless", rate("up to", *d.Lossless))
	}
	return lines
}

// queue is the line of the queue: its size and delay, its delay only, or its state.
func (l *Load) queue(direction string) probe.Result {
	line := probe.Result{Quantity: "queue", Direction: direction}
	switch {
	case l.SizeBytes != nil && l.Queue != nil:
		line.Numbers = []report.Number{
			{Value: l.SizeBytes, Bound: l.SizeBound, Unit: unit.Bytes}, {Value: new(l.Queue[1].Seconds()), Unit: unit.Seconds},
		}
	case l.SizeRange != nil && l.Queue != nil:
		line.Numbers = []report.Number{{Range: l.SizeRange, Unit: unit.Bytes}, {Value: new(l.Queue[1].Seconds()), Unit: unit.Seconds}}
	case l.Queue != nil:
		line.Numbers = []report.Number{{Value: new(l.Queue[1].Seconds()), Bound: new(l.QueueBound[1].Seconds()), Unit: unit.Seconds}}
	default:
		line.Value = words(l.State)
	}
	return line
}

// best is the step with the highest received rate.
func (d *Direction) best() (best Step) {
	for _, s := range d.Steps {
		if s.Received > best.Received {
			best = s
		}
	}
	return best
}

// stateWords replace the names of some states in the summary.
var stateWords = map[string]string{
	queue.NotFilled.String():   "not filled",
	queue.Policer.String():     "none: a policer",
	queue.AQM.String():         "managed (AQM)",
	queue.TimeLimited.String(): "limited by time",
	queue.Unknown.String():     "cannot tell",
}

func words(state string) string { return cmp.Or(stateWords[state], state) }

// underrunNoted is the least sender underrun with a note.
const underrunNoted = 0.01

// notes are the limitations of the result.
func (d *Direction) notes() (notes []string) {
	if d.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("%s: %s dropped by the receiving host, after arrival: it is too slow for this rate, or its buffer too small (net.core.rmem_max)",
			d.Direction, unit.Counted(d.Dropped, "packet was", "packets were")))
	}
	return append(notes, d.remarks...)
}

// remark adds a note.
func (d *Direction) remark(format string, args ...any) {
	d.remarks = append(d.remarks, d.Direction+": "+fmt.Sprintf(format, args...))
}

// remark adds the notes on the limitations of a load.
func (l *Load) remark(d *Direction) {
	if l.State != queue.Filled.String() && !l.noResult && l.unsent == "" { // the run's error tells why
		d.remark("%s: %s", words(l.State), l.Evidence)
	}
	// The session notes packets that the sender's kernel refused.
	if l.Underrun > underrunNoted && l.unsent == "" && !l.refused(d.Counts) {
		d.remark("the sender did not send %s of the planned packets: it cannot keep the rate", unit.Ratio.Format(l.Underrun))
	}
	if !l.Trusted {
		d.remark("one-way delays are unknown: %s", sample.InWords(l.ClocksReason))
	}
}

// refused reports whether the sender's kernel refused most of the packets that it did not send.
func (l *Load) refused(c *udptraffic.Counts) bool { return 2*c.Refused > c.Planned-c.Sent-c.Withheld }

// Counters returns the histogram of mode fixed.
func (k *Kind) Counters(netip.Addr) []loadtest.Counter {
	switch k.opts.Mode {
	case ModeFixed:
		return []loadtest.Counter{{Desc: metric.LoadedDelay}, {Desc: metric.UDPRunThroughput}}
	case ModeSearch:
		return []loadtest.Counter{{Desc: metric.UDPRunThroughput}}
	}
	return nil
}

// Publish sets the values of a run, without a direction that has no result.
func (k *Kind) Publish(v *loadtest.Values, r *loadtest.Run) {
	body, ok := r.Body.(*Result)
	if !ok {
		return
	}
	for _, d := range body.Directions {
		switch {
		case d.Load != nil && d.Load.noResult:
		case d.Load != nil && d.Load.unsent != "":
			v.Set(metric.UDPOffered, d.Load.Offered, d.Direction)
			v.Set(metric.UDPUnderrun, d.Load.Underrun, d.Direction)
		case d.Load != nil:
			d.Load.publish(v, d.Direction)
			d.Load.publishElapsed(v, d.Direction, &k.opts)
		case body.Mode == ModeSweep:
			for _, s := range d.Steps {
				offered := strconv.FormatFloat(s.Offered, 'f', 0, 64)
				v.Set(metric.SweepThroughput, s.Received, d.Direction, offered)
				v.Set(metric.SweepLoss, s.Loss, d.Direction, offered)
			}
			v.SetKnown(metric.SweepLossless, d.Lossless, d.Direction)
			best := d.best()
			best.publish(v, metric.SweepMaximum, d.Direction)
		case d.Sustained != nil:
			d.Sustained.publish(v, metric.SearchMaximum, d.Direction)
			v.Observe(metric.UDPRunThroughput, d.Sustained.Received, d.Direction)
		}
	}
}

// publish exports the step that represents the result.
func (s *Step) publish(v *loadtest.Values, maximum *metric.Desc, d string) {
	v.Set(maximum, s.Received, d)
	v.Set(metric.UDPOffered, s.Sent, d)
	v.Set(metric.UDPUnderrun, s.Underrun, d)
	v.Set(metric.LoadedLoss, s.Loss, d)
}

func (l *Load) publish(v *loadtest.Values, d string) {
	v.Set(metric.UDPThroughput, l.Throughput, d)
	v.Observe(metric.UDPRunThroughput, l.Throughput, d)
	v.Set(metric.UDPOffered, l.Offered, d)
	v.Set(metric.UDPUnderrun, l.Underrun, d)
	v.Set(metric.LoadedLoss, l.Loss, d)
	v.ObserveAll(metric.LoadedDelay, l.delays, d)
	for desc, value := range map[*metric.Desc]*report.Seconds{
		metric.QueueIdleDelay: l.Idle, metric.QueueIdleDelayBound: l.IdleBound,
		metric.QueueFullDelay: l.Full, metric.QueueFullDelayBound: l.FullBound,
	} {
		if value != nil {
			v.Set(desc, value.Seconds(), d)
		}
	}
	for desc, value := range map[*metric.Desc]*float64{
		metric.QueueAtLeast: l.AtLeastBytes, metric.QueueSize: l.SizeBytes, metric.QueueSizeBound: l.SizeBound,
	} {
		v.SetKnown(desc, value, d)
	}
	if l.SizeRange != nil {
		v.Set(metric.QueueAtMost, l.SizeRange[1], d)
	}
	for i, q := range [...]string{"0.05", "0.5", "0.95"} {
		if l.Queue != nil {
			v.Set(metric.QueueDelay, l.Queue[i].Seconds(), d, q)
			v.Set(metric.QueueDelayBound, l.QueueBound[i].Seconds(), d, q)
		}
		if l.Rates != nil {
			v.Set(metric.UDPRate, l.Rates[i], d, q)
		}
	}
	if l.State == queue.Unknown.String() {
		return
	}
	for _, s := range []queue.State{queue.Filled, queue.NotFilled, queue.Policer, queue.AQM, queue.TimeLimited} {
		v.Set(metric.SaturationState, metric.Flag(s.String() == l.State), d, s.String())
	}
}

// publishElapsed exports the load's bins, as many as the options allow.
func (l *Load) publishElapsed(v *loadtest.Values, d string, o *Options) {
	for group := range grouped(l.PerSecond, o.ElapsedBins) {
		sum := 0.0
		for _, b := range group {
			sum += b.Received
		}
		v.Set(metric.UDPThroughputElapsed, sum/float64(len(group)), d, elapsed(group[len(group)-1].Elapsed))
	}
	for group := range grouped(l.First, o.ElapsedBins) {
		// A median of medians is not a median: the last bin represents its group.
		b := group[len(group)-1]
		if b.Delays == nil {
			continue
		}
		for i, q := range [...]string{"0", "0.5", "1"} {
			if i == 1 || o.ElapsedRange {
				v.Set(metric.LoadedDelayElapsed, b.Delays[i].Seconds(), d, elapsed(b.Elapsed), q)
			}
		}
	}
}

// grouped divides bins into at most so many groups of adjacent ones.
func grouped(all []Bin, most int) iter.Seq[[]Bin] {
	if most == 0 {
		all, most = nil, 1
	}
	return slices.Chunk(all, max((len(all)+most-1)/most, 1))
}

// elapsed formats the end of a bin in seconds, as a label.
func elapsed(d report.Seconds) string { return strconv.FormatFloat(d.Seconds(), 'g', 6, 64) }
