package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/capture"
)

func TestMain(m *testing.M) { os.Exit(Main(m.Run)) }

// arrival is one packet at the receiver's socket.
type arrival struct {
	key   uint64
	at    instant.Time // kernel stamp
	whole bool         // the payload is what was sent
}

// station is a sender on one host and a receiver on the other.
type station struct {
	t        testing.TB
	server   *Host // where the receiver is
	sender   *net.UDPConn
	receiver *net.UDPConn
	to       netip.AddrPort
	// sent[key] are the clock's readings around the system call.
	sent map[uint64]Interval

	wg       sync.WaitGroup
	arrivals []arrival
	failure  error // of receive
}

// newStation opens both sockets and starts to receive. The port is the one
// that keyed counts.
func newStation(t testing.TB, from, to *Host, v6 bool) *station {
	t.Helper()
	network, address := "udp4", to.Addr4
	if v6 {
		network, address = "udp6", to.Addr6
	}
	s := &station{t: t, server: to, to: netip.AddrPortFrom(address, 862), sent: make(map[uint64]Interval)}
	err := to.Do(func() (err error) {
		s.receiver, err = net.ListenUDP(network, net.UDPAddrFromAddrPort(s.to))
		return err
	})
	if err == nil {
		err = from.Do(func() (err error) {
			s.sender, err = net.ListenUDP(network, nil)
			return err
		})
	}
	if err == nil {
		err = wantStamps(s.receiver)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.wg.Go(s.receive)
	t.Cleanup(s.close)
	return s
}

// receiveBytes holds all that a test sends, as a busy machine may not run the receiver before the end.
const receiveBytes = 64 << 20

func wantStamps(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) {
		inner = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBytes)
	})
	return errors.Join(askForStamps(c), err, inner)
}

func (s *station) close() {
	s.sender.Close()
	s.receiver.Close()
	s.wg.Wait()
}

// receive keeps what comes until close.
func (s *station) receive() {
	buffer, control := make([]byte, 2048), make([]byte, 128)
	ends := map[byte]bool{}
	for {
		n, c, _, _, err := s.receiver.ReadMsgUDPAddrPort(buffer, control)
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				s.failure = err
			}
			return
		}
		if n == 1 { // of finish
			if ends[buffer[0]] = true; len(ends) == runtime.NumCPU() {
				return
			}
			continue
		}
		a := arrival{at: capture.Stamp(control[:c]), whole: n >= 8}
		if a.whole {
			a.key = binary.BigEndian.Uint64(buffer)
		}
		for i := 8; i < n; i++ {
			a.whole = a.whole && buffer[i] == pattern(a.key, i)
		}
		s.arrivals = append(s.arrivals, a)
	}
}

// pattern depends on every bit of the key: a damaged key shows, too.
func pattern(key uint64, i int) byte { return byte((key+1)*0x9e3779b97f4a7c15>>56) + byte(i) }

// send sends packet n with so many bytes of UDP payload.
func (s *station) send(n uint64, payload int) {
	s.t.Helper()
	b := make([]byte, payload)
	binary.BigEndian.PutUint64(b, n)
	for i := 8; i < payload; i++ {
		b[i] = pattern(n, i)
	}
	after := instant.Now()
	if _, err := s.sender.WriteToUDPAddrPort(b, s.to); err != nil {
		s.t.Fatal(err)
	}
	s.sent[n] = Interval{After: after, Before: instant.Now()}
}

// stream sends count packets at a constant interval, catching up when late.
func (s *station) stream(count uint64, payload int, interval time.Duration) {
	s.t.Helper()
	begin := time.Now()
	for n := range count {
		if ahead := time.Duration(n)*interval - time.Since(begin); ahead > 0 {
			time.Sleep(ahead) // the rate of the packets
		}
		s.send(n, payload)
	}
}

// finish drains the lab and returns what the receiver got. Every packet that
// left the lab is in the receiver's buffer by then, or in the backlog of the processor on which the lab sent it.
func (s *station) finish(l *Lab) []arrival {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := l.Drain(ctx); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	for {
		if err := s.server.Do(s.sendEnds); err != nil {
			s.t.Fatal(err)
		}
		select {
		case <-done:
			if s.failure != nil {
				s.t.Fatal(s.failure)
			}
			return s.arrivals
		case <-ctx.Done():
			s.t.Fatal("the receiver does not come to the end of its buffer")
		case <-time.After(10 * time.Millisecond): // one that found no room is sent again
		}
	}
}

// sendEnds sends a packet of one byte, the number of a processor, from each processor of the receiver's own host. The kernel puts it behind all
// that the same processor has not yet passed to the receiver, which a busy one does late.
func (s *station) sendEnds() error {
	own, err := net.ListenPacket("udp", ":0")
	if err != nil {
		return err
	}
	defer own.Close()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }() // these processors were possible before
	for i := range runtime.NumCPU() {
		var one unix.CPUSet
		one.Set(nth(before, i))
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return err
		}
		if _, err := own.WriteTo([]byte{byte(i)}, net.UDPAddrFromAddrPort(s.to)); err != nil {
			return err
		}
	}
	return nil
}

// nth is the n-th processor of a set.
func nth(set unix.CPUSet, n int) int {
	for cpu := 0; ; cpu++ {
		if set.IsSet(cpu) {
			if n--; n < 0 {
				return cpu
			}
		}
	}
}
