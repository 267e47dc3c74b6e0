package stamp

import (
	"time"

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
}

const (
	openTries     = 3
	queryInterval = 250 * time.Millisecond
)

// due reports whether a query is to be sent now, and notes that it is.
func (q *querier) due(now time.Duration, needed bool, interval time.Duration) bool {
	switch {
	case q.foreign || now < q.next:
		return false
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

// answered notes the answer to a query.
func (q *querier) answered(finish bool) {
	q.opened = true
	q.finished = q.finished || finish
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
