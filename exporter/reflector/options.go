package reflector

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/memlimit"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
)

// Options are the reflector's settings. A zero value means the default. Tags are configuration keys.
type Options struct {
	// Given reports whether a key, such as "max_sessions", is set in the configuration, so that an explicit zero is an
	// error and not the default; nil: no key is set.
	Given func(key string) bool
	// Listen are the addresses to listen on; an unspecified address means all of its family. Default: both of them
	// at stampfmt.Port.
	Listen []netip.AddrPort
	// Keys are the shared secrets that authenticate requests, all valid at the same time; a reply is signed with the
	// key of its request. None: no authenticated mode. The reflector works on clones.
	Keys []*stampfmt.Key
	// RequireKey refuses unauthenticated requests.
	RequireKey bool `yaml:"require_key"`
	// Stateless copies the request's number into the reply and keeps no sessions: Receipt and Direct Measurement are
	// returned with the U flag.
	Stateless bool `yaml:"stateless"`
	// RatePackets and RateBurst limit one source (/32 or /64). Default: DefaultRate, and a burst of RatePackets / burstPart.
	// A negative rate: no limit.
	RatePackets, RateBurst int
	// MaxSessions limits the sessions of all sockets together, an equal share each. Default: DefaultMaxSessions. A full table takes
	// 190 MiB if all sessions have Receipts, 50 MiB if none has, or none has sent more than one packet; windows of fast
	// senders add up to growthBytes a session. MemoryLimit limits the number further (sessionsWithin).
	MaxSessions int `yaml:"max_sessions"`
	// MemoryLimit is the memory limit of the process in bytes. Default: that of memlimit.Process, if there is one.
	// Negative: no limit.
	MemoryLimit int64
	// NewSessions limits the new sessions per second of all sockets together, an equal share each, with a burst of newSessionBurst
	// seconds: 1/sourceShare of it for one source (/32 or /64), 1/networkShare for one network (/24 or /48), and never less than
	// minNewSessions. Authenticated sessions have a limit of their own, of the same size. Default: MaxSessions / newPart.
	// Negative: no limit.
	NewSessions int
	// Expiry is the idle timeout of a session. Default: defaultExpiry.
	Expiry time.Duration `yaml:"session_expiry"`
	// LossWait is Tmax for senders that do not send theirs. Default: seqwin.DefaultWait.
	LossWait time.Duration
	// Allow lists the sources that get replies. None: all do.
	Allow []netip.Prefix `yaml:"allow"`
	// ShortRequests replies to requests of stampfmt.UnpaddedSenderBytes or more with a base packet, which is longer (RFC 8762 section
	// 4.6). Allow must list their sources, since they could be spoofed.
	ShortRequests bool `yaml:"short_requests"`
	// Hardware names the interface whose card's timestamps are used; empty: the kernel's only. Requests must arrive
	// through that card.
	Hardware string `yaml:"hardware"`
	// MaxRequestBytes is the largest request that gets a reply. Default and maximum: MaxPacketBytes.
	MaxRequestBytes int
	// MaxReplyBytes is the most payload that each socket replies with; 0: no limit.
	MaxReplyBytes uint64
	// NoRejections: a request that cannot be authenticated gets no rejection.
	NoRejections bool
	// ReceiveBufferBytes is the receive buffer of each socket. Default: receiveBufferBytes, or less under
	// a memory limit (memlimit.Buffer).
	ReceiveBufferBytes int
}

// Env is the environment of the reflector. All fields must be set except Log, whose zero value discards.
type Env struct {
	Log  *slog.Logger
	Sink metric.Sink
	// Clock provides the Error Estimate; the caller runs it.
	Clock clock.Monitor
}

const (
	// MaxPacketBytes is the largest request that a reflector replies to: jumbo frames.
	MaxPacketBytes = 9216
	// DefaultMaxSessions is the default of Options.MaxSessions.
	DefaultMaxSessions = 1 << 16
	// DefaultRate is the default of Options.RatePackets: 400 streams like G.711 calls (50/s each).
	DefaultRate = 20_000

	defaultExpiry = 15 * time.Minute

	// burstPart is the part of the rate that is the default of the burst, newPart the part of all sessions that may begin in a second.
	burstPart, newPart = 4, 8

	// receiveBufferBytes is the default receive buffer of a socket: of the requests of 10,000 sessions of one packet a
	// second during a stall of more than three seconds.
	receiveBufferBytes = 16 << 20
	sendBufferBytes    = 4 << 20
	// replyTTL is that of RFC 5357 section 4.2.1; the peer derives the hop count of the return path from it.
	replyTTL = 255
	// tai is for requests with the Z bit.
	tai = timefmt.TAIOffset
	// maxWait limits the Tmax of a sender.
	maxWait = 5 * time.Minute
	// Limits of Options.
	maxMaxSessions = 1 << 22
	maxExpiry      = 24 * time.Hour
	// Limits of invalid HMACs per second: of one source, and in total.
	failuresPerSource, failuresInTotal = 1000, 50_000
	// Limits of rejections: one per second and source, after a burst for the queries with which a sender begins.
	rejectionBurst, rejectionsInTotal = 3, 100
)

// Describe returns the descriptions of the keys of Options. Section has the others.
func (o *Options) Describe() []option.Description {
	return []option.Description{
		option.Switch(&o.RequireKey, false, "Reflect authenticated packets only."),
		option.Switch(&o.Stateless, false, "Copy the test packet's number into the reply and keep no sessions: no counts by direction."),
		option.Number(&o.MaxSessions, DefaultMaxSessions, max(1, len(o.Listen)), maxMaxSessions, "Maximum number of sessions. Where memory is limited (GOMEMLIMIT, or four fifths of the control "+
			"group's limit), at most one for each 16 KiB of it. At most "+option.Part(newPart)+" of them may begin in a second ("+option.Part(sourceShare)+" of that from one address or /64, "+
			option.Part(networkShare)+" from one /24 or /48), with bursts of four seconds' worth: so known peers keep their sessions in a flood from spoofed addresses.").
			Limited(fmt.Sprintf("1 for each listening socket (\":%d\" opens two) to %d", stampfmt.Port, maxMaxSessions)),
		option.Number(&o.Expiry, defaultExpiry, time.Second, maxExpiry, "Idle timeout of a session."),
		option.Sources(&o.Allow, "all"),
		option.Switch(&o.ShortRequests, false, fmt.Sprintf("Reply with %d bytes to test packets of %d to %d bytes (RFC 8762 section 4.6), as TWAMP-Light senders without padding send, such as twampy. "+
			"Otherwise a test packet has at least %d bytes, and no reply is longer than its test packet: who spoofs the source of short ones makes this host send more than it gets. "+
			"It needs {allow}, with these senders only.", stampfmt.UnauthenticatedBytes, stampfmt.UnpaddedSenderBytes, stampfmt.UnauthenticatedBytes-1, stampfmt.MinSenderBytes)),
		option.Text(&o.Hardware, "Use the hardware timestamps of this interface, which test packets must pass. Enable them first (hwstamp_ctl -i eth0 -t 1 -r 1).").
			Unset("the kernel's timestamps").WithExample("eth0").WithPlaceholder("IFACE"),
	}
}

func (o *Options) given(key string) bool { return o.Given != nil && o.Given(key) }

// complete checks o and sets the defaults.
func (o *Options) complete() error {
	if len(o.Listen) == 0 {
		o.Listen = []netip.AddrPort{
			netip.AddrPortFrom(netip.IPv4Unspecified(), stampfmt.Port),
			netip.AddrPortFrom(netip.IPv6Unspecified(), stampfmt.Port),
		}
	}
	option.Default(o.given(RateLimitKey), &o.RatePackets, DefaultRate)
	option.Default(o.given(burstKey), &o.RateBurst, max(1, o.RatePackets/burstPart))
	option.Default(o.given("max_sessions"), &o.MaxSessions, DefaultMaxSessions)
	option.Default(false, &o.MemoryLimit, memlimit.Process())
	option.Default(o.given("session_expiry"), &o.Expiry, defaultExpiry)
	option.Default(false, &o.LossWait, seqwin.DefaultWait)
	option.Default(false, &o.MaxRequestBytes, MaxPacketBytes)
	option.Default(false, &o.ReceiveBufferBytes, memlimit.Buffer(receiveBufferBytes))
	if err := o.check(); err != nil {
		return err
	}
	if o.MemoryLimit > 0 {
		o.MaxSessions = min(o.MaxSessions, max(sessionsWithin(o.MemoryLimit), len(o.Listen)))
	}
	option.Default(false, &o.NewSessions, max(1, o.MaxSessions/newPart))
	return nil
}

// leastRequest is the length of the shortest request that gets a reply, in bytes.
func (o *Options) leastRequest() int {
	if o.ShortRequests {
		return stampfmt.UnpaddedSenderBytes
	}
	return stampfmt.MinSenderBytes
}

// Check returns all errors: of configuration keys (*option.Error), and others.
func (o Options) Check() error { return o.complete() }

func (o *Options) check() error {
	errs := []error{
		option.Check(o),
		option.Missing(o.RequireKey && len(o.Keys) == 0, "key_file", "%s needs it", option.Key("require_key")),
		option.Missing(o.ShortRequests && len(o.Allow) == 0, "allow", "%s needs it", option.Key("short_requests")),
	}
	if o.given(RateLimitKey) {
		errs = append(errs, option.Between(RateLimitKey, o.RatePackets, minRate, maxRate))
	}
	if o.given(burstKey) {
		errs = append(errs, option.Between(burstKey, o.RateBurst, minRate, maxRate))
	}
	return errors.Join(errs...)
}

// Memory of sessions, in bytes: of one whose sender has a Receipt, all indexes included, and the growth of its window
// if all windows grow equally.
const (
	sessionBytes = 3 << 10
	growthBytes  = 1 << 10
	// minGrowth lets a few windows of a small table grow to their full size.
	minGrowth = 4 << 20
)

// memoryShare is the divisor of the memory limit that sessions may use: the garbage collector may retain the same
// amount again, and the agent needs memory for other work.
const memoryShare = 4

// minSessions is the minimum number of sessions, whatever the memory limit.
const minSessions = 256

// sessionsWithin returns how many sessions a process with this memory limit may have.
func sessionsWithin(bytes int64) int {
	return int(max(min(bytes/memoryShare/(sessionBytes+growthBytes), math.MaxInt32), minSessions))
}
