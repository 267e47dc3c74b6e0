package saturation

import (
	"errors"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/queue"
	"oneway.example/exporter/estimate/ratesearch"
	"oneway.example/exporter/load/stream"
)

// Options are the probe's own keys, beside those of loadtest.Options.
type Options struct {
	// Mode is fixed, sweep or search.
	Mode string `yaml:"mode"`
	// Rate is the highest offered rate of each direction: constant in mode fixed, else the last one.
	Rate option.PerDirection `yaml:"rate"`
	// PacketBytes is the size of all packets, IP header included.
	PacketBytes int `yaml:"packet_bytes"`
	// Duration is the time of the load in mode fixed, or of the search in mode search.
	Duration time.Duration `yaml:"duration"`
	// Idle is the time before and after the load in which single packets measure the delay of the empty link. Mode
	// fixed only.
	Idle Idle `yaml:"idle"`
	// Skip is the time at the load's begin and end that is left out, because the queue is not full; at most a
	// quarter of the load each. Mode fixed only.
	Skip time.Duration `yaml:"skip"`
	// ElapsedBins is how many points of a direction's throughput and delay are exported with the time since the
	// load's begin as a label; the report has all. Mode fixed only.
	ElapsedBins int `yaml:"elapsed_bins"`
	// ElapsedRange adds the smallest and the largest delay to each median.
	ElapsedRange bool `yaml:"elapsed_range"`
	// Sweep holds the options of mode sweep.
	Sweep Sweep `yaml:"sweep"`
	// Search holds the options of mode search.
	Search Search `yaml:"search"`
	// Together tests both directions at the same time (mode fixed only); by default one after the other.
	Together bool `yaml:"together"`
}

// Idle is a phase before the load and one after it. Its packets leave at random times with the mean Interval. Their
// rate is at most a tenth of Options.Rate; there are at most 250, and at least ten if these take no more than 10 s.
// A Duration of zero leaves both phases out.
type Idle struct {
	Duration time.Duration `yaml:"duration"`
	Interval time.Duration `yaml:"interval"`
}

// Sweep is a series of rates, each Factor times the one before; the last is Options.Rate.
type Sweep struct {
	// From is the lowest rate; zero: a tenth of the highest.
	From   option.PerDirection `yaml:"from"`
	Factor float64             `yaml:"factor"`
	// Step is the time of each rate. A step that ends before the link's queue is full has no losses, even if its
	// rate is a little above the link's.
	Step time.Duration `yaml:"step"`
	// MaxLoss is the loss ratio up to which a step counts as lossless, 0..1.
	MaxLoss float64 `yaml:"max_loss"`
	// LossySteps is the number of consecutive lossy steps that ends the sweep; zero: it is not ended.
	LossySteps int `yaml:"lossy_steps"`
}

// Search is the load adjustment of RFC 9097 section 8, in one stream without a pause.
type Search struct {
	From option.PerDirection `yaml:"from"`
	// Step is the feedback interval, or the time of ten packets of the highest rate if that is longer.
	Step time.Duration `yaml:"step"`
	// Lower and Upper are the delay variation below which the rate increases, and above which it decreases.
	Lower time.Duration `yaml:"lower"`
	Upper time.Duration `yaml:"upper"`
}

// Values of mode.
const (
	ModeFixed  = "fixed"
	ModeSweep  = "sweep"
	ModeSearch = "search"
)

// DefaultOptions are those of an empty configuration: the thesis' rates and packets
// (Woo 2010, section 6.1.3: 5 Mb/s up, 12 Mb/s down, 1410 bytes), for a tenth of its time.
func DefaultOptions() Options {
	return Options{
		Mode: ModeFixed, Rate: option.PerDirection{Forward: 5e6 / 8, Reverse: 12e6 / 8}, PacketBytes: 1410,
		Duration: 30 * time.Second, Idle: Idle{Duration: 2 * time.Second, Interval: 40 * time.Millisecond},
		Skip: queue.DefaultSkip, ElapsedBins: 15,
		Sweep:  Sweep{Factor: ratesearch.DefaultFactor, Step: ratesearch.DefaultStep, MaxLoss: ratesearch.DefaultMaxLoss, LossySteps: 2},
		Search: Search{Step: ratesearch.DefaultInterval, Lower: 30 * time.Millisecond, Upper: 90 * time.Millisecond},
	}
}

// Limits of the options.
const (
	// minPacketBytes leaves space for the header of a test packet under IPv6.
	minPacketBytes = stream.HeaderBytes + 48
	maxPacket      = 65_535
	maxDuration    = 30 * time.Minute
)

// check validates o.
func (o *Options) check() error {
	err := errors.Join(
		option.OneOf("mode", o.Mode, ModeFixed, ModeSweep, ModeSearch),
		option.Between("packet_bytes", o.PacketBytes, minPacketBytes, maxPacket),
		option.Between("duration", o.Duration, time.Second, maxDuration),
		option.Between("idle.duration", o.Idle.Duration, 0, time.Minute),
		option.Between("idle.interval", o.Idle.Interval, time.Millisecond, 10*time.Second),
		option.Between("skip", o.Skip, 0, maxDuration),
		option.Between("elapsed_bins", o.ElapsedBins, 0, queue.MaxBins),
		option.Between("sweep.step", o.Sweep.Step, 100*time.Millisecond, maxDuration),
		option.Between("search.step", o.Search.Step, 50*time.Millisecond, time.Minute),
		option.Between("search.lower", o.Search.Lower, time.Millisecond, time.Minute),
		option.Between("search.upper", o.Search.Upper, o.Search.Lower, time.Minute),
	)
	switch {
	case err != nil:
		return err
	case !(o.Sweep.MaxLoss >= 0 && o.Sweep.MaxLoss < 1):
		return option.Errorf("sweep.max_loss", "is %v; it must be a share of 0 to below 1, such as 0.001", o.Sweep.MaxLoss)
	case o.Sweep.LossySteps < 0:
		return option.Errorf("sweep.lossy_steps", "is %d; it must not be negative", o.Sweep.LossySteps)
	case o.Together && o.Mode != ModeFixed:
		return option.Errorf("together", "is for mode fixed; mode is %s", o.Mode)
	}
	return nil
}

// planned is the load of one direction in IP bytes and time, or an error if it is impossible.
func (o *Options) planned(d sample.Direction) (bytes int64, lasts time.Duration, err error) {
	rate := o.Rate.Of(d)
	if rate <= 0 {
		return 0, 0, option.Errorf("rate."+d.String(), "is missing; it must be a rate such as 5Mbit")
	}
	steps := []ratesearch.Step{{Rate: float64(rate), Duration: o.Duration}}
	switch o.Mode {
	case ModeSweep:
		sweep, err := o.sweep(d)
		if err != nil {
			return 0, 0, option.Errorf("sweep", "is invalid in direction %s: %v", d, err)
		}
		steps = nil
		for next, more := sweep.Next(); more; next, more = sweep.Next() {
			steps = append(steps, next)
			sweep.Observe(ratesearch.Feedback{Packets: 1}) // without losses no step ends the sweep
		}
	case ModeSearch:
		if _, err := o.search(d, float64(rate), o.Duration); err != nil {
			return 0, 0, option.Errorf("search", "is invalid in direction %s: %v", d, err)
		}
	}
	idle, interval := o.idle(d)
	around := 2 * time.Duration(idle) * interval
	if longest := around + steps[0].Duration; float64(rate)*longest.Seconds()/float64(o.PacketBytes) > 0.99*stream.MaxPackets {
		return 0, 0, option.Errorf("rate."+d.String(), "of %v for %v is more than the %d packets that one transfer may have; shorten it or make the packets larger",
			rate, longest, stream.MaxPackets)
	}
	sum := 2 * float64(idle*o.PacketBytes)
	for _, s := range steps {
		sum += s.Rate*s.Duration.Seconds() + float64(o.PacketBytes)
		lasts += s.Duration
	}
	return int64(sum), lasts + around, nil
}

// sweep returns a new sweep of a direction.
func (o *Options) sweep(d sample.Direction) (*ratesearch.Sweep, error) {
	to, from := float64(o.Rate.Of(d)), float64(o.Sweep.From.Of(d))
	if from == 0 {
		from = to / 10
	}
	if from > to {
		return nil, errors.New("from is above rate")
	}
	loss := o.Sweep.MaxLoss
	if loss == 0 {
		loss = -1 // none
	}
	return ratesearch.NewSweep(ratesearch.SweepOptions{
		From: from, To: to, Factor: o.Sweep.Factor, Duration: o.Sweep.Step, MaxLoss: loss, Beyond: o.Sweep.LossySteps,
	})
}

// search returns a new search of a direction up to a rate. It begins with at least one packet in each feedback
// interval.
func (o *Options) search(d sample.Direction, most float64, length time.Duration) (*ratesearch.Adjustment, error) {
	every := o.every(most)
	least := max(float64(o.Search.From.Of(d)), float64(o.PacketBytes)/every.Seconds())
	return ratesearch.NewAdjustment(ratesearch.AdjustmentOptions{
		Min: min(least, most), Max: most, Interval: every,
		Duration: length, Lower: o.Search.Lower, Upper: o.Search.Upper,
	})
}

// perFeedback is the least number of packets in a feedback interval at the highest rate.
const perFeedback = 10

// every is the feedback interval: as configured, or the time of perFeedback packets of the highest rate.
func (o *Options) every(most float64) time.Duration {
	return max(o.Search.Step, time.Duration(perFeedback*float64(o.PacketBytes)/most*float64(time.Second)))
}
