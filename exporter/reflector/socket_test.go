package reflector

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/tstamp"
)

// faultyConn takes what it is told to take.
type faultyConn struct {
	refuse map[int]error // by position among all packets offered
	seen   int
	taken  [][]byte
}

func (c *faultyConn) Send(out []tstamp.Out) (int, error) {
	for i := range out {
		err := c.refuse[c.seen]
		c.seen++
		if err != nil {
			return i, err
		}
		c.taken = append(c.taken, out[i].Payload)
	}
	return len(out), nil
}

func (*faultyConn) Receive(*tstamp.Batch) error { return net.ErrClosed }
func (*faultyConn) LocalAddr() netip.AddrPort   { return netip.AddrPort{} }
func (*faultyConn) Stats() tstamp.Stats         { return tstamp.Stats{} }
func (*faultyConn) Close() error                { return nil }

// batchOf puts questions numbered from first into the socket's batch.
func (s *socket) batchOf(k *asker, first uint32, n int) {
	s.batch.In, s.batch.Tx = s.batch.In[:0], s.batch.Tx[:0]
	for i := range n {
		s.batch.In = append(s.batch.In, tstamp.In{
			Payload: k.question(first+uint32(i), nil), Peer: k.peer, Local: netip.MustParseAddr("127.0.0.1"),
			Stamp: sample.Stamp{At: epochStart, Origin: sample.Kernel}, At: epochStart, TTL: 64,
		})
	}
}

func TestAnswerThatCannotBeSentIsCountedAndGivesItsNumberBack(t *testing.T) {
	full := fmt.Errorf("tstamp: send: %w", syscall.EAGAIN)
	firewall := fmt.Errorf("tstamp: send: %w", syscall.EPERM)
	for _, c := range []struct {
		name         string
		refuse       map[int]error
		sent, failed uint64
		errno        syscall.Errno
		next         uint32 // the number of the next answer
	}{
		{"none refused", nil, 4, 0, 0, 4},
		{"the last refused", map[int]error{3: firewall}, 3, 1, syscall.EPERM, 3},
		{"no room from the third on", map[int]error{2: full}, 2, 2, syscall.EAGAIN, 2},
		{"all refused", map[int]error{0: firewall, 1: firewall, 2: firewall, 3: firewall}, 0, 4, syscall.EPERM, 0},
		// Later answers have told a higher Tx already: the number stays used.
		{"the second refused", map[int]error{1: firewall}, 3, 1, syscall.EPERM, 4},
		{"closed under way", map[int]error{2: net.ErrClosed}, 2, 2, syscall.ESHUTDOWN, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, nil)
			k := l.asker("192.0.2.1:5000", 1)
			conn := &faultyConn{refuse: c.refuse}
			s := newSocket(conn, l.s, goodClock(), func() time.Duration { return 0 }, 512)
			s.batchOf(k, 0, 4)
			s.work(0)
			s.send()
			if l.s.counts[Answered] != c.sent || l.s.counts[SendFailed] != c.failed || l.s.sendErrors[c.errno] != c.failed {
				t.Errorf("answered %d, send_failed %d, errors %v; want %d, %d of %v",
					l.s.counts[Answered], l.s.counts[SendFailed], l.s.sendErrors, c.sent, c.failed, c.errno)
			}
			if uint64(len(conn.taken)) != c.sent {
				t.Errorf("%d answers left, want %d", len(conn.taken), c.sent)
			}
			if got := k.ask(4).base.Seq; got != c.next {
				t.Errorf("the next answer is number %d, want %d", got, c.next)
			}
		})
	}
}

func TestBatchIsAnsweredInOrderWithoutAllocation(t *testing.T) {
	l := newLab(t, nil)
	k := l.asker("192.0.2.1:5000", 1)
	conn := &faultyConn{}
	s := newSocket(conn, l.s, goodClock(), func() time.Duration { return 0 }, 512)
	s.batchOf(k, 0, batchPackets)
	s.work(0)
	s.send()
	for i, b := range conn.taken {
		rep := reply{octets: b}
		rep.parse(t, nil)
		if rep.base.Seq != uint32(i) || rep.base.SenderSeq != uint32(i) || rep.base.T3 == 0 {
			t.Fatalf("answer %d: %+v", i, rep.base)
		}
	}
	conn.taken = make([][]byte, 0, 1<<20)
	template := k.question(0, nil)
	if n := testing.AllocsPerRun(100, func() {
		for i := range s.batch.In {
			copy(s.batch.In[i].Payload, template)
		}
		s.work(0)
		s.send()
	}); n != 0 {
		t.Errorf("%v allocations a batch, want 0", n)
	}
}

func TestSilentSessionsExpireWithTheNextPacketOfAnyone(t *testing.T) {
	l := newLab(t, nil)
	l.asker("192.0.2.1:5000", 1).ask(0)
	s := newSocket(&faultyConn{}, l.s, goodClock(), func() time.Duration { return 0 }, 512)
	s.batchOf(l.asker("192.0.2.2:5000", 2), 0, 1)
	s.work(DefaultExpiry + time.Second)
	if n := l.s.table.len(); n != 1 {
		t.Errorf("%d sessions, want only the new one", n)
	}
}
