package stream

import (
	"errors"

	"oneway.example/exporter/sched"
	"oneway.example/exporter/tstamp"
	"oneway.example/exporter/wire/load"
)

// receiveBatch is how many packets one system call brings at the most. A packet may be
// as long as UDP allows, and what the kernel has coalesced as long as IP allows.
const (
	receiveBatch = 64
	receiveBytes = 1<<16 - 1
)

// receiver is what Run keeps from one batch to the next.
type receiver struct {
	endpoint *Endpoint
	batch    *tstamp.Batch
	// last is the session that was looked up last.
	last *Session
}

func newReceiver(e *Endpoint) *receiver {
	return &receiver{endpoint: e, batch: tstamp.NewBatch(receiveBatch, receiveBytes)}
}

// take hands out what a Receive has brought: transmit stamps first, which tell of what
// happened before.
func (r *receiver) take() {
	r.endpoint.stamped(r.batch.Tx)
	r.endpoint.unreachable(r.batch.Errors)
	if len(r.batch.In) == 0 {
		return
	}
	now := sched.Now()
	r.last = nil // it may have left
	for i := range r.batch.In {
		in := &r.batch.In[i]
		h, err := load.Parse(in.Payload)
		switch {
		case err == nil:
			r.packet(in, h, now)
		case !r.damaged(in, h, now):
			r.endpoint.ignored[ignoredFor(err)].Add(1)
		}
	}
}

func ignoredFor(err error) Ignored {
	switch {
	case errors.Is(err, load.ErrShort):
		return TooShort
	case errors.Is(err, load.ErrForeign):
		return Foreign
	}
	return DamagedHeader
}

// packet hands out one whose header is good.
func (r *receiver) packet(in *tstamp.In, h load.Header, now monotonic) {
	s := r.session(h.Session)
	if s == nil {
		r.endpoint.ignored[UnknownSession].Add(1)
		return
	}
	switch h.Type {
	case load.Data:
		why, ok := s.data(in, h, now)
		if !ok {
			r.endpoint.ignored[why].Add(1)
			return
		}
		r.endpoint.accepted.Add(1)
	case load.Hello:
		s.greet(in, h)
	case load.Challenge:
		s.challenged(in, h)
	case load.Report, load.Order:
		if why, ok := s.steered(in, h, now); !ok {
			r.endpoint.ignored[why].Add(1)
		}
	default:
		r.endpoint.ignored[UnknownType].Add(1)
	}
}

// session finds the session of a number; nil: nobody has joined it.
func (r *receiver) session(id uint64) *Session {
	if r.last != nil && r.last.id == id {
		return r.last
	}
	r.endpoint.mu.RLock()
	s := r.endpoint.sessions[id]
	r.endpoint.mu.RUnlock()
	if s != nil {
		r.last = s
	}
	return s
}

// damaged hands a packet with a damaged header to the session that it names, else, if it
// begins as ours do, to that of the address it came from, and reports whether there is one that
// receives. What shows neither is somebody else's.
func (r *receiver) damaged(in *tstamp.In, h load.Header, now monotonic) bool {
	id, magic := load.Claims(in.Payload)
	s := r.session(id)
	if s == nil && magic {
		r.endpoint.mu.RLock()
		s = r.endpoint.byPeer[in.Peer]
		r.endpoint.mu.RUnlock()
	}
	if s == nil || !s.badHeader(in, h, now) {
		return false
	}
	r.endpoint.accepted.Add(1)
	return true
}

// data gives a packet to the stream it belongs to.
func (s *Session) data(in *tstamp.In, h load.Header, now monotonic) (why Ignored, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.receptions {
		if r.transfer == h.Transfer {
			if uint64(h.Seq) >= uint64(r.planned) {
				return BeyondPlan, false
			}
			r.add(in, h, now)
			s.source, s.sourceAt = in.Peer, now
			return 0, true
		}
	}
	return UnknownTransfer, false
}

// badHeader gives a packet with a damaged header to the stream being received, if there
// is one alone or the header names it.
func (s *Session) badHeader(in *tstamp.In, h load.Header, now monotonic) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.receptions {
		if r.transfer == h.Transfer || len(s.receptions) == 1 {
			r.addBadHeader(in, h, now)
			return true
		}
	}
	return false
}
