package stamp

import (
	"oneway.example/exporter/bound"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/seqwin"
	"oneway.example/exporter/tstamp"
	wire "oneway.example/exporter/wire/stamp"
)

// overdue says in which directions a packet took longer than the waiting time, whose
// round trip did: so a clock that is wrong makes no loss. Where the clocks are not
// trusted that cannot be told, and no direction is blamed.
func (s *session) overdue(a *answer, f *flight) (lost [2]bool) {
	p := &a.packet
	trusted := bound.Clocks(a.clock.bound, p.Far).Reason == sample.OK
	if shared := a.shared && bound.SharedClock(a.clock.bound, p.Far); !trusted && !shared {
		return lost
	}
	t1 := f.user
	if p.T1.Present() {
		t1 = p.T1.At
	}
	lost[sample.Forward] = p.T2.Present() && p.T2.At.Sub(t1) > s.opts.LossTimeout
	lost[sample.Reverse] = p.T3.Present() && p.T4.At.Sub(p.T3.At) > s.opts.LossTimeout
	return lost
}

// farLost tells whether the far end itself has counted number seq as lost, because higher
// ones had come a waiting time before it. It does not tell of numbers far below its last.
func (s *session) farLost(seq uint64) bool {
	c := &s.remote.counts
	if s.kind != farOurs || seq >= c.Base || c.Base-1-seq >= seqwin.RecentBits {
		return false
	}
	back := c.Base - 1 - seq
	return back < uint64(64*s.remote.words) && c.Recent[back/64]>>(back%64)&1 == 0
}

// forgotten takes the answer to a packet of which nothing is remembered. Our reflector has
// counted it as received, at a time that it tells; of several copies the first counts.
func (s *session) forgotten(seq uint64, r *reply, in *tstamp.In) {
	far := farBound(r)
	q := s.clock.Quality(instant.Now())
	t1, t2 := s.opts.format.Decode(r.packet.SenderT1, s.opts.TAIOffset, in.At), s.decode(r, r.packet.T2, in.At)
	trusted := q.Steps == s.steps && bound.Clocks(q.Bound, far).Reason == sample.OK ||
		r.receipt.Clock == wire.ClockShared && bound.SharedClock(q.Bound, far)
	if r.filled() && trusted && seq >= s.fwd.lastOverdue && !t2.IsZero() && t2.Sub(t1) > s.opts.LossTimeout && !s.farLost(seq) {
		s.fwd.tooLate(seq)
	}
}
