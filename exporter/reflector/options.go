package reflector

import (
	"errors"
	"log/slog"
	"math"
	"net/netip"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/memlimit"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/option"
	"oneway.example/exporter/wire/stamp"
)

// Options are the reflector's settings. The zero value of each means its default. Tags are the
// keys of a configuration.
type Options struct {
	// Given tells of a key, such as "max_sessions", whether its value was given, so that zero
	// is no default but wrong; nil: none was.
	Given func(key string) bool
	// Listen are the addresses to answer on; an unspecified address means all
	// of its family. Default: 0.0.0.0:862 and [::]:862.
	Listen []netip.AddrPort
	// Keys are the shared secrets that authenticate requests, all valid at
	// once; a reply is signed with the key of its request. None: no
	// authenticated mode. The reflector works on clones.
	Keys []*stamp.Key
	// RequireKey refuses what is not authenticated.
	RequireKey bool `yaml:"require_key"`
	// Stateless copies the request's number into the reply and keeps no
	// sessions: Receipt and Direct Measurement come back with the U flag.
	Stateless bool `yaml:"stateless"`
	// RatePackets and RateBurst limit one source (/32 or /64). Default: 20,000
	// packets/s, which is 400 streams like G.711 calls (50/s each), and a
	// quarter of a second's worth at once. A negative rate: no limit.
	RatePackets, RateBurst int
	// MaxSessions bounds the sessions of all sockets together, an equal share
	// each. Default 65536: a full table takes 190 MiB if all sessions have
	// Receipts, 50 MiB if none has, or none has sent more than one packet; windows
	// of fast senders take 1 KiB a session more at the most. What MemoryLimit
	// has no space for is not remembered, whatever MaxSessions says: one session for each
	// 16 KiB.
	MaxSessions int `yaml:"max_sessions"`
	// MemoryLimit is how much memory the process may take, in bytes. Default: that of
	// memlimit.Process, if there is any. Negative: no limit.
	MemoryLimit int64
	// NewSessions limits how many sessions may begin each second, of all sockets together, an
	// equal share each, and four seconds' worth at once: a quarter of it of one source (/32
	// or /64), a half of one network (/24 or /48), and never less than 64. Those that are
	// authenticated have a limit of their own, of the same size. Default: an eighth of MaxSessions. A
	// negative one: no limit.
	NewSessions int
	// Expiry is how long a silent session is remembered. Default 15 min.
	Expiry time.Duration `yaml:"session_expiry"`
	// LossWait is Tmax for senders that do not tell theirs. Default 3 s.
	LossWait time.Duration
	// Allow lists the sources that are answered. None: all are.
	Allow []netip.Prefix `yaml:"allow"`
	// Hardware names the interface whose card's time stamps are used; empty: the
	// kernel's only. The requests must come in through that card.
	Hardware string `yaml:"hardware"`
	// ReceiveBufferBytes is asked of the kernel for each socket. Default 4 MiB.
	ReceiveBufferBytes int
}

// Env is what the reflector is given. All fields are set but Log, whose zero
// value discards.
type Env struct {
	Log  *slog.Logger
	Sink metric.Sink
	// Clock is asked for the Error Estimate; its Run is the caller's business.
	Clock clock.Monitor
}

const (
	// MaxPacketBytes is the largest request that is answered: jumbo frames.
	MaxPacketBytes = 9216
	// DefaultMaxSessions is Options.MaxSessions unless it is given.
	DefaultMaxSessions = 1 << 16

	// bufferBytes are asked of the kernel for each socket.
	bufferBytes = 4 << 20
	// replyTTL is that of RFC 5357 section 4.2.1, so that the peer can count the hops back.
	replyTTL = 255
	// tai is TAI-UTC since 2017, for requests with the Z bit.
	tai = 37 * time.Second
	// longestWait bounds the Tmax that a sender may ask for.
	longestWait = 5 * time.Minute
	// Limits of Options, and keys of the two that are a section of their own.
	maxMaxSessions = 1 << 22
	maxExpiry      = 24 * time.Hour
	maxRate        = 10_000_000
	keyRate        = "rate_limit.packets_per_second"
	keyBurst       = "rate_limit.burst"
	// Limits of HMACs that were false: of one source, and of all.
	failuresPerSource, failuresInTotal = 1000, 50_000
)

func orDefault[T comparable](given bool, v *T, d T) {
	var zero T
	if *v == zero && !given {
		*v = d
	}
}

func (o *Options) given(key string) bool { return o.Given != nil && o.Given(key) }

// complete checks o and fills in the defaults.
func (o *Options) complete() error {
	if len(o.Listen) == 0 {
		o.Listen = []netip.AddrPort{
			netip.AddrPortFrom(netip.IPv4Unspecified(), stamp.Port),
			netip.AddrPortFrom(netip.IPv6Unspecified(), stamp.Port),
		}
	}
	orDefault(o.given(keyRate), &o.RatePackets, 20_000)
	orDefault(o.given(keyBurst), &o.RateBurst, max(1, o.RatePackets/4))
	orDefault(o.given("max_sessions"), &o.MaxSessions, DefaultMaxSessions)
	orDefault(false, &o.MemoryLimit, memlimit.Process())
	orDefault(o.given("session_expiry"), &o.Expiry, 15*time.Minute)
	orDefault(false, &o.LossWait, 3*time.Second)
	orDefault(false, &o.ReceiveBufferBytes, bufferBytes)
	if err := o.check(); err != nil {
		return err
	}
	if o.MemoryLimit > 0 {
		o.MaxSessions = min(o.MaxSessions, max(sessionsWithin(o.MemoryLimit), len(o.Listen)))
	}
	orDefault(false, &o.NewSessions, max(1, o.MaxSessions/8))
	return nil
}

// Check says all that is wrong: errors of the keys of a configuration (*option.Error), and others.
func (o Options) Check() error { return o.complete() }

func (o *Options) check() error {
	errs := []error{
		option.Between("max_sessions", o.MaxSessions, len(o.Listen), maxMaxSessions),
		option.Between("session_expiry", o.Expiry, time.Second, maxExpiry),
		option.Missing(o.RequireKey && len(o.Keys) == 0, "key_file", "require_key needs it"),
	}
	if o.given(keyRate) {
		errs = append(errs, option.Between(keyRate, o.RatePackets, 1, maxRate))
	}
	if o.given(keyBurst) {
		errs = append(errs, option.Between(keyBurst, o.RateBurst, 1, maxRate))
	}
	return errors.Join(errs...)
}

// What sessions take, in bytes: one whose sender has a Receipt and counts, all indexes
// included, and what its window may grow by if all grow alike.
const (
	sessionBytes = 3 << 10
	growthBytes  = 1 << 10
	// leastGrowth lets a few windows of a small table grow to their full size.
	leastGrowth = 4 << 20
)

// memoryShare is the part of the memory limit that sessions may take: the garbage collector
// may let as much again lie about, and the agent has other things to do.
const memoryShare = 4

// fewestSessions are remembered whatever the memory limit.
const fewestSessions = 256

// sessionsWithin is how many sessions there may be in a process that may take so many bytes.
func sessionsWithin(bytes int64) int {
	return int(max(min(bytes/memoryShare/(sessionBytes+growthBytes), math.MaxInt32), fewestSessions))
}
