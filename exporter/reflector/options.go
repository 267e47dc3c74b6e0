package reflector

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/memlimit"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/wire/stamp"
)

// Options are the reflector's settings. The zero value of each means its default.
type Options struct {
	// Listen are the addresses to answer on; an unspecified address means all
	// of its family. Default: 0.0.0.0:862 and [::]:862.
	Listen []netip.AddrPort
	// Keys are the shared secrets that authenticate questions, all valid at
	// once; an answer is signed with the key of its question. None: no
	// authenticated mode. The reflector works on clones.
	Keys []*stamp.Key
	// RequireKey refuses what is not authenticated.
	RequireKey bool
	// Stateless copies the question's number into the answer and keeps no
	// sessions: Receipt and Direct Measurement come back with the U flag.
	Stateless bool
	// RatePackets and RateBurst limit one source (/32 or /64). Default: 20,000
	// packets/s, which is 400 streams like G.711 calls (50/s each), and a
	// quarter of a second's worth at once. A negative rate: no limit.
	RatePackets, RateBurst int
	// MaxSessions bounds the sessions of all sockets together, an equal share
	// each. Default 65536: a full table takes 190 MiB if all sessions have
	// Receipts, 50 MiB if none has, or none has sent more than one packet; windows
	// of fast senders take 1 KiB a session more at the most. What MemoryLimit
	// has no room for is not remembered, whatever MaxSessions says: one session for each
	// 16 KiB.
	MaxSessions int
	// MemoryLimit is how much memory the process may take, in octets. Default: that of
	// memlimit.Process, if there is any. Negative: no limit.
	MemoryLimit int64
	// NewSessions limits how many sessions may begin each second, of all sockets together, an
	// equal share each, and four seconds' worth at once: a quarter of it of one source (/32
	// or /64), a half of one network (/24 or /48), and never less than 64. Those that are
	// authenticated have a limit of their own, of the same size. Default: an eighth of MaxSessions. A
	// negative one: no limit.
	NewSessions int
	// Expiry is how long a silent session is remembered. Default 15 min.
	Expiry time.Duration
	// LossWait is Tmax for senders that do not tell theirs. Default 3 s.
	LossWait time.Duration
	// Allow lists the sources that are answered. None: all are.
	Allow []netip.Prefix
	// AllowDSCP has bit n set if a Class of Service TLV may ask for answers with
	// DSCP n. Otherwise, and without such a TLV, an answer has its question's DSCP.
	AllowDSCP uint64
	// AllowReflectorPorts answers sources with port 862 or a port that we listen
	// on: some routers send from there. Answers are still told from questions
	// by their look.
	AllowReflectorPorts bool
	// TTL of the answers. Default 255 (RFC 5357 section 4.2.1), so that the
	// peer can count the hops back.
	TTL uint8
	// TAI is TAI-UTC, for questions with the Z bit. Default 37 s.
	TAI time.Duration
	// MaxPacketBytes is the largest question answered. Default 9216: jumbo frames.
	MaxPacketBytes int
	// Hardware names the interface whose card's time stamps are used; empty: the
	// kernel's only. The questions must come in through that card.
	Hardware string
	// ReceiveBufferBytes and SendBufferBytes are asked of the kernel for each
	// socket. Default 4 MiB each.
	ReceiveBufferBytes, SendBufferBytes int
}

// Env is what the reflector is lent. All fields are set but Log, whose zero
// value discards.
type Env struct {
	Log  *slog.Logger
	Sink metric.Sink
	// Clock is asked for the Error Estimate; its Run is the caller's business.
	Clock clock.Monitor
}

// Defaults of Options.
const (
	DefaultRatePackets    = 20_000
	DefaultMaxSessions    = 1 << 16
	DefaultExpiry         = 15 * time.Minute
	DefaultLossWait       = 3 * time.Second
	DefaultTAI            = 37 * time.Second
	DefaultMaxPacketBytes = 9216

	defaultBufferBytes = 4 << 20
	// longestWait bounds the Tmax that a sender may ask for.
	longestWait = 5 * time.Minute
	// Limits of HMACs that were false: of one source, and of all.
	failuresPerSource, failuresInTotal = 1000, 50_000
)

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// complete checks o and fills in the defaults.
func (o *Options) complete() error {
	if len(o.Listen) == 0 {
		o.Listen = []netip.AddrPort{
			netip.AddrPortFrom(netip.IPv4Unspecified(), stamp.Port),
			netip.AddrPortFrom(netip.IPv6Unspecified(), stamp.Port),
		}
	}
	orDefault(&o.RatePackets, DefaultRatePackets)
	orDefault(&o.RateBurst, max(1, o.RatePackets/4))
	orDefault(&o.MaxSessions, DefaultMaxSessions)
	if o.MemoryLimit == 0 {
		o.MemoryLimit = memlimit.Process()
	}
	orDefault(&o.Expiry, DefaultExpiry)
	orDefault(&o.LossWait, DefaultLossWait)
	orDefault(&o.TTL, 255)
	orDefault(&o.TAI, DefaultTAI)
	orDefault(&o.MaxPacketBytes, DefaultMaxPacketBytes)
	orDefault(&o.ReceiveBufferBytes, defaultBufferBytes)
	orDefault(&o.SendBufferBytes, defaultBufferBytes)
	if err := o.check(); err != nil {
		return err
	}
	if o.MemoryLimit > 0 {
		o.MaxSessions = min(o.MaxSessions, max(sessionsWithin(o.MemoryLimit), len(o.Listen)))
	}
	orDefault(&o.NewSessions, max(1, o.MaxSessions/8))
	return nil
}

func (o *Options) check() error {
	for _, a := range o.Listen {
		if !a.IsValid() {
			return errors.New("reflector: listen: not an address with a port")
		}
	}
	switch {
	case o.RequireKey && len(o.Keys) == 0:
		return errors.New("reflector: a key is required, but there is none: give a key file")
	case o.MaxSessions < len(o.Listen) || o.MaxSessions > 1<<22:
		return fmt.Errorf("reflector: max_sessions is %d; it must be between the number of sockets (%d) and %d",
			o.MaxSessions, len(o.Listen), 1<<22)
	case o.Expiry < time.Second:
		return fmt.Errorf("reflector: session_expiry is %v; it must be at least 1s", o.Expiry)
	case o.LossWait < time.Millisecond || o.LossWait > longestWait:
		return fmt.Errorf("reflector: loss wait is %v; it must be between 1ms and %v", o.LossWait, longestWait)
	case o.MaxPacketBytes < stamp.AuthenticatedBytes || o.MaxPacketBytes > 65_535:
		return fmt.Errorf("reflector: largest packet is %d octets; it must be between %d and 65535",
			o.MaxPacketBytes, stamp.AuthenticatedBytes)
	}
	for _, p := range o.Allow {
		if !p.IsValid() {
			return errors.New("reflector: allow: not an address with a prefix length")
		}
	}
	return nil
}
