package stamp

import (
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/tstamp"
	wire "oneway.example/exporter/wire/stamp"
)

// overdue says in which directions a packet took longer than the waiting time, for certain,
// whose round trip did: so a clock that is wrong makes no loss. Where the clocks are not
// trusted, or too far apart, that cannot be told, and no direction is blamed.
func (s *session) overdue(a *answer, f *flight) (lost [2]bool) {
	p := &a.packet
	least, ok := s.surely(a.clock.bound, p.Far, a.shared)
	if !ok {
		return lost
	}
	t1 := f.user
	if p.T1.Present() {
		t1 = p.T1.At
	}
	lost[sample.Forward] = p.T2.Present() && p.T2.At.Sub(t1) > least
	lost[sample.Reverse] = p.T3.Present() && p.T4.At.Sub(p.T3.At) > least
	return lost
}

// surely is how long a delay between the clocks near and far must be measured for the true one
// to be beyond the waiting time; false if they are not trusted.
func (s *session) surely(near, far sample.Bound, shared bool) (least time.Duration, ok bool) {
	if shared && bound.SharedClock(near, far) {
		return s.opts.LossTimeout, true
	}
	clocks := bound.Clocks(near, far)
	return bound.Sum(s.opts.LossTimeout, clocks.Error), clocks.Reason == sample.OK
}

// farLost tells whether the far end itself has counted number seq as lost, because higher
// ones had come a waiting time before it. Of a number far below its last one it does not tell:
// then it had decided that number before, or it had not.
func (s *session) farLost(seq uint64) bool {
	c := &s.remote.counts
	if s.kind != farOurs || seq >= c.Base {
		return false
	}
	back := c.Base - 1 - seq
	if back >= uint64(64*s.remote.words) {
		return seq < s.remote.decided
	}
	return c.Recent[back/64]>>(back%64)&1 == 0
}

// forgotten takes the answer to a packet of which nothing is remembered. Our reflector has
// counted it as received, at a time that it tells; of several copies the first counts.
func (s *session) forgotten(seq uint64, r *reply, in *tstamp.In) {
	far := farBound(r)
	q := s.clock.Quality(instant.Now())
	t1, t2 := s.opts.format.Decode(r.packet.SenderT1, s.opts.TAIOffset, in.At), s.decode(r, r.packet.T2, in.At)
	least, trusted := s.surely(q.Bound, far, r.receipt.Clock == wire.ClockShared)
	if r.filled() && q.Steps == s.steps && trusted && seq >= s.fwd.lastOverdue && !t2.IsZero() && t2.Sub(t1) > least && !s.farLost(seq) {
		s.fwd.tooLate(seq)
	}
}
