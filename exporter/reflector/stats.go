package reflector

import (
	"context"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/net/listen"
	"oneway.example/exporter/net/tstamp"
)

// Result is the outcome of one packet that reached the reflector. Each packet has exactly one.
type Result uint8

// The results. With the first five there is a reply.
const (
	// Answered: a test packet, reflected and counted.
	Answered Result = iota
	// AnsweredStatsQuery: a statistics query, with a reply and not counted.
	AnsweredStatsQuery
	// AnsweredMalformed: with a reply; a TLV was malformed (M flag).
	AnsweredMalformed
	// AnsweredUnverified: with a reply; the TLVs failed verification (I flag).
	AnsweredUnverified
	// AnsweredWithoutKey: with a reply; the request is in the format of authenticated mode, and the reflector has no key, so
	// that its sender discards the reply.
	AnsweredWithoutKey
	// SendFailed: the kernel refused the reply.
	SendFailed
	// Short: shorter than a request: 41 bytes, 14 with Options.ShortRequests, or 112 if a key is required.
	Short
	// Oversized: larger than Options.MaxRequestBytes.
	Oversized
	// Corrupted: the Receipt's CRC does not match, or a packet of a session that has Receipts had none, or TLVs that
	// fail their HMAC.
	Corrupted
	// BadHMAC: authenticated by its format, but verified by no key. Some get a rejection, which is no reply.
	BadHMAC
	// HMACLimited: not verified, because of too many invalid HMACs recently.
	HMACLimited
	// Repeated: received in its session before, or possibly: a copy of an authenticated request, or a request from
	// another address that is not new.
	Repeated
	// NotAllowed: the source is not in the allow list.
	NotAllowed
	// BadAddress: source port 0, or an address that cannot get a reply.
	BadAddress
	// Loop: from a reflector.
	Loop
	// RateLimited: the source exceeds its rate, or the socket has sent Options.MaxReplyBytes.
	RateLimited
	// SessionsFull: there is no space for another session.
	SessionsFull
	// NewSessionLimited: too many new sessions recently: of its source, its network or in total.
	NewSessionLimited

	results = iota
)

// postponed is not a result; the session has had its replies of this round.
const postponed Result = 0xff

// Answered reports whether there was a reply.
func (r Result) Answered() bool { return r <= AnsweredWithoutKey }

// String is the value of the metric label `result`.
func (r Result) String() string {
	names := [results]string{
		Answered: "reflected", AnsweredStatsQuery: "reflected_statistics_query", AnsweredMalformed: "reflected_malformed",
		AnsweredUnverified: "reflected_unverified", AnsweredWithoutKey: "reflected_without_key", SendFailed: "send_failed", Short: "short", Oversized: "oversized",
		Corrupted: "corrupted", BadHMAC: "bad_hmac", HMACLimited: "hmac_limited", Repeated: "repeated",
		NotAllowed: "not_allowed", BadAddress: "bad_address", Loop: "loop", RateLimited: "rate_limited",
		SessionsFull: "sessions_full", NewSessionLimited: "new_session_limited",
	}
	if r >= results {
		return "invalid"
	}
	return names[r]
}

// Stats are the reflector's counts since it started.
type Stats struct {
	// Running is the time since its start; 0 before.
	Running time.Duration
	// Results counts packets by outcome, indexed by Result.
	Results [results]uint64
	// Sessions is the current number of sessions.
	Sessions int
	// SocketDrops counts requests that the kernel dropped because the buffer was full.
	SocketDrops uint64
	// ReplyBytes is the payload of all replies.
	ReplyBytes uint64
	// KeyFaults are the requests of the last minutes whose sender has another key, or one of the ends has none.
	KeyFaults KeyFaults
	// SendErrors counts the replies that the kernel refused, by errno; their sum is Results[SendFailed].
	SendErrors map[syscall.Errno]uint64
	// Forbidden are the replies of KeyFaultWindow that this host did not let out (EPERM: errtext.Forbidden). Other errors of sending depend on the address
	// that a request came from, which unknown peers can choose.
	Forbidden uint64
	// Addrs are the listening addresses.
	Addrs []netip.AddrPort
	// NotListening are the addresses of Options.Listen without a socket, which are tried again.
	NotListening []listen.Failed
}

// Packets is how many packets reached the reflector.
func (s *Stats) Packets() (n uint64) {
	for _, c := range s.Results {
		n += c
	}
	return n
}

// Answered is how many packets got a reply.
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
	s := Stats{Addrs: r.Addrs(), NotListening: r.listened.Failed(), SendErrors: map[syscall.Errno]uint64{}}
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
		s.ReplyBytes += h.replyBytes
		s.Sessions += h.table.len()
		h.keyFaults.list(&s.KeyFaults, s.Running)
		s.Forbidden += h.forbidden.sum(s.Running)
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

// publish updates the metrics.
func (s *Stats) publish(to *metric.Scope) {
	for r, n := range s.Results {
		to.Total(metric.ReflectorPackets, float64(n), Result(r).String())
	}
	to.Set(metric.ReflectorSessions, float64(s.Sessions))
	to.Total(metric.SocketDrops, float64(s.SocketDrops), socketLabel)
	for reason, n := range tstamp.CountByReason(s.SendErrors) {
		to.Total(metric.SendErrors, float64(n), socketLabel, reason)
	}
}

// removeIdle removes idle sessions, with pauses for packets, and reports whether memory was returned to the runtime.
func (s *shard) removeIdle(now time.Duration) (shrunk bool) {
	for more := true; more; {
		s.mu.Lock()
		if more = s.table.expire(now, s.options.Expiry); !more {
			shrunk = s.table.shrink()
		}
		s.mu.Unlock()
	}
	return shrunk
}

// publish updates the metrics until ctx ends. It also removes idle sessions, which otherwise only a received packet
// does.
func (r *Reflector) publish(ctx context.Context) {
	scope := metric.NewScope(r.env.Sink)
	defer scope.Close()
	var refused unsent
	var faults keyFaultLog
	tick := time.NewTicker(publishInterval)
	defer tick.Stop()
	for {
		shrunk := false
		for _, h := range r.shards {
			shrunk = h.removeIdle(r.since()) || shrunk
		}
		if shrunk {
			debug.FreeOSMemory() // otherwise the collector would run some minutes later, and not return all
		}
		r.renew()
		now := r.Stats()
		scope.Update(func() { now.publish(scope) })
		refused.check(&now, r.since(), r.env.Log)
		faults.check(now.KeyFaults.Sources, r.since(), r.env.Log)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// unsent detects when this host starts to refuse replies (errtext.Refused), and when it has
// accepted all for a while.
type unsent struct {
	failed   uint64        // total at the last check
	last     time.Duration // the last check with an increase
	reported bool
}

// recoveryTime is how long no reply must be refused for the host to count as recovered. Unknown peers can cause refused
// replies by their source addresses: they cause at most two log lines in that time.
const recoveryTime = time.Minute

func (u *unsent) check(s *Stats, now time.Duration, log *slog.Logger) {
	failed := s.Results[SendFailed]
	more := failed - u.failed
	u.failed = failed
	switch {
	case more > 0:
		u.last = now
		if !u.reported {
			u.reported = true
			log.Warn("This host cannot send replies", "replies", more, "errors", errorsOf(s))
		}
	case u.reported && now-u.last > recoveryTime:
		u.reported = false
		log.Info("This host sends all replies again", "not_sent", failed)
	}
}

// errorsOf lists the errors of refused replies so far.
func errorsOf(s *Stats) (all []string) {
	for errno := range s.SendErrors {
		all = append(all, errno.Error())
	}
	slices.Sort(all)
	return all
}
