package queue

import (
	"fmt"
	"math"
	"time"
)

const (
	// sharp is by how many packets, or by what share of the queue, the limit may be blurred.
	sharpPackets = 3
	sharpShare   = 0.1
	// refusals are what a queue that overflows makes of its losses at least.
	refusals = 0.3
	// regular is the variation of the times between losses below which they are no chance.
	regular = 0.55
	// pure is the share that is refused of what needs more than there is room for.
	pure = 0.6
	// edgeShare is by what share of the queue others' packets may move the edge of what is admitted.
	edgeShare = 0.03
	// shallow is how many packets wait at a policer at the most.
	shallow = 2
	// steadyDelay is by what share the delays vary of a queue that is limited by time.
	steadyDelay = 0.1
	// headShare is by what share more than at other losses waits behind the last one at a queue that
	// drops at its head, headLost the share of what exceeds the rate that it loses, at the least.
	headShare = 0.2
	headLost  = 0.7
	// strong is the share of what is admitted below which half of the losses are a queue
	// management's, whoever else is there.
	strong = 0.7
	// lossy is the share lost behind the queue from which on it is in doubt which packets filled it.
	lossy = 0.001
	// brief is a load of so few seconds that its rate's distribution is not known.
	brief = 5 * time.Second
	// movedShare is the share of the longest wait by which the empty path's delay may change.
	movedShare = 0.25
	// fewPackets are told by parts of packets.
	fewPackets = 8
	// mostWide is how many times the lower end of a size's interval the upper one may be.
	mostWide = 3
	// few losses tell nothing.
	few = 12
)

// judge says what the load met, and gives the values that this has.
func (r *run) judge(res *Result) {
	loaded := r.loaded()
	r.rate(res, loaded)
	if !res.Rate.OK {
		res.Evidence = "what arrived came all at once: nothing is known of the rate"
		return
	}
	best, low, high := r.search()
	packet, lost := float64(r.bytes), len(r.losses)
	share := 1 - float64(res.Received)/float64(res.Sent)
	others, _ := r.others(loaded, best.random)
	// A queue management leaves no gaps: what it drops takes no time of the link.
	gaps, known := r.others(loaded, 0)
	alone := known && gaps < leastOthers/3
	apart := res.Rate.Value * seconds(r.drift(r.length()))
	stretches := r.stretches()
	last := r.atHead(stretches)
	// What is lost behind the queue is missing in what is counted, more at one time than at another.
	behind := min(best.random, gaps) * best.least
	missing := behind + 2*packet*math.Sqrt(behind/packet)
	blur := max(sharpPackets*packet, sharpShare*best.least) + apart + missing
	switch {
	case lost > 0 && lost < few && best.least > fewPackets*packet && !r.growing():
		res.Evidence = fmt.Sprintf("cannot tell: %d of %d packets were lost, too few to say why, and up to %.0f octets waited", lost, len(r.load), best.least)
	case lost < few && r.fades > 0 && !r.growing():
		res.Evidence = fmt.Sprintf("cannot tell: all but %d of the lost packets were lost whatever waited, and up to %.0f octets waited", lost, best.least)
	case lost < few:
		res.State = NotFilled
		res.Evidence = fmt.Sprintf("%d of %d packets were lost: the link carried %.4g Mb/s, or its queue was growing to the end", lost, len(r.load), 8e-6*res.Offered)
	case r.moved(res.Rate.Value):
		res.Evidence = fmt.Sprintf("cannot tell: idle packets behind the load took %v more or less than those before it: the path or a clock has changed", r.base.moved.Round(time.Microsecond))
	case best.refused.Quantile(0.5) <= (shallow+1)*packet && seconds(r.longest(0.95))*res.Rate.Value <= 2*(shallow+1)*packet && r.variation() < regular:
		res.State = Policer
		res.Evidence = fmt.Sprintf("%.1f %% were lost, half of them with no more than %.0f packets waiting: what is beyond a rate is dropped and does not wait", 100*share, best.refused.Quantile(0.5)/packet-1)
	case r.timed(stretches):
		res.State = TimeLimited
		res.Evidence = "packets were dropped after one time, whatever waited: they are discarded by a timer"
	case last > (1+headShare)*best.refused.Quantile(0.95)+sharpPackets*packet:
		low, high = last, last
		best.random, best.upTo, best.tells = 0, 0, true
		res.State = Filled
		res.Evidence = fmt.Sprintf("behind the last loss %.0f octets waited, more than were admitted before: packets are dropped at the queue's head", last)
	case (best.excess < refusals+2/math.Sqrt(float64(lost)) && r.variation() > regular || lost < 3*few/2) && r.growing():
		res.State = NotFilled
		res.Evidence = fmt.Sprintf("%.2f %% were lost at random, whether much waited or little: the queue refused nothing", 100*share)
	case best.least <= (shallow+1)*packet && r.variation() > regular:
		res.State = NotFilled
		res.Evidence = fmt.Sprintf("%.2f %% were lost at random, and next to nothing waited: the link carried %.4g Mb/s", 100*share, 8e-6*res.Offered)
	case best.excess >= refusals && best.spread(packet) <= blur && best.refusedAbove(max(1.5*packet, edgeShare*best.least)+apart+missing) > pure && !r.scattered(&best):
		res.State = Filled
		res.Evidence = fmt.Sprintf("packets were refused where the queue had to hold more than %.0f to %.0f octets, and admitted below", low, high)
	case best.excess >= refusals && others > leastOthers:
		res.State = Filled
		res.Evidence = fmt.Sprintf("packets were refused where this test's took %.0f to %.0f octets of the queue", low, high)
	case !alone && best.refused.Quantile(0.5) > strong*best.least:
		res.Evidence = fmt.Sprintf("cannot tell: half of the packets that were lost needed more than %.0f octets of the queue, and others were admitted with %.0f: a queue management may have dropped them, or others' packets, a link whose rate moves or losses behind the queue make it look so", best.refused.Quantile(0.5), best.least)
	default:
		res.State = AQM
		res.Evidence = fmt.Sprintf("packets were dropped where the queue had to hold %.0f octets, and others admitted at %.0f", best.refused.Quantile(0.1), best.least)
	}
	if others > leastOthers && res.State == Filled {
		whose := "others have"
		if !best.tells {
			whose = "others, or losses behind the queue, have"
		}
		res.Evidence += fmt.Sprintf("; %s about %.0f %% of the link", whose, 100*others)
	}
	if r.fades > 0 {
		res.Evidence += fmt.Sprintf("; left out are %d packets that were lost in %d stretches, whatever waited", res.Sent-res.Received-lost, r.fades)
	}
	r.fill(res, &best, low, high, others)
}
