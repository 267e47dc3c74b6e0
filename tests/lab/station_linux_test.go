package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
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
	ends := 0
	for {
		n, c, _, _, err := s.receiver.ReadMsgUDPAddrPort(buffer, control)
		if err != nil {
			return
		}
		if n == 1 { // of finish
			if ends++; ends == 10 {
				return
			}
			continue
		}
		ends = 0
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
// left the lab is in the receiver's buffer by then: the lab's send delivers it.
func (s *station) finish(l *Lab) []arrival {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := l.Drain(ctx); err != nil {
		s.t.Fatal(err)
	}
	// Packets of one byte from the receiver's own host come behind all that is in its
	// buffer; ten in a row also behind what a busy kernel had not put there yet.
	var own net.PacketConn
	err := s.server.Do(func() (err error) {
		own, err = net.ListenPacket("udp", ":0")
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	defer own.Close()
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	for {
		if _, err := own.WriteTo([]byte{0}, net.UDPAddrFromAddrPort(s.to)); err != nil {
			s.t.Fatal(err)
		}
		select {
		case <-done:
			return s.arrivals
		case <-ctx.Done():
			s.t.Fatal("the receiver does not come to the end of its buffer")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
