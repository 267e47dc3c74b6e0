package stamp

import (
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
)

// drops shares out what a socket has dropped (SO_RXQ_OVFL) among the losses that are decided
// after it: those are the host's, not the path's. Whose packet was dropped is not told.
// Where several sessions share a socket and the path loses packets too, no more losses are
// called the host's than the socket has dropped. It is safe for concurrent use.
type drops struct {
	mu     sync.Mutex
	seen   uint64
	any    bool
	recent []drop // that explain no loss yet, the oldest first
}

// drop is packets that a socket dropped at about the same time.
type drop struct {
	at time.Duration // monotonic, when it was noticed
	n  uint64
}

const (
	// dropsTogether is how far apart drops are told apart, dropsKept after what time they
	// explain nothing any more.
	dropsTogether = 100 * time.Millisecond
	dropsKept     = 10 * time.Minute
)

// update takes the socket's total. What it had dropped before the first update is not of
// this measurement. A total that falls is another socket's.
func (d *drops) update(total uint64, now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.any && total > d.seen {
		n := total - d.seen
		if last := len(d.recent) - 1; last >= 0 && now-d.recent[last].at < dropsTogether {
			d.recent[last].n += n
		} else {
			d.recent = append(d.recent, drop{now, n})
		}
	}
	d.seen, d.any = total, true
	d.recent = slices.DeleteFunc(d.recent, func(r drop) bool { return r.n == 0 || now-r.at > dropsKept })
}

// begin is called when another socket's total begins, at zero.
func (d *drops) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen, d.any, d.recent = 0, true, d.recent[:0]
}

// take returns how many of lost packets, decided now, the socket has dropped; keep is for how
// long after a drop a loss may be decided that it explains.
func (d *drops) take(lost uint64, now, keep time.Duration) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := uint64(0)
	for i := range d.recent {
		if r := &d.recent[i]; now-r.at <= keep {
			n := min(lost-found, r.n)
			found += n
			r.n -= n
		}
	}
	return found
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

// dropsTold tells whether it is known what the receiving host of a direction drops.
func (s *session) dropsTold(d *direction) bool { return d.dir == sample.Reverse || s.farHost }

// droppedThere says so of the forward losses and the far end's socket, which an answer now and
// then tells of, or a query's.
func (s *session) droppedThere(lost uint64) uint64 {
	return s.farDrops.take(lost, sched.Now(), s.explains()+max(8*s.opts.Interval, 2*time.Second))
}

// explains is for how long after a drop a loss may be decided that it explains.
func (s *session) explains() time.Duration { return s.opts.LossTimeout + 2*tickInterval }
