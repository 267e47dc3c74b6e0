package reflector

import (
	"hash/maphash"
	"net/netip"
	"time"
)

// limit is a rate: one event each interval, and burst of them at once. The zero
// value allows everything.
//
// It is the generic cell rate algorithm (ITU-T I.371 annex A) in place of a
// token count: the whole state of a source is one time, and nothing is rounded.
type limit struct {
	interval  time.Duration
	tolerance time.Duration
}

func newLimit(perSecond, burst int) limit {
	if perSecond <= 0 {
		return limit{}
	}
	interval := max(1, time.Second/time.Duration(perSecond))
	return limit{interval: interval, tolerance: interval * time.Duration(max(burst, 1)-1)}
}

// of is the limit of a source for the packets of a session, or of none: if it has shown that its
// address is no spoofed one, or is authenticated, as much again may come at once, so that what
// others send from its address cannot use up its rate.
func (l limit) of(s *session) limit {
	if s != nil && (s.tier == proven || s.key.auth == 1) {
		l.tolerance += l.tolerance + l.interval
	}
	return l
}

// bucket is when the next event would be due if they all came evenly spaced.
type bucket time.Duration

// open reports whether an event at now is within the limit, without taking it.
func (b *bucket) open(l limit, now time.Duration) bool {
	return time.Duration(*b)-now <= l.tolerance
}

// take takes one event at now, if it is within the limit.
func (b *bucket) take(l limit, now time.Duration) bool {
	if l.interval == 0 {
		return true
	}
	if !b.open(l, now) {
		return false
	}
	*b = bucket(max(time.Duration(*b), now) + l.interval)
	return true
}

// newcomerSlots is how many buckets there are for sources, and for networks. Two that meet in
// one share it.
const newcomerSlots = 1 << 12

// newcomers limits the sessions that begin: of one source (/32 or /64), of one network (/24 or
// /48) and in all. Its size does not depend on who asks.
type newcomers struct {
	seed maphash.Seed // by which nobody can aim at another's bucket

	perSource, perNetwork, inAll limit

	sources, networks [newcomerSlots]bucket
	all               bucket
}

// Shares of one source and of one network in the sessions that may begin, and for how many
// seconds' worth of them may begin at once.
const (
	sourceShare, networkShare = 4, 2
	newcomerBurst             = 4
	// fewestNewcomers keeps a small table open to a handful of senders that start at once.
	fewestNewcomers = 64
)

// newNewcomers lets one of so many sockets have its share of the sessions that may begin each
// second; no limit, if that is not positive.
func newNewcomers(perSecond, sockets int) *newcomers {
	n := &newcomers{seed: maphash.MakeSeed()}
	if perSecond > 0 {
		perSecond = max(perSecond/sockets, 1)
		share := func(k int) limit {
			rate := max(perSecond/k, fewestNewcomers)
			return newLimit(rate, newcomerBurst*rate)
		}
		n.perSource, n.perNetwork, n.inAll = share(sourceShare), share(networkShare), share(1)
	}
	return n
}

func (n *newcomers) buckets(a netip.Addr) (source, network *bucket) {
	key := sourceKey(a)
	source = &n.sources[maphash.Comparable(n.seed, key)%newcomerSlots]
	if a.Unmap().Is4() {
		key[15] = 0
	} else {
		key[6], key[7] = 0, 0
	}
	return source, &n.networks[maphash.Comparable(n.seed, key)%newcomerSlots]
}

// open reports whether a session of a may begin at now.
func (n *newcomers) open(a netip.Addr, now time.Duration) bool {
	if !n.all.open(n.inAll, now) {
		return false // the cheapest first: in a flood it is all that is done
	}
	source, network := n.buckets(a)
	return source.open(n.perSource, now) && network.open(n.perNetwork, now)
}

// take is open, and counts the session if it may begin.
func (n *newcomers) take(a netip.Addr, now time.Duration) bool {
	if !n.open(a, now) {
		return false
	}
	source, network := n.buckets(a)
	return n.all.take(n.inAll, now) && source.take(n.perSource, now) && network.take(n.perNetwork, now)
}

// dropsBefore is how far back, at least and at most twice that, the drops of a socket belong
// to a session that begins: its first packets may be among them.
const dropsBefore = 2 * time.Second

// dropCount is how many packets the kernel has dropped at a socket, or the shard has refused of
// those without a session, as of the batch, and as of dropsBefore ago.
type dropCount struct {
	total  uint64
	before [2]uint64 // the older first; the newer one as of turned
	turned time.Duration
}

// update takes the total.
func (d *dropCount) update(total uint64, now time.Duration) {
	if age := now - d.turned; age >= 2*dropsBefore {
		d.before, d.turned = [2]uint64{d.total, d.total}, now
	} else if age >= dropsBefore {
		d.before, d.turned = [2]uint64{d.before[1], d.total}, now
	}
	d.total = total
}
