package capacity

import (
	"fmt"
	"time"
)

// paced leaves out the begin of a train that the sender's pauses have spread, and looks whether its pace
// has a share in too much of it.
//
// As long as packets wait before the slowest link, it sends one after the other, and
// when they left the sender makes no difference, whatever its gaps. That ends with a packet
// k that leaves after the link has sent all k packets before it: it finds the link idle, and
// that idle time is in the dispersion. Such a packet meets an idle link as the first one of a
// train does: what follows is a train of its own, and is looked at again, without one idle time
// in its mean gap.
//
// Where each packet has left at about the time when the link was ready for it, nothing
// is believed, even if it was a little earlier: there is then hardly a packet that has waited,
// and a link that is as fast as the sender looks like one that is faster.
func (v *Verdict) paced(packets []Packet) bool {
	left := packets
	for k := v.idleBefore(left); k > 0; k = v.idleBefore(left) {
		left = left[k:]
		v.measure(left)
	}
	v.Skipped = len(packets) - len(left)
	late := 0
	for k := range left {
		if k > 0 && float64(left[k].Sent.Sub(left[0].Sent)) >= pace*float64(k)*float64(v.MeanGap) {
			late++
		}
	}
	if v.Skipped <= len(packets)/4 && 2*late <= len(left)-1 {
		return true
	}
	v.Result = SenderPace
	v.Evidence = fmt.Sprintf("the link had sent the first %d of %d packets when the next left the sender, and %d of the rest cannot have waited long",
		v.Skipped, len(packets), late)
	return false
}

// idleBefore is the first packet that left the sender after the link had sent all packets
// before it; 0: there is none.
//
// What the link needs for a packet is the mean of the receiver's gaps, but without that just
// before the packet in question: if the link was idle then, the idle time is in that gap. Other idle
// times are in the mean, each in equal parts, and make the link look slower; so an idle
// time that is found is a true one but for the stamps' errors, and the shortest of several
// may not be found before the others are left out.
func (v *Verdict) idleBefore(packets []Packet) int {
	others := len(packets) - 2 // of a pair, none
	for k := 1; k < len(packets) && others > 0; k++ {
		gap := packets[k].Arrived.Sub(packets[k-1].Arrived)
		service := time.Duration(k) * (v.Dispersion - gap) / time.Duration(others)
		if packets[k].Sent.Sub(packets[0].Sent) > service+2*TypicalStampError {
			return k
		}
	}
	return 0
}
