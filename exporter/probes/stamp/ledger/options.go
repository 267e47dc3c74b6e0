package ledger

import (
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/wire/timefmt"
)

// Options describe the test packets of a session.
type Options struct {
	// Interval is the time between test packets (the mean, with a Poisson schedule); above zero.
	Interval time.Duration
	// LossTimeout is the waiting time of each direction and of the round trip, after which a packet is lost; at most
	// MaxOutstanding times Interval.
	LossTimeout time.Duration
	// TAIOffset is TAI-UTC, used with Format PTP.
	TAIOffset time.Duration
	// TTL is the TTL or hop limit of test packets.
	TTL uint8
	// Receipts: the test packets have space for a Receipt.
	Receipts bool
	// Format is the format of the timestamps in test packets.
	Format timefmt.Format
}

const (
	// TickInterval is the interval of the calls of Tick.
	TickInterval = time.Second
	// MaxOutstanding is the most packets sent within the loss timeout; both ends remember at least as many.
	MaxOutstanding = 1 << 16
)

// encode writes a time in the timestamp format of test packets.
func (o *Options) encode(t instant.Time) uint64 { return o.Format.Encode(t, o.TAIOffset) }

// explains is the longest time between a drop and the decision of a loss attributed to it, if the next packet arrives
// at once and this host is not late.
func (o *Options) explains() time.Duration { return o.LossTimeout + 2*TickInterval }

// replyWait is the longest time for which a reply waits for its true T3: until the next two or three replies should
// have arrived.
func (o *Options) replyWait() time.Duration { return max(time.Second, replyWait*o.Interval) }
