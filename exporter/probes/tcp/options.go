package tcp

import (
	"errors"
	"fmt"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
)

// Options are the probe's own keys in the configuration; an absent key keeps its default.
// Those of loadtest.Options stand beside them.
type Options struct {
	// Duration of sending in each direction, 1 s to 24 h; with Bytes the longest.
	Duration time.Duration `yaml:"duration"`
	// Bytes is the payload of each direction, all flows together; zero: sending takes Duration.
	Bytes option.Bytes `yaml:"bytes"`
	// MaxBytes limits the IP bytes of a direction, acknowledgments and retransmissions included: sending then ends.
	MaxBytes option.Bytes `yaml:"max_bytes"`
	// Omit is the time at the beginning, with the slow start, that the mean and the quantiles leave out.
	Omit time.Duration `yaml:"omit"`
	// Together: both directions at the same time.
	Together bool `yaml:"together"`
	// OverlapDuration makes a two-way run, if it is not zero: the first of the run's directions sends the whole Duration,
	// and the other this long, from OverlapStart on, or later by the set-up of its connections over the loaded link.
	OverlapStart    time.Duration `yaml:"overlap_start"`
	OverlapDuration time.Duration `yaml:"overlap_duration"`
	// Flows is the number of parallel connections, 1 to 64.
	Flows int `yaml:"flows"`
	// CongestionControl has the names of the kernel's algorithms, which the flows have in turn: one for all, or as many
	// for each; none: the default of the sending host.
	CongestionControl []string `yaml:"congestion_control"`
	// SendBuffer and ReceiveBuffer are the sizes that an application sets; zero: auto-tuning.
	SendBuffer    option.Bytes `yaml:"send_buffer_bytes"`
	ReceiveBuffer option.Bytes `yaml:"receive_buffer_bytes"`
	// MessageBytes is the size of each write, 1 to 4 MiB.
	MessageBytes option.Bytes `yaml:"message_bytes"`
	// NoDelay disables Nagle's algorithm.
	NoDelay bool `yaml:"no_delay"`
	// MSS is the largest segment; zero: that of the path.
	MSS int `yaml:"mss_bytes"`
	// PacingRate limits the rate of each flow, in IP bytes; zero: none.
	PacingRate option.Rate `yaml:"pacing_rate"`
	// LinkRate is the known rate of the path, for the ideal throughput of RFC 6349; zero: unknown. It limits nothing.
	LinkRate option.PerDirection `yaml:"link_rate"`
	// IdleTimeout ends a run without progress. To survive an outage it must be more than twice as long as that: TCP sends
	// again after ever longer times (RFC 6298 section 5.5).
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	// Discard: the receiver does not copy the payload out of the kernel, which needs less CPU time.
	Discard bool `yaml:"discard"`
	// Stamps: both ends take timestamps of sampled bytes of the stream, and the run sends some UDP packets before.
	Stamps bool `yaml:"stamps"`
}

// DefaultOptions returns one flow for 10 s.
func DefaultOptions() Options {
	return Options{
		Duration: 10 * time.Second, MaxBytes: 2_000_000_000, Omit: time.Second, Flows: 1, MessageBytes: 128 << 10,
		IdleTimeout: 10 * time.Second, Stamps: true,
	}
}

// Samples: every 100 ms, or less often if a run would have too many, and more often in the first seconds.
const (
	minInterval   = 100 * time.Millisecond
	traceFor      = 3 * time.Second
	traceInterval = 10 * time.Millisecond
)

// check validates the options of a run in some directions.
func (o *Options) check(directions int) error {
	omit, flows := o.Duration/2, tcptraffic.MaxFlows
	if o.OverlapDuration > 0 {
		omit = min(omit, o.OverlapDuration/2)
	}
	if directions > 1 && (o.Together || o.OverlapDuration > 0) {
		flows /= 2 // the load server limits those at the same time
	}
	err := errors.Join(
		option.Between("duration", o.Duration, time.Second, tcptraffic.MaxDuration),
		option.Between("bytes", o.Bytes, 0, 1<<45),
		option.Between("max_bytes", o.MaxBytes, 100_000, 1<<45),
		option.Between("flows", o.Flows, 1, flows),
		option.Between("send_buffer_bytes", o.SendBuffer, 0, tcpsocket.MaxBuffer),
		option.Between("receive_buffer_bytes", o.ReceiveBuffer, 0, tcpsocket.MaxBuffer),
		option.Between("message_bytes", o.MessageBytes, 1, tcptraffic.MaxMessage),
		option.Between("idle_timeout", o.IdleTimeout, tcptraffic.MinIdle, tcptraffic.MaxIdle),
	)
	if err == nil {
		err = errors.Join(o.checkOverlap(directions), option.Between("omit", o.Omit, 0, omit))
	}
	if err != nil {
		return err
	}
	if o.MSS != 0 {
		if err := option.Between("mss_bytes", o.MSS, tcpsocket.MinMSS, tcpsocket.MaxMSS); err != nil {
			return err
		}
	}
	if n := len(o.CongestionControl); n > 1 && o.Flows%n != 0 {
		return option.Errorf("congestion_control", "has %d names for %d flows; each must have as many flows as the others", n, o.Flows)
	}
	for i, name := range o.CongestionControl {
		if err := tcptraffic.CheckName(fmt.Sprintf("congestion_control[%d]", i), name); err != nil {
			return err
		}
	}
	return nil
}

// checkOverlap validates the options of two-way runs.
func (o *Options) checkOverlap(directions int) error {
	switch {
	case o.OverlapDuration == 0 && o.OverlapStart != 0:
		return option.Errorf("overlap_start", "is %v; it needs an overlap_duration", o.OverlapStart)
	case o.OverlapDuration == 0:
		return nil
	case directions < 2:
		return option.Errorf("overlap_duration", "is %v; it needs both directions", o.OverlapDuration)
	case o.Together:
		return option.Errorf("overlap_duration", "is %v; it must be 0s with together", o.OverlapDuration)
	case o.Bytes > 0:
		return option.Errorf("overlap_duration", "is %v; it must be 0s with bytes, whose time is not known before", o.OverlapDuration)
	}
	if err := option.Between("overlap_duration", o.OverlapDuration, time.Second, o.Duration); err != nil {
		return err
	}
	if rest := o.Duration - o.OverlapDuration; o.OverlapStart < 0 || o.OverlapStart > rest {
		return option.Errorf("overlap_start", "is %v; with an overlap_duration of %v in a duration of %v it must be at most %v", o.OverlapStart, o.OverlapDuration, o.Duration, rest)
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
		Direction: d, Duration: o.Duration, Bytes: int64(o.Bytes), Most: most, Idle: o.IdleTimeout, Discard: o.Discard, Stamps: o.Stamps,
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
