package reflector

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
)

// faultyConn refuses some packets.
type faultyConn struct {
	refuse map[int]error // by position among all packets offered
	seen   int
	taken  [][]byte
	stamps []tstamp.TxStamp // not returned yet
}

func (c *faultyConn) Send(out []tstamp.Out) (int, error) {
	for i := range out {
		err := c.refuse[c.seen]
		c.seen++
		if err != nil {
			return i, err
		}
		c.taken = append(c.taken, out[i].Payload)
		c.stamps = append(c.stamps, tstamp.TxStamp{Cookie: out[i].Cookie, Stamp: sample.Stamp{At: instant.Now(), Origin: sample.Kernel}})
	}
	return len(out), nil
}

func (c *faultyConn) Stamps(into []tstamp.TxStamp) []tstamp.TxStamp {
	into = append(into, c.stamps...)
	c.stamps = c.stamps[:0]
	return into
}

func (*faultyConn) Receive(*tstamp.Batch) error { return net.ErrClosed }
func (*faultyConn) LocalAddr() netip.AddrPort   { return netip.AddrPort{} }
func (*faultyConn) Stats() tstamp.Stats         { return tstamp.Stats{} }
func (*faultyConn) Renew() (bool, error)        { return false, nil }
func (*faultyConn) Close() error                { return nil }

// batchOf adds requests numbered from first to the socket's batch.
func (s *socket) batchOf(k *poller, first uint32, n int) {
	s.batch.In, s.batch.Tx = s.batch.In[:0], s.batch.Tx[:0]
	for i := range n {
		s.batch.In = append(s.batch.In, tstamp.In{
			Payload: k.request(first+uint32(i), nil), Peer: k.peer, Local: netip.MustParseAddr("127.0.0.1"),
			Stamp: sample.Stamp{At: epochStart, Origin: sample.Kernel}, At: epochStart, TTL: 64,
		})
	}
}

func TestUnsentReplyIsCountedAndReleasesItsNumber(t *testing.T) {
	full := fmt.Errorf("tstamp: send: %w", syscall.EAGAIN)
	firewall := fmt.Errorf("tstamp: send: %w", syscall.EPERM)
	for _, c := range []struct {
		name         string
		refuse       map[int]error
		sent, failed uint64
		errno        syscall.Errno
		next         uint32 // the number of the next reply
	}{
		{"none refused", nil, 4, 0, 0, 4},
		{"the last refused", map[int]error{3: firewall}, 3, 1, syscall.EPERM, 3},
		{"buffer full from the third on", map[int]error{2: full, 3: full}, 2, 2, syscall.EAGAIN, 2},
		{"all refused", map[int]error{0: firewall, 1: firewall, 2: firewall, 3: firewall}, 0, 4, syscall.EPERM, 0},
		{"the second refused", map[int]error{1: firewall}, 3, 1, syscall.EPERM, 3},
		{"closed during the send", map[int]error{2: net.ErrClosed, 3: net.ErrClosed}, 2, 2, syscall.ESHUTDOWN, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, nil)
			k := l.poller("192.0.2.1:5000", 1)
			conn := &faultyConn{refuse: c.refuse}
			s := newSocket(conn, l.s, goodClock(), func() time.Duration { return 0 })
			s.batchOf(k, 0, 4)
			s.reply(0)
			if l.s.counts[Answered] != c.sent || l.s.counts[SendFailed] != c.failed || l.s.sendErrors[c.errno] != c.failed {
				t.Errorf("answered %d, send_failed %d, errors %v; want %d, %d of %v",
					l.s.counts[Answered], l.s.counts[SendFailed], l.s.sendErrors, c.sent, c.failed, c.errno)
			}
			// Unknown peers choose the address, and so whether there is a route; not the firewall of this host.
			if got := l.s.forbidden.sum(time.Minute); got != l.s.sendErrors[syscall.EPERM] {
				t.Errorf("%d replies that a firewall keeps, of the errors %v", got, l.s.sendErrors)
			}
			if got := l.s.forbidden.sum(KeyFaultWindow); got != 0 {
				t.Errorf("%d such replies of the last minutes after these", got)
			}
			if uint64(len(conn.taken)) != c.sent {
				t.Errorf("sent %d replies, want %d", len(conn.taken), c.sent)
			}
			if got := k.poll(4).base.Seq; got != c.next {
				t.Errorf("the next reply has number %d, want %d", got, c.next)
			}
		})
	}
}

// TestRepliesOfOneBatchReportEachOther: a reflector that was suspended finds many requests of one session at once, and
// must still report all timestamps.
func TestRepliesOfOneBatchReportEachOther(t *testing.T) {
	for _, n := range []int{2, smallBatch, smallBatch + 1, batchPackets} {
		l := newLab(t, nil)
		k := l.poller("192.0.2.1:5000", 1)
		conn := &faultyConn{}
		s := newSocket(conn, l.s, goodClock(), func() time.Duration { return 0 })
		s.batchOf(k, 0, n)
		s.reply(0)
		told := map[uint32]bool{}
		for _, b := range conn.taken {
			rep := reply{data: b}
			rep.parse(t, nil)
			for i, l := range rep.receipt.EarlierTX {
				if l.Known {
					told[rep.base.Seq-uint32(i)-1] = true
				}
			}
			if n <= smallBatch && rep.base.Seq > 0 && !rep.receipt.EarlierTX[0].Known {
				t.Errorf("batch of %d: reply %d does not report the one before", n, rep.base.Seq)
			}
		}
		last := (n - 1) / stampfmt.ReportedReplies * stampfmt.ReportedReplies // the next batch reports the last round
		if n <= smallBatch {
			last = n - 1
		}
		for i := range last {
			if !told[uint32(i)] {
				t.Errorf("batch of %d: reply %d is not reported", n, i)
			}
		}
	}
}

func TestBatchGetsRepliesInOrderWithoutAllocation(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	conn := &faultyConn{}
	s := newSocket(conn, l.s, goodClock(), func() time.Duration { return 0 })
	s.batchOf(k, 0, batchPackets)
	s.reply(0)
	for i, b := range conn.taken {
		rep := reply{data: b}
		rep.parse(t, nil)
		if rep.base.Seq != uint32(i) || rep.base.SenderSeq != uint32(i) || rep.base.T3 == 0 {
			t.Fatalf("reply %d: %+v", i, rep.base)
		}
	}
	conn.taken = make([][]byte, 0, batchPackets)
	template := k.request(0, nil)
	conn.stamps = make([]tstamp.TxStamp, 0, batchPackets)
	if n := testing.AllocsPerRun(100, func() {
		conn.taken = conn.taken[:0]
		for i := range s.batch.In {
			copy(s.batch.In[i].Payload, template)
		}
		s.reply(0)
	}); n != 0 {
		t.Errorf("%v allocations per batch, want 0", n)
	}
}

func TestIdleSessionsExpireWithTheNextPacketOfAnyPeer(t *testing.T) {
	l := newLab(t, nil)
	l.poller("192.0.2.1:5000", 1).poll(0)
	s := newSocket(&faultyConn{}, l.s, goodClock(), func() time.Duration { return 0 })
	s.batchOf(l.poller("192.0.2.2:5000", 2), 0, 1)
	s.reply(15*time.Minute + time.Second)
	if n := l.s.table.len(); n != 1 {
		t.Errorf("%d sessions, want only the new one", n)
	}
}
