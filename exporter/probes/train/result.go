package train

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// Result is the result of a run: the report's "result".
type Result struct {
	Directions []*Direction `json:"directions"`
}

// Direction is the result of one direction.
type Direction struct {
	Direction     sample.Direction `json:"-"`
	DirectionName string           `json:"direction"`
	// PathMTU is in bytes of IP packet; zero: not found, or not searched for.
	PathMTU int     `json:"path_mtu_bytes,omitempty"`
	Sizes   []*Size `json:"sizes"`
	// Capacity is that of the direction, in IP bytes a second, and Bound its error bound: those of the size
	// PacketBytes. Nil and zero: refused.
	Capacity    *float64 `json:"capacity_bytes_per_second,omitempty"`
	Bound       *float64 `json:"capacity_error_bound_bytes_per_second,omitempty"`
	PacketBytes int      `json:"capacity_packet_bytes,omitempty"`
	// HiddenBucket is, with a Capacity, the least size of a token bucket of a shaper that the trains do not detect;
	// the capacity may then be that of the line before it.
	HiddenBucket int `json:"hidden_bucket_bytes,omitempty"`
	// Shaper is the token bucket that the trains have emptied: without a Capacity it is what limits the direction. Nil: none
	// is known.
	Shaper *Shaper `json:"shaper,omitempty"`
	// LongTrains counts the long trains by result; their size is PacketBytes, and no Size includes them.
	LongTrains map[string]int `json:"long_trains,omitempty"`
	// Refusal is why there is no Capacity although some sizes have one, in words.
	Refusal string `json:"no_capacity_reason,omitempty"`
}

// Shaper is a token bucket that passes a burst at the rate of the line before it, and the rest at its own rate. Both are in IP
// bytes, without the headers of a link that the shaper may count.
type Shaper struct {
	// Rate is the speed of the bucket after a burst.
	Rate float64 `json:"rate_bytes_per_second"`
	// RateBound is the error bound of Rate.
	RateBound float64 `json:"rate_error_bound_bytes_per_second"`
	// Burst is the size of the bucket; nil: it is not known.
	Burst *float64 `json:"burst_bytes,omitempty"`
	// BurstBound is the error bound of Burst.
	BurstBound *float64 `json:"burst_error_bound_bytes,omitempty"`
}

// Size is the result of the trains of one size. Rates are in IP bytes a second.
type Size struct {
	PayloadBytes int `json:"payload_bytes"`
	// PacketBytes is the IP packet, header included; WireBytes includes the headers of its fragments and is the
	// basis of the rates.
	PacketBytes int `json:"packet_bytes"`
	WireBytes   int `json:"fragmented_packet_bytes"`
	// Fragmented: the packets are larger than the path's MTU; nil: unknown.
	Fragmented *bool `json:"fragmented,omitempty"`
	// TrainPackets is the length of the last train: shorter than configured if the slowest link's queue holds
	// fewer.
	TrainPackets int `json:"train_packets"`
	// Trains counts all trains by result; the other fields are of clean ones.
	Trains map[string]int `json:"trains"`
	// Median, P5 and P95 are of the clean trains' capacities; nil: refused.
	Median *float64 `json:"capacity_bytes_per_second,omitempty"`
	P5     *float64 `json:"capacity_5th_percentile_bytes_per_second,omitempty"`
	P95    *float64 `json:"capacity_95th_percentile_bytes_per_second,omitempty"`
	// Bound is the error bound of the capacity estimate Median.
	Bound *float64 `json:"capacity_error_bound_bytes_per_second,omitempty"`
	// Dispersion is the mean time from packet to packet at the receiver, in seconds.
	Dispersion *float64 `json:"dispersion_seconds,omitempty"`
	// Capacities are those of the clean trains, ascending: the whole distribution.
	Capacities []float64 `json:"capacities_bytes_per_second"`
	// Refusal is why there is no capacity, in words.
	Refusal string `json:"no_capacity_reason,omitempty"`
	// Incident has, for each result but clean, the reason why the last such train was discarded.
	Evidence map[string]string `json:"evidence,omitempty"`

	summary capacity.Summary
	shaper  capacity.Shaper
	queue   bool // a queue has limited TrainPackets
}

// conclude sets the results of the verdicts.
func (z *Size) conclude(verdicts []capacity.Verdict, minClean int) {
	z.Trains, z.Evidence = map[string]int{}, map[string]string{}
	for _, v := range verdicts {
		z.Trains[v.Result.String()]++
		if v.Result != capacity.Clean {
			z.Evidence[v.Result.String()] = v.Evidence
		}
	}
	sum := capacity.Summarize(verdicts, minClean)
	z.summary, z.Capacities, z.Refusal = sum, sum.Capacities, sum.Refusal
	if sum.OK {
		z.Median, z.P5, z.P95 = &sum.Median, &sum.P5, &sum.P95
		z.Bound = new(max(sum.Median-sum.Low, sum.High-sum.Median))
		z.Dispersion = new(sum.MeanGap.Seconds())
	}
}

// conclude takes the direction's capacity from the size that represents it, unless long trains show that its rate
// does not last, or the capacity of that size is not known: then there is none.
func (d *Direction) conclude(z *Size, long []capacity.Verdict) {
	d.PacketBytes, d.LongTrains = z.PacketBytes, map[string]int{}
	for _, v := range long {
		d.LongTrains[v.Result.String()]++
	}
	switch {
	case z.Median != nil:
		d.HiddenBucket, d.Refusal = z.summary.Sustained(long, z.WireBytes, z.TrainPackets)
	case d.Shaper == nil:
		return
	default:
		d.Refusal = fmt.Sprintf("a token bucket, which longer trains empty; trains of %d packets are %s", z.TrainPackets, z.summary.Cause.Words())
	}
	if o := d.bucket(); o != nil {
		d.Refusal = fmt.Sprintf("trains of %d B show a token bucket: %s", o.PacketBytes, o.Refusal)
	}
	if d.Refusal == "" {
		d.Capacity, d.Bound = z.Median, z.Bound
		return
	}
	for _, z := range d.Sizes {
		if z.Median != nil {
			z.Median, z.P5, z.P95, z.Bound, z.Dispersion, z.Refusal = nil, nil, nil, nil, nil, d.Refusal
		}
	}
}

// shaped sets the Shaper, unless none was found.
func (d *Direction) shaped(s capacity.Shaper) {
	if !s.RateOK {
		return
	}
	d.Shaper = &Shaper{Rate: s.Rate, RateBound: s.RateBound}
	if s.BurstOK {
		d.Shaper.Burst, d.Shaper.BurstBound = &s.Burst, &s.BurstBound
	}
}

// paced reports whether most trains were not clean because of the sender's pace.
func (z *Size) paced() bool {
	all := 0
	for _, n := range z.summary.Trains {
		all += n
	}
	return 2*z.summary.Trains[capacity.SenderPace] > all
}

// verdict is the error of a run that has measured nothing: no direction has a capacity or a shaper. Nil: one has.
func (r *Result) verdict() error {
	var why []string
	cause := runreason.SenderSlow
	for _, d := range r.Directions {
		if d.Capacity != nil || d.Shaper != nil {
			return nil
		}
		why = append(why, d.DirectionName+": "+strings.Join(d.refusals(), "; "))
		if d.Refusal != "" || len(d.Sizes) == 0 || !d.Sizes[0].paced() {
			cause = runreason.NoResult
		}
	}
	return &loadtest.Failure{Reason: cause, Err: fmt.Errorf("train: nothing was measured: %s", strings.Join(why, "; "))}
}

// note adds the reasons of capacities that are not known, each once.
func (r *Result) note(to *loadtest.Run) {
	for _, d := range r.Directions {
		for _, why := range d.refusals() {
			to.Note(d.DirectionName + ": no capacity: " + why)
		}
	}
}

// brief is Refusal in a few words.
func (z *Size) brief() string {
	switch s := &z.summary; {
	case s.Disagree:
		return "trains disagree"
	case s.Cause != capacity.Clean:
		return "trains " + s.Cause.Words()
	}
	return "too few clean trains"
}

// refusals are the reasons of the direction or its sizes why a capacity is not known. Without any capacity each cause is told once.
func (d *Direction) refusals() (all []string) {
	if d.Refusal != "" {
		return []string{d.Refusal}
	}
	told := map[capacity.Result]bool{}
	for _, z := range d.Sizes {
		if z.Refusal == "" || d.Capacity == nil && told[z.summary.Cause] {
			continue
		}
		told[z.summary.Cause] = true
		all = append(all, fmt.Sprintf("with packets of %d B, %s", z.PacketBytes, z.Refusal))
	}
	return all
}

// bucket returns a size most of whose trains show a token bucket that smaller ones do not empty; nil: none.
func (d *Direction) bucket() *Size {
	for _, z := range d.Sizes {
		if n := z.summary.Trains[capacity.TokenBucket]; n > z.summary.Trains[capacity.Clean] {
			return z
		}
	}
	return nil
}

// best is the size that represents the direction: the largest unfragmented one with a capacity, since the hosts'
// time for each packet affects small packets more. Nil: none.
func (d *Direction) best() (best *Size) {
	for _, z := range d.Sizes {
		whole := z.Fragmented == nil || !*z.Fragmented
		if z.Median != nil && whole && (best == nil || z.PacketBytes > best.PacketBytes) {
			best = z
		}
	}
	return best
}

// unslowed is the largest unfragmented size of a direction without a capacity, if its trains arrived as fast as they were sent, or too fast to
// measure: the path may have a token bucket that they do not empty. Nil: none.
func (d *Direction) unslowed() (largest *Size) {
	for _, z := range d.Sizes {
		whole := z.Fragmented == nil || !*z.Fragmented
		if whole && (largest == nil || z.PacketBytes > largest.PacketBytes) {
			largest = z
		}
	}
	if largest == nil || largest.summary.Cause != capacity.SenderPace && largest.summary.Cause != capacity.TooShort {
		return nil
	}
	return largest
}

// summary describes a direction in a few lines.
func (d *Direction) summary() (lines []probe.Result) {
	line := func(one probe.Result) {
		one.Direction = d.DirectionName
		lines = append(lines, one)
	}
	switch {
	case d.Capacity != nil:
		line(probe.Result{Quantity: "capacity", Numbers: []report.Number{{Value: d.Capacity, Bound: d.Bound, Unit: unit.BytesPerSecond}}})
		line(probe.Result{Quantity: "not detected", Numbers: []report.Number{{Label: "a token bucket above", Value: new(float64(d.HiddenBucket)), Unit: unit.Bytes}}})
	case d.Refusal != "":
		line(probe.Result{Quantity: "capacity", Unknown: "a token bucket"})
	case len(d.Sizes) > 0 && d.Sizes[0].Refusal != "": // the notes and the error have the evidence
		line(probe.Result{Quantity: "capacity", Unknown: d.Sizes[0].brief()})
	}
	if s := d.Shaper; s != nil {
		numbers := []report.Number{{Value: &s.Rate, Bound: &s.RateBound, Unit: unit.BytesPerSecond}}
		if s.Burst != nil {
			numbers = append(numbers, report.Number{Label: "after a burst of", Value: s.Burst, Bound: s.BurstBound, Unit: unit.Bytes})
		}
		line(probe.Result{Quantity: "shaper", Numbers: numbers})
	}
	if d.PathMTU > 0 {
		line(probe.Result{Quantity: "path MTU", Numbers: []report.Number{{Value: new(float64(d.PathMTU)), Unit: unit.PacketBytes}}})
	}
	return lines
}

// Counters returns the counters and histograms of trains. The size of a packet depends on the address of the remote end: it includes the IP header.
func (k *Kind) Counters(remote netip.Addr) []loadtest.Counter {
	sizes := metric.Values{}
	for _, payload := range k.opts.PayloadBytes {
		if remote.IsValid() {
			sizes[metric.PacketBytesL] = append(sizes[metric.PacketBytesL], strconv.Itoa(payload+ipheader.WithIP(remote.Is6(), ipheader.UDP)))
		}
	}
	return []loadtest.Counter{{Desc: metric.Trains, Values: sizes}, {Desc: metric.TrainCapacity, Values: sizes}}
}

// Publish sets the values of both directions.
func (*Kind) Publish(v *loadtest.Values, r *loadtest.Run) {
	res, ok := r.Body.(*Result)
	if !ok {
		return
	}
	for _, d := range res.Directions {
		if d.PathMTU > 0 {
			v.Set(metric.PathMTU, float64(d.PathMTU), d.DirectionName)
		}
		if d.Capacity != nil {
			v.Set(metric.PathCapacity, *d.Capacity, d.DirectionName)
			v.Set(metric.PathCapacityBound, *d.Bound, d.DirectionName)
			v.Set(metric.PathCapacityHidden, float64(d.HiddenBucket), d.DirectionName)
		}
		if s := d.Shaper; s != nil {
			v.Set(metric.ShaperRate, s.Rate, d.DirectionName)
			v.Set(metric.ShaperRateBound, s.RateBound, d.DirectionName)
			v.SetKnown(metric.ShaperBurst, s.Burst, d.DirectionName)
			v.SetKnown(metric.ShaperBurstBound, s.BurstBound, d.DirectionName)
		}
		for _, z := range d.Sizes {
			size := strconv.Itoa(z.PacketBytes)
			for _, r := range capacity.Results() {
				n := z.Trains[r.String()]
				if z.PacketBytes == d.PacketBytes {
					n += d.LongTrains[r.String()]
				}
				v.Add(metric.Trains, float64(n), d.DirectionName, size, r.String())
			}
			if z.Fragmented != nil {
				v.Set(metric.TrainFragmented, metric.Flag(*z.Fragmented), d.DirectionName, size)
			}
			if z.Median == nil {
				continue
			}
			v.ObserveAll(metric.TrainCapacity, z.Capacities, d.DirectionName, size)
			v.Set(metric.Capacity, *z.P5, d.DirectionName, size, "0.05")
			v.Set(metric.Capacity, *z.Median, d.DirectionName, size, "0.5")
			v.Set(metric.Capacity, *z.P95, d.DirectionName, size, "0.95")
			v.Set(metric.CapacityBound, *z.Bound, d.DirectionName, size)
			v.Set(metric.TrainDispersion, *z.Dispersion, d.DirectionName, size)
		}
	}
}
