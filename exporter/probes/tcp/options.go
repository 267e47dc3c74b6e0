package tcp

import (
	"errors"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
)

// Options are the probe's own keys in the configuration, beside those of loadtest.Options. Describe has their meanings, defaults and
// bounds.
type Options struct {
	Duration          time.Duration       `yaml:"duration"`
	Bytes             option.Bytes        `yaml:"bytes"`
	MaxBytes          option.Bytes        `yaml:"max_bytes"`
	Omit              time.Duration       `yaml:"omit"`
	Together          bool                `yaml:"together"`
	OverlapStart      time.Duration       `yaml:"overlap_start"`
	OverlapDuration   time.Duration       `yaml:"overlap_duration"`
	Flows             int                 `yaml:"flows"`
	CongestionControl []string            `yaml:"congestion_control"`
	SendBuffer        option.Bytes        `yaml:"send_buffer_bytes"`
	ReceiveBuffer     option.Bytes        `yaml:"receive_buffer_bytes"`
	MessageBytes      option.Bytes        `yaml:"message_bytes"`
	NoDelay           bool                `yaml:"no_delay"`
	MSS               int                 `yaml:"mss_bytes"`
	PacingRate        option.Rate         `yaml:"pacing_rate"`
	LinkRate          option.PerDirection `yaml:"link_rate"`
	IdleTimeout       time.Duration       `yaml:"idle_timeout"`
	Discard           bool                `yaml:"discard"`
	Stamps            bool                `yaml:"stamps"`
}

// Describe returns the descriptions of the probe's own keys.
func (o *Options) Describe() []option.Description {
	return []option.Description{
		option.Number(&o.Duration, 10*time.Second, time.Second, tcptraffic.MaxDuration, "Duration of sending in each direction; with {bytes} the longest. "+
			"A run reserves {max_bytes} of each direction in the quota of the link and returns what it did not use."),
		option.Number(&o.Bytes, 0, 0, tcptraffic.MaxBytes, "Payload of each direction, all flows together.").Unset("as much as {duration} allows"),
		tcptraffic.DescribeLimit(&o.MaxBytes, 2_000_000_000, "a direction"),
		option.Number(&o.Omit, time.Second, 0, tcptraffic.MaxDuration/2, "Time at the beginning, with the slow start, that is left out of the results."),
		option.Switch(&o.Together, false, "Test both directions at the same time instead of one after the other."),
		option.Number(&o.OverlapStart, 0, 0, tcptraffic.MaxDuration, "Time after which the second direction begins, in a two-way run."),
		option.Number(&o.OverlapDuration, 0, time.Second, tcptraffic.MaxDuration, "Duration of the second direction in a two-way run; the first one sends the whole {duration}. "+
			"With {duration} 5m, {overlap_start} 1m and {overlap_duration} 3m: the throughput before, during and after the overlap.").Unset("no two-way run"),
		option.Number(&o.Flows, 1, 1, tcptraffic.MaxFlows, "Number of parallel connections of a direction; at most "+option.Part(togetherPart)+" as many where both directions send. Several are compared (fairness)."),
		option.Value(&o.CongestionControl, nil, "Congestion control algorithms of the sending host's kernel, which the flows have in turn.").Unset("the host's default").WithExample("[cubic]").WithPlaceholder("NAME").
			Checked(func(key string) error { return tcptraffic.CheckNames(key, o.CongestionControl) }),
		tcptraffic.DescribeBuffer(&o.SendBuffer, "Send"),
		tcptraffic.DescribeBuffer(&o.ReceiveBuffer, "Receive"),
		option.Number(&o.MessageBytes, 128<<10, 1, tcptraffic.MaxMessage, "Size of each write."),
		option.Switch(&o.NoDelay, false, "Disable Nagle's algorithm."),
		option.Number(&o.MSS, 0, tcpsocket.MinMSS, tcpsocket.MaxMSS, "Largest segment.").Unset("the largest of the path"),
		option.Value(&o.PacingRate, 0, "Highest rate of each flow, in IP bytes.").Unset("unlimited, except by congestion control").WithExample("100Mbit"),
		option.Value(&o.LinkRate.Forward, 0, "Known rate of the path to the load server, in IP bytes: the results have the share of it that TCP used, and the "+
			"transfer time ratio of RFC 6349. It limits nothing.").Unset("unknown").WithExample("5Mbit"),
		option.Value(&o.LinkRate.Reverse, 0, "Known rate of the path from the load server.").Unset("unknown").WithExample("12Mbit"),
		tcptraffic.DescribeIdle(&o.IdleTimeout, "run"),
		option.Switch(&o.Discard, false, "Do not copy the payload to the receiving process: needs less CPU time."),
		option.Switch(&o.Stamps, true, "Measure the delay of sampled bytes, the times between ACKs, and split TCP. The run sends some UDP packets before."),
	}
}

// Groups returns the description of the group of keys.
func (*Options) Groups() map[string]string {
	return map[string]string{"link_rate": "The known rate of the path, to compare with."}
}

// DefaultOptions are the options of an empty configuration.
func DefaultOptions() Options { return option.Defaults[Options]() }

// Samples: every 100 ms, or less often if a run would have too many, and more often in the first seconds.
const (
	minInterval   = 100 * time.Millisecond
	traceFor      = 3 * time.Second
	traceInterval = 10 * time.Millisecond
)

// togetherPart is the part of the flows that a direction may have where both directions send.
const togetherPart = 2

// check validates the options of a run in some directions.
func (o *Options) check(directions int) error {
	key, lasts, flows := "duration", o.Duration, tcptraffic.MaxFlows
	if o.OverlapDuration > 0 && o.OverlapDuration < lasts {
		key, lasts = "overlap_duration", o.OverlapDuration
	}
	if directions > 1 && (o.Together || o.OverlapDuration > 0) {
		flows /= togetherPart // the load server limits those at the same time
	}
	err := option.Check(o)
	if err == nil {
		err = errors.Join(o.checkOverlap(directions), option.Between("flows", o.Flows, 1, flows), tcptraffic.CheckOmit(o.Omit, DefaultOptions().Omit, key, lasts))
	}
	if err != nil {
		return err
	}
	if n := len(o.CongestionControl); n > 1 && o.Flows%n != 0 {
		return option.Errorf("congestion_control", "has %d names for %d flows; each must have as many flows as the others", n, o.Flows)
	}
	return nil
}

// checkOverlap validates the options of two-way runs.
func (o *Options) checkOverlap(directions int) error {
	switch {
	case o.OverlapDuration == 0 && o.OverlapStart != 0:
		return option.Errorf("overlap_start", "is %v; it needs an %s", o.OverlapStart, option.Key("overlap_duration"))
	case o.OverlapDuration == 0:
		return nil
	case directions < 2:
		return option.Errorf("overlap_duration", "is %v; it needs both directions", o.OverlapDuration)
	case o.Together:
		return option.Errorf("overlap_duration", "is %v; it must be 0s with %s", o.OverlapDuration, option.Key("together"))
	case o.Bytes > 0:
		return option.Errorf("overlap_duration", "is %v; it must be 0s with %s, whose time is not known before", o.OverlapDuration, option.Key("bytes"))
	}
	if err := option.Between("overlap_duration", o.OverlapDuration, time.Second, o.Duration); err != nil {
		return err
	}
	if rest := o.Duration - o.OverlapDuration; o.OverlapStart < 0 || o.OverlapStart > rest {
		return option.Errorf("overlap_start", "is %v; with an %s of %v in a %s of %v it must be at most %v",
			o.OverlapStart, option.Key("overlap_duration"), o.OverlapDuration, option.Key("duration"), o.Duration, rest)
	}
	return nil
}

// most returns the most IP bytes of a direction. Small segments have larger headers than payload.
func (o *Options) most() int64 {
	if o.Bytes > 0 {
		return min(int64(o.MaxBytes), 3*int64(o.Bytes)+1<<20)
	}
	return int64(o.MaxBytes)
}

// plan returns the transfer of a direction.
func (o *Options) plan(d sample.Direction, most int64) tcptraffic.Plan {
	p := tcptraffic.Plan{
		Direction: d, Duration: o.Duration, Bytes: int64(o.Bytes), Most: most, Idle: o.IdleTimeout, Outage: o.IdleTimeout, Discard: o.Discard, Stamps: o.Stamps,
		TraceFor: traceFor, TraceInterval: traceInterval,
	}
	for i := range o.Flows {
		f := tcptraffic.Flow{MessageBytes: int(o.MessageBytes), Options: tcpsocket.Options{
			SendBuffer: int(o.SendBuffer), ReceiveBuffer: int(o.ReceiveBuffer), NoDelay: o.NoDelay, MSS: o.MSS, PacingRate: int64(o.PacingRate),
		}}
		if n := len(o.CongestionControl); n > 0 {
			f.CongestionControl = o.CongestionControl[i%n]
		}
		p.Flows = append(p.Flows, f)
	}
	spare := tcptraffic.MaxSamples/o.Flows - int(traceFor/traceInterval) - 2
	p.Interval = max(minInterval, o.Duration/time.Duration(spare)+1)
	return p
}
