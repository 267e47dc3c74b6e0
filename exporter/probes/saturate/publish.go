package saturate

import (
	"strconv"
	"time"

	"oneway.example/exporter/estimate/queue"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/metric"
)

// Publish gives a completed run's values to the sink.
func (k *Kind) Publish(v *heavy.Values, r *heavy.Run) {
	body, ok := r.Body.(*Result)
	if !ok {
		return
	}
	for _, d := range body.Directions {
		switch {
		case d.Load != nil:
			d.Load.publish(v, d.Direction)
		case body.Mode == ModeSweep:
			d.publishSweep(v)
		default:
			d.publishSearch(v)
		}
	}
}

func (l *Load) publish(v *heavy.Values, d string) {
	v.Set(metric.UDPThroughput, l.Throughput, d)
	v.Set(metric.UDPOffered, l.Offered, d)
	v.Set(metric.UDPShortfall, l.Shortfall, d)
	v.Set(metric.LoadedLoss, l.Loss, d)
	v.ObserveAll(metric.LoadedDelay, l.delays, d)
	for _, b := range l.PerSecond {
		v.Set(metric.UDPThroughputElapsed, b.Received, d, elapsed(b.Elapsed))
	}
	for _, b := range l.First {
		if b.Delays == nil {
			continue
		}
		for i, q := range [...]string{"0", "0.5", "1"} {
			v.Set(metric.LoadedDelayElapsed, b.Delays[i].Seconds(), d, elapsed(b.Elapsed), q)
		}
	}
	for desc, value := range map[*metric.Desc]*time.Duration{
		metric.QueueIdleDelay: l.Idle, metric.QueueIdleDelayBound: l.IdleBound,
		metric.QueueFullDelay: l.Full, metric.QueueFullDelayBound: l.FullBound,
	} {
		if value != nil {
			v.Set(desc, value.Seconds(), d)
		}
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
	if l.AtLeastBytes != nil {
		v.Set(metric.QueueAtLeast, *l.AtLeastBytes, d)
	}
	if l.SizeBytes != nil {
		v.Set(metric.QueueSize, *l.SizeBytes, d)
		v.Set(metric.QueueSizeBound, *l.SizeBound, d)
	}
	l.publishState(v, d)
}

// publishState sets the state that was found to 1 and the others to 0; of one that is not
// known, none.
func (l *Load) publishState(v *heavy.Values, d string) {
	if l.State == queue.Unknown.String() {
		return
	}
	for _, s := range []queue.State{queue.Filled, queue.NotFilled, queue.Policer, queue.AQM, queue.TimeLimited} {
		is := 0.0
		if s.String() == l.State {
			is = 1
		}
		v.Set(metric.SaturationState, is, d, s.String())
	}
}

func (d *Direction) publishSweep(v *heavy.Values) {
	for _, s := range d.Steps {
		offered := strconv.FormatFloat(s.Offered, 'f', 0, 64)
		v.Set(metric.SweepThroughput, s.Received, d.Direction, offered)
		v.Set(metric.SweepLoss, s.Loss, d.Direction, offered)
	}
	if d.Lossless != nil {
		v.Set(metric.SweepLossless, *d.Lossless, d.Direction)
	}
	best := d.best()
	v.Set(metric.SweepMaximum, best.Received, d.Direction)
	d.publishStep(v, best)
}

func (d *Direction) publishSearch(v *heavy.Values) {
	switch {
	case d.Sustained != nil:
		v.Set(metric.SearchMaximum, d.Sustained.Received, d.Direction)
		d.publishStep(v, *d.Sustained)
	case d.Maximum != nil && !d.Unlimited && !d.Unsteady: // of steps that were transfers of their own
		v.Set(metric.SearchMaximum, *d.Maximum, d.Direction)
		d.publishStep(v, d.best())
	}
}

// publishStep is about the step that stands for the result.
func (d *Direction) publishStep(v *heavy.Values, best Step) {
	v.Set(metric.UDPOffered, best.Sent, d.Direction)
	v.Set(metric.UDPShortfall, best.Shortfall, d.Direction)
	v.Set(metric.LoadedLoss, best.Loss, d.Direction)
}

// elapsed is the end of a bin in seconds, as a label.
func elapsed(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', 6, 64) }
