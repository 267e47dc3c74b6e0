package probe

import (
	"context"
	"net/netip"
	"time"
)

// Light begins a stream of light test packets to one reflector, during a load test. Package probes/stamp has one; a load
// test imports no concrete probe. Each packet whose outcome is known goes to env.Recorder; nothing goes to env.Sink.
type Light func(ctx context.Context, env Env, o LightOptions) (LightStream, error)

// LightOptions are those of a stream.
type LightOptions struct {
	// Target has the labels of the records.
	Target Target
	// Peer is the reflector. Local is the source address; the zero value: the kernel chooses.
	Peer  netip.AddrPort
	Local netip.Addr
	// Key is the shared secret of authenticated mode.
	Key  []byte
	DSCP int
	// Interval is the mean time between packets: there is one in each, at random. LossTimeout is the time of either direction after which one is lost.
	Interval, LossTimeout time.Duration
	// MaxBytes is the most payload that is sent.
	MaxBytes int64
}

// LightBytes is the largest payload of a packet of a stream, and of its reply: an authenticated statistics reply.
const LightBytes = 260

// LightStream is a stream that has begun.
type LightStream interface {
	// Stop ends the stream and returns the packets that were sent and their payload. Before, it waits until the outcome of each packet is
	// known: at most the loss timeout and a second, and not after the end of ctx. A packet without an outcome is not
	// recorded.
	Stop(ctx context.Context) (packets, bytes int64)
}
