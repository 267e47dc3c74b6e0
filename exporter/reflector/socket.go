package reflector

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
)

// batchPackets is the number of packets per batch. A larger batch would save few system calls, and delay the first
// reply.
const batchPackets = 64

// conn is the part of tstamp.Conn that a socket uses.
type conn interface {
	Receive(b *tstamp.Batch) error
	Send(out []tstamp.Out) (sent int, err error)
	Stamps(into []tstamp.TxStamp) []tstamp.TxStamp
	LocalAddr() netip.AddrPort
	Stats() tstamp.Stats
	Renew() (renewed bool, err error)
	Close() error
}

// socket replies to requests to one address. One goroutine runs it.
type socket struct {
	conn  conn
	shard *shard
	clock clock.Monitor
	since func() time.Duration // monotonic

	batch   *tstamp.Batch
	replies [batchPackets]pendingReply
	out     []tstamp.Out
	stamps  []tstamp.TxStamp
}

func newSocket(c conn, s *shard, m clock.Monitor, since func() time.Duration) *socket {
	return &socket{
		conn: c, shard: s, clock: m, since: since,
		batch: tstamp.NewBatch(batchPackets, MaxPacketBytes),
		out:   make([]tstamp.Out, 0, batchPackets), stamps: make([]tstamp.TxStamp, 0, 2*batchPackets),
	}
}

// serve replies until the socket is closed, which is not an error.
func (s *socket) serve() error {
	for {
		err := s.conn.Receive(s.batch)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("reflector: %v: %w", s.conn.LocalAddr(), err)
		}
		s.reply(s.since())
	}
}

// reply handles the batch. Replies of one session are sent in rounds, so that the transmit timestamps of one round are
// known in the next: a reply reports few earlier ones, and a host that was suspended finds many requests at once.
func (s *socket) reply(now time.Duration) {
	s.recordTX(s.batch.Tx)
	s.shard.perRound = 1
	if len(s.batch.In) > smallBatch {
		s.shard.perRound = stampfmt.ReportedReplies
	}
	for from := 0; from < len(s.batch.In); {
		from = s.work(now, from)
		if len(s.out) > 0 {
			s.send()
		}
		if from < len(s.batch.In) {
			s.stamps = s.conn.Stamps(s.stamps[:0])
			s.recordTX(s.stamps)
		}
	}
}

// smallBatch is the largest batch in which each reply reports the one before it. In larger batches, which only a flood
// of one session causes, each reports one of the three before it: fewer system calls.
const smallBatch = 16

// recordTX records transmit timestamps of replies.
func (s *socket) recordTX(stamps []tstamp.TxStamp) {
	if len(stamps) == 0 {
		return
	}
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	for _, tx := range stamps {
		if known := s.shard.table.byCookie(tx.Cookie); known != nil {
			known.stamped(uint32(tx.Cookie), tx.Stamp)
		}
	}
}

// work turns the batch, from a packet on, into s.out, and returns the first packet of the next round.
func (s *socket) work(now time.Duration, from int) (next int) {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	s.out = s.out[:0]
	defer func() { s.shard.round++ }()
	s.shard.clock = viewClock(s.clock, instant.Now())
	if from == 0 {
		// One system call per batch: the drops must be as recent as the counts in the same reply, so that a drop is not
		// attributed to the path.
		s.shard.drops.update(s.conn.Stats().Dropped, now)
		s.shard.refusals.update(s.shard.refused, now)
	}
	s.shard.table.expire(now, s.shard.options.Expiry)
	for next = from; next < len(s.batch.In); next++ {
		in, a := &s.batch.In[next], &s.replies[len(s.out)]
		a.payload = nil
		r := s.shard.handle(in, now, a)
		if r == postponed {
			break
		}
		if a.payload == nil {
			s.shard.counts[r]++
			continue
		}
		a.result = r
		s.shard.replyBytes += uint64(len(a.payload))
		s.out = append(s.out, tstamp.Out{
			Payload: a.payload, Peer: in.Peer, Source: in.Local, DSCP: in.DSCP, TTL: replyTTL, Cookie: a.cookie,
		})
	}
	// T3 is read last: all other work on the packets precedes it.
	for i := range s.out {
		s.shard.seal(&s.replies[i], instant.Now())
	}
	return next
}

// send passes the replies to the kernel. A refused one is counted and discarded: waiting for buffer space would delay
// the other peers.
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

// errnoOf returns the errno of a failed send. A socket closed meanwhile counts as shut down.
func errnoOf(err error) syscall.Errno {
	if errno, ok := errors.AsType[syscall.Errno](err); ok && errno != 0 {
		return errno
	}
	return syscall.ESHUTDOWN
}

// account counts the replies. Failed ones release their numbers, the newest first.
func (s *socket) account(failed *[batchPackets]syscall.Errno) {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	for i := len(s.out) - 1; i >= 0; i-- {
		a := &s.replies[i]
		if failed[i] != 0 && a.result.Answered() {
			a.result = SendFailed
			s.shard.sendErrors[failed[i]]++
			if failed[i] == syscall.EPERM {
				s.shard.forbidden.add(s.since(), 1)
			}
			if a.session != nil {
				a.session.releaseNumber(a.number)
			}
		}
		s.shard.counts[a.result]++
	}
}
