package reflector

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/tstamp"
)

// batchPackets is how many packets are answered in one go. More would not save
// system calls that matter, but make the first answer wait for the last.
const batchPackets = 64

// conn is what a socket needs of tstamp.Conn.
type conn interface {
	Receive(b *tstamp.Batch) error
	Send(out []tstamp.Out) (sent int, err error)
	LocalAddr() netip.AddrPort
	Stats() tstamp.Stats
	Close() error
}

// socket answers what arrives at one address. One goroutine runs it.
type socket struct {
	conn  conn
	shard *shard
	clock clock.Monitor
	since func() time.Duration // monotonic

	batch   *tstamp.Batch
	answers [batchPackets]answer
	results [batchPackets]Result // of the answers, in the order of out
	out     []tstamp.Out
}

func newSocket(c conn, s *shard, m clock.Monitor, since func() time.Duration, packetBytes int) *socket {
	return &socket{
		conn: c, shard: s, clock: m, since: since,
		batch: tstamp.NewBatch(batchPackets, packetBytes),
		out:   make([]tstamp.Out, 0, batchPackets),
	}
}

// serve answers until the socket is closed, which is no error.
func (s *socket) serve() error {
	for {
		err := s.conn.Receive(s.batch)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("reflector: %v: %w", s.conn.LocalAddr(), err)
		}
		s.work(s.since())
		if len(s.out) > 0 {
			s.send()
		}
	}
}

// work turns the batch into s.out.
func (s *socket) work(now time.Duration) {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	t := s.shard.table
	for _, tx := range s.batch.Tx {
		if known := t.byCookie(tx.Cookie); known != nil {
			known.stamped(uint32(tx.Cookie), tx.Stamp)
		}
	}
	s.out = s.out[:0]
	if len(s.batch.In) == 0 {
		return
	}
	s.shard.clock = viewClock(s.clock, instant.Now())
	t.expire(now, s.shard.expiry)
	for i := range s.batch.In {
		in := &s.batch.In[i]
		n := len(s.out)
		r := s.shard.handle(in, now, &s.answers[n])
		if !r.Answered() {
			s.shard.counts[r]++
			continue
		}
		a := &s.answers[n]
		s.results[n] = r
		s.out = append(s.out, tstamp.Out{
			Payload: a.payload, Peer: in.Peer, Source: in.Local, DSCP: a.dscp, TTL: s.shard.ttl, Cookie: a.cookie,
		})
	}
	// T3 last of all: whatever else is done to a packet comes before it.
	for i := range s.out {
		s.shard.seal(&s.answers[i], instant.Now())
	}
}

// send hands the answers to the kernel. One that it does not take is counted
// and forgotten: to wait for room would keep the other peers waiting.
func (s *socket) send() {
	var failed [batchPackets]syscall.Errno
	for from := 0; from < len(s.out); {
		n, err := s.conn.Send(s.out[from:])
		from += n
		if err == nil || from >= len(s.out) {
			break
		}
		errno := errnoOf(err)
		failed[from] = errno
		from++
		if errno == syscall.EAGAIN || errno == syscall.ESHUTDOWN {
			for ; from < len(s.out); from++ {
				failed[from] = errno
			}
		}
	}
	s.account(&failed)
}

// errnoOf finds the cause of a failed send. A socket closed under way counts
// as shut down.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if errors.As(err, &errno) && errno != 0 {
		return errno
	}
	return syscall.ESHUTDOWN
}

// account counts the answers. Failed ones give their numbers back, the newest
// first.
func (s *socket) account(failed *[batchPackets]syscall.Errno) {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	for i := len(s.out) - 1; i >= 0; i-- {
		r := s.results[i]
		if failed[i] != 0 {
			r = SendFailed
			s.shard.sendErrors[failed[i]]++
			if a := &s.answers[i]; a.session != nil {
				a.session.takeBack(a.number)
			}
		}
		s.shard.counts[r]++
	}
}
