package train

import (
	"math/rand/v2"
	"slices"
	"time"

	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// slots is up to how much later than its interval a train begins, at random: a link that sends
// in slots of up to so much would otherwise meet each train at the same point of one.
const slots = 20 * time.Millisecond

// segments are a number of trains as a stream: each a burst of so many packets back to back.
func segments(payload, trains, packets int, interval time.Duration, rng *rand.Rand) []stream.Segment {
	all := make([]stream.Segment, trains)
	for i := range all {
		pause := time.Duration(rng.Int64N(int64(slots)))
		all[i] = stream.Segment{Pause: pause, PayloadBytes: payload, Interval: interval, Burst: packets, Bursts: 1}
	}
	return all
}

// untilLoss is what comes before a train's first loss: what a queue or a policer let pass.
func untilLoss(t capacity.Train) capacity.Train {
	if i := slices.IndexFunc(t.Packets, func(p capacity.Packet) bool { return p.Lost }); i >= 0 {
		t.Packets = t.Packets[:i]
	}
	return t
}

// trainsOf divides a transfer of such a segment into its trains. Those that were not sent
// to their end, because the transfer was cut, are left out. ipBytes is what each packet
// moves in IP octets, those of its fragments included.
func trainsOf(t *heavy.Transfer, packets, ipBytes int) (all []capacity.Train) {
	for i := 0; i+packets <= len(t.Packets); i += packets {
		one := capacity.Train{IPBytes: ipBytes, Packets: make([]capacity.Packet, packets)}
		for j := range packets {
			one.Packets[j] = packetOf(&t.Packets[i+j])
		}
		all = append(all, one)
	}
	return all
}

// packetOf is one packet for the estimator. One that the sender's kernel refused is not
// lost: it has no stamps.
func packetOf(p *heavy.Packet) capacity.Packet {
	q := capacity.Packet{Sent: kernelStamp(p.Sent)}
	switch {
	case !p.Sent.Present():
	case p.Copies == 0:
		q.Lost = true
	default:
		q.Arrived = kernelStamp(p.Arrived)
		q.Duplicates = int(p.Copies) - 1
	}
	return q
}

// kernelStamp is a stamp's time if the kernel or the card took it: what user space reads
// beside its system calls says nothing of how far apart packets are.
func kernelStamp(s sample.Stamp) instant.Time {
	if s.Origin == sample.Kernel || s.Origin == sample.Hardware {
		return s.At
	}
	return 0
}

// Headers in octets: those of IP, which each fragment has again, and of UDP.
const (
	header4  = 20
	header6  = 40
	fragment = 8 // IPv6's extension header of a fragment (RFC 8200 section 4.5)
)

// onTheWire is what a packet of ipBytes moves over a path of that MTU, in IP octets: as
// much, or more if it is fragmented, since each fragment has a header of its own (RFC 791
// section 3.2; RFC 8200 section 4.5). mtu 0: not known.
func onTheWire(ipBytes, mtu int, ipv6 bool) int {
	if mtu == 0 || ipBytes <= mtu {
		return ipBytes
	}
	header, each := header4, header4
	if ipv6 {
		header, each = header6, header6+fragment
	}
	data := ipBytes - header
	room := (mtu - each) / 8 * 8 // all but the last carry a multiple of eight octets
	return data + (data+room-1)/room*each
}
