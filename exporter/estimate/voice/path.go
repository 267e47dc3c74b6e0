package voice

import (
	"fmt"
	"strings"
	"time"
)

// MinPackets is the least number of decided packets of a rated window: with fewer, one loss is more than 10 %.
const MinPackets = 10

// Path is the delay and loss of one direction of a path in one window.
type Path struct {
	// Delay is the window's smallest one-way delay (delay.Snapshot.Min), from trusted clocks. Playout buffers add
	// to it.
	Delay time.Duration
	// Decided, Lost and Bursts are those of loss.Window.
	Decided, Lost, Bursts uint64
}

// Assessment is the rating of one call over a path.
type Assessment struct {
	Rating
	// MouthToEar is packetization, look-ahead, network and playout buffer.
	MouthToEar time.Duration
	// Loss is the ratio of packets lost on the path or too late for the buffer to all, 0..1.
	Loss float64
	// BurstR is the burst ratio of these, at least 1.
	BurstR float64
}

// Assess rates a call in this direction with codec c and the result b of a playout buffer. Base holds all other
// parameters, usually Defaults(). Ok is false if the window decided fewer than MinPackets, or if nothing was
// received and so there is no delay.
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

// MostUnknown is the largest error of a known R that packets of unknown delay or outcome may cause: the width of a category of ITU-T
// G.109.
const MostUnknown = 10

// RError limits the error of R, which Assess computed as r, if the path's delay is known to within off, and of some packets
// neither the buffer nor the path knows whether they were played. R falls as the delay and the losses grow, so its values at both
// ends of these intervals enclose the true one. A delay is not negative.
func (p Path) RError(off time.Duration, unknown uint64, r float64, c Codec, b Buffered, base Parameters, m Model) float64 {
	least, most := p.RLimits(off, unknown, c, b, base, m)
	return max(most-r, r-least, 0)
}

// RLimits are the least and the most R that RError permits. Packets that neither the buffer nor the path knows can only raise R as far
// as they lower the share of the missed ones.
func (p Path) RLimits(off time.Duration, unknown uint64, c Codec, b Buffered, base Parameters, m Model) (least, most float64) {
	low, high, played, missed := p, p, b, b
	low.Delay, high.Delay = max(0, p.Delay-off), max(0, p.Delay+off)
	if unknown > 0 { // all were played, and the others missed one by one; or all were lost next to others
		bursts := p.Bursts + b.LateBursts
		played.Played, played.LateBursts, missed.LateBursts = b.Played+unknown, 0, 0
		low.Decided, low.Bursts = p.Lost+played.Played+b.Late, bursts+unknown
		high.Lost, high.Bursts = p.Lost+unknown, max(1, bursts-min(bursts, unknown))
		high.Decided = high.Lost + b.Played + b.Late
	}
	best, _ := low.Assess(c, played, base, m)
	worst, _ := high.Assess(c, missed, base, m)
	return worst.R, best.R
}

// combine joins the path's losses and the buffer's into one ratio and one BurstR. Late runs next to lost ones are
// counted separately, so BurstR may be too small, but not too large.
func (p Path) combine(b Buffered) (loss, burstR float64) {
	decided := float64(max(p.Decided, p.Lost))
	lost := float64(p.Lost)
	// Not every received packet has a timestamp for the buffer: the share of late ones represents all.
	scale := (decided - lost) / float64(b.Played+b.Late)
	missed := lost + scale*float64(b.Late)
	bursts := float64(p.Bursts) + scale*float64(b.LateBursts)
	loss = min(1, missed/decided)
	if missed == 0 || bursts == 0 {
		return loss, 1
	}
	// A few losses in a window are seldom adjacent, so BurstR would be below the 1 of random loss: an effect of the
	// small number.
	return loss, max(1, missed/bursts*(1-loss))
}

// Codec is a narrowband speech codec and how it is packed.
type Codec struct {
	// Name is the name in the configuration and in the label `codec`.
	Name string
	// Ie is the equipment impairment without loss, Bpl the robustness against
	// packet loss, in the sense of G.107 clause 7.5.
	Ie, Bpl float64
	// Frame is the length of one frame, FramesPerPacket the number of frames of a packet, Lookahead the further
	// delay of the encoder (or of the loss concealment).
	Frame           time.Duration
	FramesPerPacket int
	Lookahead       time.Duration
	// Source is the source of Ie and Bpl.
	Source string
}

// Delay is the codec's and packets' part of the mouth-to-ear delay: the length of a packet and the look-ahead,
// without computing time.
func (c Codec) Delay() time.Duration {
	return c.Frame*time.Duration(c.FramesPerPacket) + c.Lookahead
}

const (
	g113 = "ITU-T G.113 Appendix I"
	woo  = "Woo 2010, section 7.1"
)

// Codecs lists all known codecs. Each call returns a new slice.
//
// Ie and Bpl of the G.113 entries are the planning values of its Appendix I. They were not taken from its text but
// confirmed in two ways: other public implementations have the same numbers, and G.107's formula with them
// reproduces the older edition's table of Ie against random loss (1999) within 3 units of R for G.711 with
// concealment, G.729A+VAD, G.723.1+VAD and GSM-EFR at all tabulated losses (a test has the table). G.711 without
// concealment (4.3) is up to 7 units below that table, whose column the next edition withdrew as too pessimistic;
// 4.3 is also the default of G.107 itself.
//
// G.113's values were measured with 10 ms packets for G.711, 20 ms for G.729A and GSM-EFR, 30 ms for G.723.1. Here
// G.711 uses 20 ms packets, the default of RFC 3551. Frames and look-ahead are those of the codecs'
// Recommendations; the 3.75 ms of G.711-PLC are the concealment's (G.711 Appendix I).
func Codecs() []Codec {
	const ms = time.Millisecond
	return []Codec{
		{Name: "G.711", Ie: 0, Bpl: 4.3, Frame: 10 * ms, FramesPerPacket: 2, Source: g113},
		{Name: "G.711-PLC", Ie: 0, Bpl: 25.1, Frame: 10 * ms, FramesPerPacket: 2, Lookahead: 3750 * time.Microsecond, Source: g113},
		{Name: "G.729", Ie: 10, Bpl: 18, Frame: 10 * ms, FramesPerPacket: 2, Lookahead: 5 * ms, Source: woo},
		{Name: "G.729A-VAD", Ie: 11, Bpl: 19, Frame: 10 * ms, FramesPerPacket: 2, Lookahead: 5 * ms, Source: g113},
		{Name: "G.723.1", Ie: 15, Bpl: 16.1, Frame: 30 * ms, FramesPerPacket: 1, Lookahead: 7500 * time.Microsecond, Source: g113 + " (6.3 kbit/s, VAD)"},
		{Name: "GSM-EFR", Ie: 5, Bpl: 10, Frame: 20 * ms, FramesPerPacket: 1, Source: g113},
	}
}

// CodecByName returns a codec; the name is case-insensitive. The error lists the valid names.
func CodecByName(name string) (Codec, error) {
	for _, c := range Codecs() {
		if strings.EqualFold(c.Name, name) {
			return c, nil
		}
	}
	return Codec{}, fmt.Errorf("voice: unknown codec %q; it must be one of %s", name, strings.Join(CodecNames(), ", "))
}

// CodecNames are the names of all codecs.
func CodecNames() (names []string) {
	for _, c := range Codecs() {
		names = append(names, c.Name)
	}
	return names
}
