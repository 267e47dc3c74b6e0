package saturation

import (
	"fmt"
	"math"
	"time"

	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/queue"
	"oneway.example/exporter/estimate/ratesearch"
	"oneway.example/exporter/load/stream"
)

// Options are the probe's own keys, beside those of loadtest.Options. Describe has their meanings, defaults and bounds.
type Options struct {
	Mode         string              `yaml:"mode"`
	Rate         option.PerDirection `yaml:"rate"`
	PacketBytes  int                 `yaml:"packet_bytes"`
	Duration     time.Duration       `yaml:"duration"`
	Idle         Idle                `yaml:"idle"`
	Skip         time.Duration       `yaml:"skip"`
	ElapsedBins  int                 `yaml:"elapsed_bins"`
	ElapsedRange bool                `yaml:"elapsed_range"`
	Sweep        Sweep               `yaml:"sweep"`
	Search       Search              `yaml:"search"`
	Together     bool                `yaml:"together"`
}

// Idle is a phase before the load and one after it. Its packets leave at random times with the mean Interval, within the limits
// of an idle phase (idleShare). A Duration of zero leaves both phases out.
type Idle struct {
	Duration time.Duration `yaml:"duration"`
	Interval time.Duration `yaml:"interval"`
}

// Sweep is a series of rates, each Factor times the one before; the last is Options.Rate.
type Sweep struct {
	From       option.PerDirection `yaml:"from"`
	Factor     float64             `yaml:"factor"`
	Step       time.Duration       `yaml:"step"`
	MaxLoss    float64             `yaml:"max_loss"`
	LossySteps int                 `yaml:"lossy_steps"`
}

// Search is the load adjustment of RFC 9097 section 8, in one stream without a pause.
type Search struct {
	From  option.PerDirection `yaml:"from"`
	Step  time.Duration       `yaml:"step"`
	Lower time.Duration       `yaml:"lower"`
	Upper time.Duration       `yaml:"upper"`
}

// Describe returns the descriptions of the probe's own keys. The default size of packets is from Woo 2010, section 6.1.3.
func (o *Options) Describe() []option.Description {
	return []option.Description{
		option.Word(&o.Mode, ModeFixed, []string{ModeFixed, ModeSweep, ModeSearch}, "fixed: one rate; sweep: from low to the rate, to find the rate at which loss begins, "+
			"each step a burst from an idle link; search: RFC 9097, one stream without a pause."),
		option.Value(&o.Rate.Forward, 0, "Highest offered rate to the load server, in IP packets: more than the link carries. Each tested direction needs its rate.").WithExample("5Mbit").Needed(),
		option.Value(&o.Rate.Reverse, 0, "Highest offered rate from the load server.").WithExample("12Mbit").Needed(),
		option.Number(&o.PacketBytes, 1410, minPacketBytes, maxPacket, "Size of the IP packets, headers included."),
		option.Number(&o.Duration, 30*time.Second, time.Second, maxDuration, "Duration of the load in each direction, or of a search."),
		option.Number(&o.Skip, queue.DefaultSkip, 0, maxDuration, "Time at the beginning and at the end of the load that is left out of the results, as the queue is not full; at most "+option.Part(queue.SkipPart)+" each."),
		option.Number(&o.Idle.Duration, 2*time.Second, 0, time.Minute, "Time before and after the load in which single packets measure the delay of the idle link; 0: none (mode fixed)."),
		option.Number(&o.Idle.Interval, 40*time.Millisecond, time.Millisecond, 10*time.Second, "Mean time between the packets over the idle link."),
		option.Switch(&o.Together, false, "Load both directions at the same time instead of one after the other (mode fixed)."),
		option.Number(&o.ElapsedBins, 15, 0, queue.MaxBins, "Points of a direction's throughput, and of its delay, that are series with the label elapsed_seconds (mode fixed). "+
			"The report has all points.").FileOnly(),
		option.Switch(&o.ElapsedRange, false, "Whether these points of the delay have its minimum and maximum as well.").FileOnly(),
		option.Value(&o.Sweep.From.Forward, 0, "Lowest rate of a sweep to the load server.").Unset(option.Part(fromPart) + " of {rate.forward}").WithExample("500kbit"),
		option.Value(&o.Sweep.From.Reverse, 0, "Lowest rate of a sweep from the load server.").Unset(option.Part(fromPart) + " of {rate.reverse}").WithExample("1200kbit"),
		option.Number(&o.Sweep.Factor, ratesearch.DefaultFactor, 1, maxFactor, "Ratio of consecutive rates of a sweep.").Limited(fmt.Sprintf("Above 1, to %d", maxFactor)).Checked(o.checkFactor),
		option.Number(&o.Sweep.Step, ratesearch.DefaultStep, 100*time.Millisecond, maxDuration, "Duration of each step of a sweep. "+
			"A step that ends before the link's queue is full has no losses, even if its rate is a little above the link's."),
		option.Number(&o.Sweep.MaxLoss, ratesearch.DefaultMaxLoss, 0, 1, "Share of lost packets up to which a step of a sweep counts as lossless.").Limited("0 to below 1").Checked(o.checkMaxLoss),
		option.Number(&o.Sweep.LossySteps, 2, 1, math.MaxInt, "Number of lossy steps in a row that ends a sweep.").Unset("no such end"),
		option.Value(&o.Search.From.Forward, 0, "Lowest rate of a search to the load server.").Unset("a packet in each interval of reports").WithExample("500kbit"),
		option.Value(&o.Search.From.Reverse, 0, "Lowest rate of a search from the load server.").Unset("a packet in each interval of reports").WithExample("1200kbit"),
		option.Number(&o.Search.Step, ratesearch.DefaultInterval, ratesearch.DefaultInterval, time.Minute, fmt.Sprintf("Interval of the receiver's reports in a search, or the time of %d packets of the highest rate if that is longer.", perFeedback)),
		option.Number(&o.Search.Lower, ratesearch.DefaultLower, time.Millisecond, time.Minute, "Delay variation below which a search raises the rate."),
		option.Number(&o.Search.Upper, ratesearch.DefaultUpper, time.Millisecond, time.Minute, "Delay variation above which a search lowers the rate.").
			Checked(func(key string) error { return option.Between(key, o.Search.Upper, o.Search.Lower, time.Minute) }),
	}
}

// Groups returns the descriptions of the groups of keys.
func (*Options) Groups() map[string]string {
	return map[string]string{
		"rate":        "The highest offered rate of each tested direction, here or in defaults.",
		"idle":        "The measurement of the idle link, before and after the load.",
		"sweep":       "The steps of mode sweep.",
		"sweep.from":  "The rate of the first step.",
		"search":      "The load adjustment of mode search (RFC 9097 section 8).",
		"search.from": "The rate at which it begins.",
	}
}

// Values of mode.
const (
	ModeFixed  = "fixed"
	ModeSweep  = "sweep"
	ModeSearch = "search"
)

// DefaultOptions are the options of an empty configuration.
func DefaultOptions() Options { return option.Defaults[Options]() }

// Limits of the options.
const (
	// minPacketBytes leaves space for the header of a test packet under IPv6.
	minPacketBytes = stream.HeaderBytes + ipheader.MaxUDP
	maxPacket      = 65_535
	maxDuration    = 30 * time.Minute
	// maxFactor is above the ratio of any two rates of a useful sweep.
	maxFactor = 1000
	// fromPart is the part of the highest rate that is the default of the lowest rate of a sweep.
	fromPart = 10
)

// check validates o.
func (o *Options) check() error {
	err := option.Check(o)
	switch {
	case err != nil:
		return err
	case o.Together && o.Mode != ModeFixed:
		return option.Errorf("together", "is for %s fixed; it is %s", option.Key("mode"), o.Mode)
	}
	return nil
}

// checkMaxLoss reports a share that is none, or all.
func (o *Options) checkMaxLoss(key string) error {
	if !(o.Sweep.MaxLoss >= 0 && o.Sweep.MaxLoss < 1) {
		return option.Errorf(key, "is %v; it must be a share of 0 to below 1, such as 0.001", o.Sweep.MaxLoss)
	}
	return nil
}

// checkFactor reports a ratio that does not raise the rate.
func (o *Options) checkFactor(key string) error {
	if !(o.Sweep.Factor > 1 && o.Sweep.Factor <= maxFactor) {
		return option.Errorf(key, "is %v; it must be above 1, such as %v, and at most %v", o.Sweep.Factor, ratesearch.DefaultFactor, maxFactor)
	}
	return nil
}

// planned is the load of one direction in IP bytes and time, or an error if it is impossible.
func (o *Options) planned(d sample.Direction) (bytes int64, lasts time.Duration, err error) {
	rate := o.Rate.Of(d)
	if rate <= 0 {
		return 0, 0, option.Errorf("rate."+d.String(), "is missing; write a rate above the link's, such as 5Mbit")
	}
	steps := []ratesearch.Step{{Rate: float64(rate), Duration: o.Duration}}
	switch o.Mode {
	case ModeSweep:
		sweep, err := o.sweep(d)
		if err != nil {
			return 0, 0, err
		}
		steps = nil
		for next, more := sweep.Next(); more; next, more = sweep.Next() {
			steps = append(steps, next)
			sweep.Observe(ratesearch.Feedback{Packets: 1}) // without losses no step ends the sweep
		}
	case ModeSearch:
		if _, err := o.search(d, float64(rate), o.Duration); err != nil {
			return 0, 0, option.Errorf("search.step", "is %v; the %s of %v must have at least one report, here one each %v", o.Search.Step, option.Key("duration"), o.Duration, o.every(float64(rate)))
		}
	}
	idle, interval := o.idle(d)
	around := 2 * time.Duration(idle) * interval
	if longest := around + steps[0].Duration; float64(rate)*longest.Seconds()/float64(o.PacketBytes) > 0.99*stream.MaxPackets {
		return 0, 0, option.Errorf("rate."+d.String(), "of %v for %v, with %v of idle before and after the load, is more than the %d packets that one transfer may have; shorten it or make the packets larger",
			rate, longest, around, stream.MaxPackets)
	}
	sum := 2 * float64(idle) * float64(o.PacketBytes)
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
		from = to / fromPart
	}
	if from > to {
		return nil, option.Errorf("sweep.from."+d.String(), "is %v; it must be at most %s, %v", o.Sweep.From.Of(d), option.Key("rate."+d.String()), o.Rate.Of(d))
	}
	loss := o.Sweep.MaxLoss
	if loss == 0 {
		loss = -1 // none
	}
	sweep, err := ratesearch.NewSweep(ratesearch.SweepOptions{
		From: from, To: to, Factor: o.Sweep.Factor, Duration: o.Sweep.Step, MaxLoss: loss, Beyond: o.Sweep.LossySteps,
	})
	if err != nil {
		return nil, option.Errorf("sweep.factor", "is %v; the sweep %s has more than %d steps; choose a larger factor or a smaller range", o.Sweep.Factor, d, ratesearch.MaxSteps)
	}
	return sweep, nil
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
