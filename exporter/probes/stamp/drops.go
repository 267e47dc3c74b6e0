package stamp

import (
	"sync"
	"time"

	"oneway.example/exporter/sched"
)

// drops shares out what a socket has dropped (SO_RXQ_OVFL) among the losses that are decided
// after it: those are the host's, not the path's. Whose packet was dropped is not told.
// Where several sessions share a socket and the path loses packets too, no more losses are
// called the host's than the socket has dropped. It is safe for concurrent use.
type drops struct {
	mu   sync.Mutex
	seen uint64
	any  bool
	left uint64
	last time.Duration // monotonic, of the last one
}

// update takes the socket's total. What it had dropped before the first update is not of
// this measurement. A total that falls is another socket's.
func (d *drops) update(total uint64, now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.any && total > d.seen {
		d.left += total - d.seen
		d.last = now
	}
	d.seen, d.any = total, true
}

// take returns how many of lost packets, decided now, the socket has dropped; keep is for how
// long after a drop a loss may be decided that it explains.
func (d *drops) take(lost uint64, now, keep time.Duration) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now-d.last > keep {
		d.left = 0
	}
	n := min(lost, d.left)
	d.left -= n
	return n
}

// droppedHere says how many of the reverse losses decided now this host's socket has
// dropped.
func (s *session) droppedHere(lost uint64) uint64 {
	if s.hub == nil || lost == 0 {
		return 0
	}
	now := sched.Now()
	s.hub.drops.update(s.hub.conn.Stats().Dropped, now)
	return s.hub.drops.take(lost, now, s.explains())
}

// droppedThere says so of the forward losses and the far end's socket.
func (s *session) droppedThere(lost uint64) uint64 {
	return s.farDrops.take(lost, sched.Now(), s.explains())
}

// explains is for how long after a drop a loss may be decided that it explains.
func (s *session) explains() time.Duration { return s.opts.LossTimeout + 2*tickInterval }
