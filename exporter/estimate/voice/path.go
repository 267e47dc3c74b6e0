package voice

import "time"

// MinPackets is how many packets a window must have decided to be rated: with
// fewer, one loss is more than 10 %.
const MinPackets = 10

// Path is what one direction of a path did to packets in one window.
type Path struct {
	// Delay is the window's smallest one-way delay (delay.Snapshot.Min), from
	// trusted clocks. Playout buffers count from there.
	Delay time.Duration
	// Decided, Lost and Bursts are those of loss.Window.
	Decided, Lost, Bursts uint64
}

// Assessment is the rating of one call over a path.
type Assessment struct {
	Rating
	// MouthToEar is packetisation, look-ahead, network and playout buffer.
	MouthToEar time.Duration
	// Loss is the ratio of packets lost on the path or too late for the buffer
	// to all, 0..1.
	Loss float64
	// BurstR is the burst ratio of these, at least 1.
	BurstR float64
}

// Assess rates a call in this direction with codec c and a playout buffer that
// did b. Base holds all that is not measured, as a rule Defaults(). Ok is false if the window decided fewer than MinPackets, or
// if nothing was received and so there is no delay.
func (p Path) Assess(c Codec, b Buffered, base Parameters, m Model) (a Assessment, ok bool) {
	if p.Decided < MinPackets || b.Played+b.Late == 0 {
		return Assessment{}, false
	}
	a.MouthToEar = c.Delay() + p.Delay + b.Delay
	a.Loss, a.BurstR = p.combine(b)
	parameters := base.WithCodec(c).WithDelay(a.MouthToEar)
	parameters.Ppl, parameters.BurstR = 100*a.Loss, a.BurstR
	a.Rating = m.Rate(parameters)
	return a, true
}

// RError is how far R, which Assess has found to be r, may be off where the path's delay is
// only known to within off: R falls as the delay grows, so its values at both ends of that
// interval enclose the truth. A delay is not negative.
func (p Path) RError(off time.Duration, r float64, c Codec, b Buffered, base Parameters, m Model) float64 {
	low, high := p, p
	low.Delay, high.Delay = max(0, p.Delay-off), max(0, p.Delay+off)
	best, _ := low.Assess(c, b, base, m)
	worst, _ := high.Assess(c, b, base, m)
	return max(best.R-r, r-worst.R, 0)
}

// combine joins the path's losses and the buffer's into one ratio and one
// BurstR. Late runs that touch lost ones are counted apart, so BurstR is, if
// anything, too small.
func (p Path) combine(b Buffered) (loss, burstR float64) {
	decided := float64(max(p.Decided, p.Lost))
	lost := float64(p.Lost)
	// Not every received packet has a stamp for the buffer to judge: its share
	// of late ones stands for all.
	scale := (decided - lost) / float64(b.Played+b.Late)
	gone := lost + scale*float64(b.Late)
	bursts := float64(p.Bursts) + scale*float64(b.LateBursts)
	loss = min(1, gone/decided)
	if gone == 0 || bursts == 0 {
		return loss, 1
	}
	// A few losses in a window are seldom adjacent, which would make BurstR less
	// than the 1 of random loss: an effect of the small number, not of the path.
	return loss, max(1, gone/bursts*(1-loss))
}
