package reflector

import (
	"context"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"oneway.example/exporter/metric"
)

// Result is what became of one packet that reached the reflector. Each packet
// has exactly one.
type Result uint8

// The results. The first four mean that there was a reply.
const (
	// Answered: a test packet, answered and counted.
	Answered Result = iota
	// AnsweredStatsQuery: a query of our own sender, answered and not counted.
	AnsweredStatsQuery
	// AnsweredMalformed: answered; a TLV was malformed (M flag).
	AnsweredMalformed
	// AnsweredUnverified: answered; the TLVs failed verification (I flag).
	AnsweredUnverified
	// SendFailed: the kernel did not take the reply.
	SendFailed
	// Short: fewer bytes than a request has: 41, or 112 if a key is required.
	Short
	// Oversized: larger than MaxPacketBytes.
	Oversized
	// Corrupted: the Receipt's CRC does not fit, or a packet of a session that
	// has Receipts came without one, or with TLVs that fail their HMAC.
	Corrupted
	// BadHMAC: authenticated by its looks, but by no key of ours.
	BadHMAC
	// HMACLimited: not verified, because too many of late were false.
	HMACLimited
	// Repeated: what a session has had before, or may have had: a copy of an authenticated
	// request, or a request that comes from another address and is no news.
	Repeated
	// NotAllowed: the source is not in the allow list.
	NotAllowed
	// BadAddress: source port 0, or an address that cannot be answered.
	BadAddress
	// Loop: comes from a reflector.
	Loop
	// RateLimited: the source sends too fast.
	RateLimited
	// SessionsFull: there is no space for another session.
	SessionsFull
	// NewSessionLimited: too many sessions have begun of late: of its source, its network
	// or in all.
	NewSessionLimited

	results = iota
)

// postponed: not a result; its session has had its replies of this round.
const postponed Result = 0xff

// Answered reports whether there was a reply.
func (r Result) Answered() bool { return r <= AnsweredUnverified }

// String is the value of the metric label `result`.
func (r Result) String() string {
	names := [results]string{
		Answered: "answered", AnsweredStatsQuery: "answered_statistics_query", AnsweredMalformed: "answered_malformed",
		AnsweredUnverified: "answered_unverified", SendFailed: "send_failed", Short: "short", Oversized: "oversized",
		Corrupted: "corrupted", BadHMAC: "bad_hmac", HMACLimited: "hmac_limited", Repeated: "repeated",
		NotAllowed: "not_allowed", BadAddress: "bad_address", Loop: "loop", RateLimited: "rate_limited",
		SessionsFull: "sessions_full", NewSessionLimited: "new_session_limited",
	}
	if r >= results {
		return "invalid"
	}
	return names[r]
}

// Stats is what a reflector has done since it started.
type Stats struct {
	// Running is how long it has been running; 0 before it started.
	Running time.Duration
	// Results counts packets by what became of them, indexed by Result.
	Results [results]uint64
	// Sessions is how many sessions are remembered now.
	Sessions int
	// SocketDrops counts requests that the kernel dropped for want of buffer.
	SocketDrops uint64
	// SendErrors counts the replies that the kernel did not take, by its
	// reason; their sum is Results[SendFailed].
	SendErrors map[syscall.Errno]uint64
	// Addrs are the addresses listened on.
	Addrs []netip.AddrPort
}

// Packets is how many packets reached the reflector.
func (s *Stats) Packets() (n uint64) {
	for _, c := range s.Results {
		n += c
	}
	return n
}

// Answered is how many of them were answered.
func (s *Stats) Answered() (n uint64) {
	for r, c := range s.Results {
		if Result(r).Answered() {
			n += c
		}
	}
	return n
}

// Stats may be called at any time, after Run too.
func (r *Reflector) Stats() Stats {
	s := Stats{Addrs: r.Addrs(), SendErrors: map[syscall.Errno]uint64{}}
	select {
	case <-r.started:
		s.Running = r.since()
	default:
	}
	for _, h := range r.shards {
		h.mu.Lock()
		for i, n := range h.counts {
			s.Results[i] += n
		}
		for errno, n := range h.sendErrors {
			s.SendErrors[errno] += n
		}
		s.Sessions += h.table.len()
		h.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.SocketDrops = r.dropped
	for _, one := range r.sockets {
		s.SocketDrops += one.conn.Stats().Dropped
	}
	return s
}

// socketLabel is the reflector's value of the label `socket`.
const socketLabel = "reflector"

// publish brings the metrics up to date.
func (s *Stats) publish(to *metric.Scope) {
	for r, n := range s.Results {
		to.Total(metric.ReflectorPackets, float64(n), Result(r).String())
	}
	to.Set(metric.ReflectorSessions, float64(s.Sessions))
	to.Total(metric.SocketDrops, float64(s.SocketDrops), socketLabel)
	for errno, n := range s.SendErrors {
		to.Total(metric.SendErrors, float64(n), socketLabel, errno.Error())
	}
}

// tidy forgets the sessions that are silent, with pauses for packets, and reports whether memory
// was given back to the runtime.
func (s *shard) tidy(now time.Duration) (shrunk bool) {
	for more := true; more; {
		s.mu.Lock()
		if more = s.table.expire(now, s.options.Expiry); !more {
			shrunk = s.table.shrink()
		}
		s.mu.Unlock()
	}
	return shrunk
}

// publish keeps the metrics fresh until ctx ends. It also forgets silent
// sessions: with no packet to answer nobody else would.
func (r *Reflector) publish(ctx context.Context) {
	scope := metric.NewScope(r.env.Sink)
	defer scope.Close()
	var refused unsent
	tick := time.NewTicker(publishInterval)
	defer tick.Stop()
	for {
		shrunk := false
		for _, h := range r.shards {
			shrunk = h.tidy(r.since()) || shrunk
		}
		if shrunk {
			debug.FreeOSMemory() // else the collector would run in some minutes, and not return all
		}
		now := r.Stats()
		scope.Update(func() { now.publish(scope) })
		refused.look(&now, r.since(), r.env.Log)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// unsent notices when this host begins to refuse answers (its firewall, its routes, a full queue),
// and when it has taken all for a while.
type unsent struct {
	failed uint64        // in all, at the last look
	last   time.Duration // the last look that found more
	told   bool
}

// calm is after which time without a refused answer a host is taken to send again. Unknown peers can have
// answers refused, by the addresses that they ask from: they get no more than two lines in it.
const calm = time.Minute

func (u *unsent) look(s *Stats, now time.Duration, log *slog.Logger) {
	failed := s.Results[SendFailed]
	more := failed - u.failed
	u.failed = failed
	switch {
	case more > 0:
		u.last = now
		if !u.told {
			u.told = true
			log.Warn("This host refuses to send answers", "answers", more, "errors", errorsOf(s))
		}
	case u.told && now-u.last > calm:
		u.told = false
		log.Info("This host sends all replies again", "refused", failed)
	}
}

// errorsOf are the kernel's words for what has been refused so far.
func errorsOf(s *Stats) (all []string) {
	for errno := range s.SendErrors {
		all = append(all, errno.Error())
	}
	slices.Sort(all)
	return all
}
