package capacity

import (
	"fmt"
	"time"
)

// unpaced is the part of a train that the sender's pace has no share in; false: there is
// too little of it.
//
// As long as packets wait before the slowest link, it sends one after the other, and
// when they left the sender makes no difference, whatever its gaps. That ends with a packet
// k that leaves after the link has sent all k packets before it: it finds the link idle, and
// that idle time is in the dispersion. See idleBefore. Such a packet meets an idle link as
// the first one of a train does: what follows is a train of its own. So what is before it is
// left out, and the rest looked at again, without one idle time in its mean gap; up to a
// quarter of the train.
//
// Where each packet has left at about the time when the link was ready for it, nothing
// is believed, even if it was a little earlier: there is then hardly a packet that has waited,
// and a link that is as fast as the sender looks like one that is faster.
func (v *Verdict) unpaced(packets []Packet, stampError time.Duration) (left []Packet, ok bool) {
	left = packets
	for k := v.idleBefore(left, 2*stampError); k > 0; k = v.idleBefore(left, 2*stampError) {
		if v.Skipped+k > len(packets)/4 {
			v.Result = SenderPace
			v.Evidence = fmt.Sprintf("packet %d left the sender %v after packet %d, when the link had sent all before it",
				v.Skipped+k+1, left[k].Sent.Sub(left[0].Sent), v.Skipped+1)
			return nil, false
		}
		v.Skipped += k
		left = left[k:]
		v.measure(left)
	}
	if n := onTime(left, v.MeanGap); 2*n > len(left)-1 {
		v.Result = SenderPace
		v.Evidence = fmt.Sprintf("the sender took %v for the last %d packets, the receiver %v: %d of them cannot have waited long",
			v.SentDispersion, len(left), v.Dispersion, n)
		return nil, false
	}
	return left, true
}

// onTime counts the packets that left the sender no earlier than pace times the time that
// the link needs for those before, gap for each.
func onTime(packets []Packet, gap time.Duration) (n int) {
	for k := 1; k < len(packets); k++ {
		if float64(packets[k].Sent.Sub(packets[0].Sent)) >= pace*float64(k)*float64(gap) {
			n++
		}
	}
	return n
}

// idleBefore is the first packet that left the sender after the link had sent all packets
// before it; 0: there is none.
//
// What the link needs for a packet is the mean of the receiver's gaps, but without that just
// before the packet in question: if the link was idle then, the idle time is in that gap. Other idle
// times are in the mean, each in equal parts, and make the link look slower; so an idle
// time that is found is a true one but for the stamps' errors, and the shortest of several
// may not be found before the others are left out.
func (v *Verdict) idleBefore(packets []Packet, stampErrors time.Duration) int {
	others := len(packets) - 2
	if others < 1 {
		return 0 // a pair has no other gap
	}
	for k := 1; k < len(packets); k++ {
		gap := packets[k].Arrived.Sub(packets[k-1].Arrived)
		service := time.Duration(k) * (v.Dispersion - gap) / time.Duration(others)
		if packets[k].Sent.Sub(packets[0].Sent) > service+stampErrors {
			return k
		}
	}
	return 0
}
