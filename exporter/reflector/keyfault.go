package reflector

import (
	"cmp"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
)

// KeyFaultReason is why a request cannot be authenticated.
type KeyFaultReason uint8

// The reasons.
const (
	// OtherKey: no key of the reflector verifies it. A request corrupted on the path looks the same.
	OtherKey KeyFaultReason = iota
	// KeyMissing: it is not authenticated, and the reflector requires a key.
	KeyMissing
	// NoKeyHere: it is authenticated, and the reflector has no key.
	NoKeyHere
)

// String is the reason, of the sender, in words.
func (r KeyFaultReason) String() string {
	return [...]string{"it has another key", "it has no key", "it has a key and this reflector has none"}[r]
}

// KeyFault is a source whose requests cannot be authenticated.
type KeyFault struct {
	Source  netip.Addr
	Reason  KeyFaultReason // of the last one
	Packets uint64         // within KeyFaultWindow
	// Ago is the time since the last one.
	Ago time.Duration
}

// KeyFaults are the requests within KeyFaultWindow that cannot be authenticated.
type KeyFaults struct {
	// Sources have sent at least three each, which damage on the path seldom causes; the largest number first.
	Sources []KeyFault
	// Others is how many are of sources that the list of each socket has no space for, or of fewer than three.
	Others uint64
}

// Packets is how many there are.
func (k KeyFaults) Packets() uint64 {
	n := k.Others
	for _, s := range k.Sources {
		n += s.Packets
	}
	return n
}

const (
	// keyFaultMinutes is the length of the list's memory.
	keyFaultMinutes = 5
	// KeyFaultWindow is the time that KeyFaults is about.
	KeyFaultWindow = keyFaultMinutes * time.Minute
	// maxKeyFaults is the number of sources that a socket remembers, minKeyFaults the number of packets at which one is listed.
	maxKeyFaults = 16
	minKeyFaults = 3
)

// recent counts events of the last minutes, by minute.
type recent struct {
	counts [keyFaultMinutes]uint64
	minute int64 // of the last event
}

// add counts an event at now, if any, and forgets old ones.
func (r *recent) add(now time.Duration, n uint64) {
	minute := int64(now / time.Minute)
	for m := max(r.minute+1, minute-keyFaultMinutes+1); m <= minute; m++ {
		r.counts[m%keyFaultMinutes] = 0
	}
	r.minute = minute
	r.counts[minute%keyFaultMinutes] += n
}

func (r *recent) sum(now time.Duration) (n uint64) {
	r.add(now, 0)
	for _, c := range r.counts {
		n += c
	}
	return n
}

// keyFaults is the bounded list of one socket. A source with few packets gives way to a new one, so that packets with random
// source addresses do not hide a sender that has the wrong key.
type keyFaults struct {
	sources [maxKeyFaults]keyFault
	others  recent
}

type keyFault struct {
	source netip.Addr // the zero Addr: unused
	reason KeyFaultReason
	recent recent
	last   time.Duration
}

func (k *keyFaults) add(from netip.Addr, why KeyFaultReason, now time.Duration) {
	from = from.Unmap()
	i := slices.IndexFunc(k.sources[:], func(f keyFault) bool { return f.source == from })
	if i < 0 {
		for j := range k.sources {
			f := &k.sources[j]
			if f.recent.sum(now) < minKeyFaults && (i < 0 || f.last < k.sources[i].last) {
				i = j
			}
		}
		if i < 0 {
			k.others.add(now, 1)
			return
		}
		k.others.add(now, k.sources[i].recent.sum(now))
		k.sources[i] = keyFault{source: from}
	}
	f := &k.sources[i]
	f.reason, f.last = why, now
	f.recent.add(now, 1)
}

// list adds the faults to all.
func (k *keyFaults) list(all *KeyFaults, now time.Duration) {
	all.Others += k.others.sum(now)
	for i := range k.sources {
		f := &k.sources[i]
		if n := f.recent.sum(now); n >= minKeyFaults {
			all.Sources = append(all.Sources, KeyFault{Source: f.source, Reason: f.reason, Packets: n, Ago: now - f.last})
		} else {
			all.Others += n
		}
	}
	slices.SortFunc(all.Sources, func(a, b KeyFault) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), a.Source.Compare(b.Source))
	})
}

// reject turns a request that cannot be authenticated into a rejection, within the limits: see decision 17.
func (s *shard) reject(in *tstamp.In, q *request, now time.Duration, a *pendingReply) {
	if s.options.NoRejections {
		return
	}
	src := s.table.sources.get(in.Peer.Addr(), now)
	if !src.rejections.open(s.rejections, now) || !s.rejecting.take(s.allRejections, now) {
		return
	}
	src.rejections.take(s.rejections, now)
	b := in.Payload
	*a = pendingReply{payload: b, sealed: true}
	base, authenticated := q.base, stampfmt.InAuthenticatedFormat(b)
	if !authenticated {
		base, _ = stampfmt.ParseSender(b) // it is long enough
	}
	format := base.Error.Format()
	stampfmt.PutRejection(b, stampfmt.ReflectorPacket{
		Seq: base.Seq, SSID: base.SSID, SenderSeq: base.Seq, SenderT1: base.T1, SenderError: base.Error,
		T3: format.Encode(in.At, tai), Error: timefmt.MakeErrorEstimate(math.MaxInt64, false, format),
	})
	if authenticated {
		(&filler{q: q, a: a}).flagUnverified()
	} else {
		clear(b[stampfmt.AuthenticatedBytes:])
	}
}

// keyFaultLog logs the beginning and the end of the faults of each source: at most 16 begin at once, and then one a minute,
// since spoofed packets must not fill the log. The status has all sources.
type keyFaultLog struct {
	logged map[netip.Addr]bool // listed sources, and whether the beginning was logged
	lines  bucket
}

func (l *keyFaultLog) check(now []KeyFault, at time.Duration, log *slog.Logger) {
	if len(now) == 0 && len(l.logged) == 0 {
		return
	}
	listed := map[netip.Addr]bool{}
	for _, f := range now {
		logged, known := l.logged[f.Source]
		if !known && l.lines.take(limit{interval: time.Minute, tolerance: (maxKeyFaults - 1) * time.Minute}, at) {
			logged = true
			log.Warn("Test packets of a source cannot be authenticated; compare key_file at both ends",
				"source", f.Source.String(), "reason", f.Reason.String(), "packets", f.Packets)
		}
		listed[f.Source] = logged
	}
	for source, logged := range l.logged {
		if _, still := listed[source]; logged && !still {
			log.Info("All test packets of the source can be authenticated, or it has ended", "source", source.String(), "for_seconds", KeyFaultWindow.Seconds())
		}
	}
	l.logged = listed
}
