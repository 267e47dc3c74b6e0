package reflector

import (
	"time"

	"oneway.example/exporter/seqwin"
)

// arrive counts the test packet with the sender's number seq.
func (t *table) arrive(s *session, seq uint32, now time.Duration) {
	s.received++
	if s.window == nil {
		if !s.single {
			s.single, s.first = true, seq
			return
		}
		t.begin(s, seq)
	}
	// Before Add: a packet that comes after its waiting time is late even if
	// nothing came in between.
	s.window.Expire(now, s.wait)
	s.window.Add(seqwin.Extend(s.window.Counts().Next, seq), now)
}

// retract counts as damaged what s has counted as received, since its sender's test
// packets turn out to have Receipts: where the first of them is damaged in just the
// octets that make its Receipt one, nothing else tells.
func (t *table) retract(s *session) {
	if s.received == 0 {
		return
	}
	s.corrupted += s.received
	s.received = 0
	start := uint64(s.first)
	if s.window == nil {
		s.window = t.takeWindow()
	} else {
		start = s.window.Counts().First
		s.window.Reset()
	}
	s.window.Charge(t.payer(s))
	s.window.Start(start)
}

// counts are those of the numbers of s, of which there has been one at the least.
func (s *session) counts() seqwin.Counts {
	if s.window != nil {
		return s.window.Counts()
	}
	n := uint64(s.first)
	return seqwin.Counts{First: n, Base: n + 1, Next: n + 1, Received: 1, Recent: [seqwin.RecentWords]uint64{1}}
}

// query brings the counts up to date for a query that says that the sender has
// sent the numbers below next and, with finish, has waited for them.
func (t *table) query(s *session, next uint32, finish bool, now time.Duration) {
	if s.window == nil {
		t.begin(s, next)
	}
	s.window.Expire(now, s.wait)
	if finish {
		s.window.Finish(seqwin.Extend(s.window.Counts().Next, next), now)
	}
}

// begin makes the window of s. It starts with the one packet that there has
// been, or else with number next.
func (t *table) begin(s *session, next uint32) {
	s.window = t.takeWindow()
	s.window.Charge(t.payer(s))
	if !s.single {
		s.window.Start(uint64(next))
		return
	}
	s.window.Start(uint64(s.first))
	s.window.Add(uint64(s.first), s.opened)
}

// ahead reports whether the sender's number seq is one that s has not come to
// yet. A copy of an old packet, or a replay, is not ahead.
func (s *session) ahead(seq uint32) bool {
	if s.window == nil {
		return !s.single || int32(seq-s.first) > 0
	}
	next := s.window.Counts().Next
	return seqwin.Extend(next, seq) >= next
}
