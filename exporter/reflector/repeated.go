package reflector

import (
	"time"

	"oneway.example/exporter/seqwin"
)

// An HMAC tells who made a question and not who sent it: it may have been recorded. A question that
// is no news to its session moves none of the numbers that tell losses.

// awaits reports whether the test packet with the sender's number seq has certainly not come so far.
func (s *session) awaits(seq uint32) bool {
	if s.window == nil {
		return s.ahead(seq)
	}
	return s.window.Awaits(seqwin.Extend(s.window.Counts().Next, seq))
}

// has reports whether that test packet has come, as far back as is remembered.
func (s *session) has(seq uint32) bool {
	if s.window == nil {
		return s.single && seq == s.first
	}
	return s.window.Seen(seqwin.Extend(s.window.Counts().Next, seq))
}

// newer reports whether stamp a, as it is on the wire, is of a later time than b.
func newer(a, b uint64) bool { return int64(a-b) > 0 }

// repeats reports whether q, if its HMAC is right, is what known has had before. A sender without a Run
// is another's, and may use its numbers again, in any order and with a clock that is behind: of its
// questions the newest alone is known.
func (q *question) repeats(known *session) bool {
	switch {
	case known == nil, !q.authenticated, q.query(), known.awaits(q.base.Seq):
		return false
	case q.tlvs.receipt != 0, known.key.run != 0:
		return true
	}
	return q.base.T1 == known.lastT1 && q.base.Seq == known.lastSeq
}

// query reports whether q is a query and no test packet.
func (q *question) query() bool { return q.tlvs.receipt != 0 && q.receipt.Query }

// repeated takes a copy, which is authentic. One of a packet that is remembered counts as such.
func (s *shard) repeated(q *question, known *session, now time.Duration) Result {
	if known.has(q.base.Seq) {
		s.table.arrive(known, q.base.Seq, now)
	}
	return Repeated
}

// note keeps the time of the newest question of s.
func (s *session) note(q *question, now time.Duration) {
	if newer(q.base.T1, s.lastT1) {
		s.lastT1, s.lastT1At = q.base.T1, now
	}
	if q.base.T1 == s.lastT1 {
		s.lastSeq = q.base.Seq
	}
}

// replayedBefore reports whether all that s has had before q took longer than its waiting time, and by
// so much longer than q: then it was opened by recorded questions. Once its sender has
// repeated its Epoch, or has asked for long, it is not.
func (q *question) replayedBefore(s *session, now time.Duration) bool {
	if !q.authenticated || s.tier >= seasoned || !q.ahead(s) {
		return false
	}
	// Both formats have seconds in the upper half. The step of a second is rounding.
	later := time.Duration(int32(q.base.T1>>32-s.lastT1>>32)-1) * time.Second
	return later-(now-s.lastT1At) > s.wait
}

// reopen makes s a session that begins now.
func (s *shard) reopen(old *session, q *question, now time.Duration) *session {
	key, src, dropsBefore, refused := old.key, old.src, old.dropsBefore, old.refused
	s.table.sources.hold(src)
	s.table.close(old)
	opened := s.table.open(key, src, now, s.lossWait)
	s.table.sources.release(src)
	opened.begin(q, now)
	opened.dropsBefore, opened.refused = dropsBefore, refused
	return opened
}

// begin notes the question that opens s.
func (s *session) begin(q *question, now time.Duration) {
	s.lastT1, s.lastT1At, s.lastSeq = q.base.T1, now, q.base.Seq
}
