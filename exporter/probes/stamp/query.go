package stamp

import (
	"slices"
	"time"

	"oneway.example/exporter/seqwin"
	"oneway.example/exporter/tstamp"
)

// querier decides when to ask our reflector for its counts in a packet that is
// not a test packet: to open the session before the first test packet, to tell
// the directions apart where test packets are too small for a Receipt, and to
// settle the end of a run.
type querier struct {
	tries    int
	next     time.Duration
	opened   bool // the far end has answered a query
	foreign  bool // it does not know our TLV
	finished bool // it has decided everything that was sent
	// finish asks for that decision; set once the loss timeout has passed.
	finish bool
	// begin is what a foreign reflector's answers are numbered from, after its
	// answer to the only query; 0: not known.
	begin uint64
	ended bool // the one query that a foreign reflector gets at the end is sent
	// asked are the T1 of the last queries, by which their answers are known
	// from a reflector that returns no TLVs, or none that it does not know.
	asked [queriesKept]uint64
	count int
	// heard is how many were asked when one of them was answered last.
	heard int
}

const (
	openTries     = 3
	queryInterval = 250 * time.Millisecond
	// queriesKept is how many of the last queries may be answered: those of a minute, the longest
	// waiting time.
	queriesKept = 64
	// leap is how far the number of a foreign reflector's last query is beyond
	// the test packets: an answer that repeats it has no number of its own. Of
	// other numbers that may be chance, after losses.
	leap = 1000
)

// due reports whether a query is to be sent now, and notes that it is.
func (q *querier) due(now time.Duration, needed bool, interval time.Duration) bool {
	switch {
	case now < q.next:
		return false
	case q.foreign:
		first := q.finish && !q.ended
		q.ended = q.ended || first
		return first
	case q.finish:
		if q.finished {
			return false
		}
		q.next = now + queryInterval
	case !q.opened && q.tries < openTries:
		q.tries++
		q.next = now + queryInterval
	case needed:
		q.next = now + max(interval, time.Second)
	default:
		return false
	}
	return true
}

// note keeps the T1 of a query that is being sent.
func (q *querier) note(t1 uint64) {
	q.asked[q.count%len(q.asked)] = t1
	q.count++
}

// knows reports whether t1 is that of a query, and of the last one.
func (q *querier) knows(t1 uint64) (known, last bool) {
	if q.count == 0 {
		return false, false
	}
	return slices.Contains(q.asked[:min(q.count, len(q.asked))], t1), q.asked[(q.count-1)%len(q.asked)] == t1
}

// answered notes the answer to a query.
func (q *querier) answered(finish bool) {
	q.opened = true
	q.finished = q.finished || finish
}

// foreignQuery takes the answer of a reflector to which a query is a test
// packet. If it numbers its answers, the numbers of those to test packets lie
// between the answers to the first query and to the last. The caller holds s.mu.
func (s *session) foreignQuery(r *reply, now time.Duration) {
	if s.kind == farOurs {
		s.discarded[discardBadReceipt]++ // ours fills it in
		return
	}
	q := &s.query
	_, last := q.knows(r.packet.SenderT1)
	switch n := seqwin.Extend(s.reverse.Counts().Next, r.packet.Seq); {
	case !q.foreign && q.tries == 1 && !s.reverseOn:
		q.begin = n + 1
	case q.ended && last:
		q.finished = true
		if r.packet.Seq == r.packet.SenderSeq {
			break // no number of its own
		}
		s.kind = farStateful
		if s.order.fits(n, s.questions()) {
			s.reverse.Finish(n, now)
			s.countReverse()
		}
	}
	q.foreign = true
}

// ask sends a query if one is due. The caller holds s.mu.
func (s *session) ask(now time.Duration) {
	needed := !s.layout.receipt && s.kind != farStateful && s.kind != farStateless
	if !s.query.due(now, needed, s.opts.Interval) {
		return
	}
	out := tstamp.Out{Payload: s.writeQuery(s.query.finish), Cookie: uint64(s.ssid)<<sequenceBits | queryCookie}
	s.address(&out)
	if err := s.hub.sendNow(out); err != nil {
		s.peerError = err
	}
}
