package interop

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"
)

// The packets of TWAMP-Test, unauthenticated (RFC 5357 sections 4.1.2 and 4.2.1), written and read from the texts of this RFC and
// of RFC 4656, and by no code of oneway.
const (
	senderBytes = 14 // Sequence Number 0-3, Timestamp 4-11, Error Estimate 12-13; Packet Padding follows
	// reflectorBytes: Sequence Number 0-3, Timestamp 4-11, Error Estimate 12-13, MBZ, Receive Timestamp 16-23, Sender Sequence
	// Number 24-27, Sender Timestamp 28-35, Sender Error Estimate 36-37, MBZ, Sender TTL 40; Packet Padding follows.
	reflectorBytes = 41
	// errorEstimate: S bit, Scale 1, Multiplier 1 (RFC 4656 section 4.1.2).
	errorEstimate = 0x8101
)

// ntpNow is a timestamp of RFC 1305: seconds since 1900 and a fraction of 32 bits.
func ntpNow() []byte {
	const since1900 = 2_208_988_800
	now := time.Now()
	b := binary.BigEndian.AppendUint32(nil, uint32(now.Unix()+since1900))
	return binary.BigEndian.AppendUint32(b, uint32(uint64(now.Nanosecond())<<32/1e9))
}

// ntpNanoseconds is a timestamp as a time since 1900.
func ntpNanoseconds(b []byte) int64 {
	return int64(binary.BigEndian.Uint32(b))*1e9 + int64(uint64(binary.BigEndian.Uint32(b[4:]))*1e9>>32)
}

// twampReflector is a Session-Reflector of RFC 5357 Appendix I (TWAMP-Light).
type twampReflector struct {
	// padding is what follows the reply's 41 bytes to this request.
	padding func(request []byte) []byte
	// stateless copies the sender's number.
	stateless bool
	// bytes truncates replies, as twampy's reflector, which sends no Sender TTL; 0: whole replies.
	bytes int
}

// start runs the reflector at an address until the test ends, and returns its port as well.
func (r twampReflector) start(t *testing.T, at string) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", net.JoinHostPort(at, "0"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		next := map[string]uint32{} // a session is the addresses and ports (RFC 5357 section 4.2)
		for b := make([]byte, 1<<16); ; {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			if n >= senderBytes {
				_, _ = conn.WriteTo(r.reply(b[:n], next[from.String()]), from) // a lost reply fails the test
				next[from.String()]++
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-ended })
	return conn.LocalAddr().String()
}

func (r twampReflector) reply(q []byte, number uint32) []byte {
	received := ntpNow()
	if r.stateless {
		number = binary.BigEndian.Uint32(q)
	}
	b := binary.BigEndian.AppendUint32(nil, number)
	b = append(b, ntpNow()...)
	b = binary.BigEndian.AppendUint16(b, errorEstimate)
	b = append(b, 0, 0)
	b = append(b, received...)
	b = append(b, q[:senderBytes]...)
	b = append(b, 0, 0, 255)
	b = append(b, r.padding(q)...)
	if r.bytes > 0 {
		b = append(b[:38:38], make([]byte, r.bytes-38)...)
	}
	return b
}

// twampRequest is a packet of a Session-Sender.
func twampRequest(number uint32, padding []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, number)
	b = append(b, ntpNow()...)
	b = binary.BigEndian.AppendUint16(b, errorEstimate)
	return append(b, padding...)
}

// twampSender sends requests one by one, and checks the reply to each.
type twampSender struct {
	conn net.Conn
	next uint32
}

func newTwampSender(t *testing.T, to netip.AddrPort) *twampSender {
	t.Helper()
	conn, err := net.Dial("udp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &twampSender{conn: conn}
}

// ask sends the next request and returns an error unless its reply has this length and each field of RFC 5357 section 4.2.1.
func (s *twampSender) ask(padding []byte, want int) error {
	q := twampRequest(s.next, padding)
	if _, err := s.conn.Write(q); err != nil {
		return err
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	b := make([]byte, 1<<16)
	n, err := s.conn.Read(b)
	if err != nil {
		return fmt.Errorf("request %d of %d bytes: %w", s.next, len(q), err)
	}
	b = b[:n]
	number := s.next
	s.next++
	if n != want || n < reflectorBytes {
		return fmt.Errorf("reply of %d bytes to %d, want %d", n, len(q), want)
	}
	sent, received, replied, now := ntpNanoseconds(q[4:]), ntpNanoseconds(b[16:]), ntpNanoseconds(b[4:]), ntpNanoseconds(ntpNow())
	const rounding = 1000 // ns: of the timestamps' fractions, and of a reading of the clock in the kernel and in a process
	switch {
	case binary.BigEndian.Uint32(b) != number:
		return fmt.Errorf("reply %d to request %d", binary.BigEndian.Uint32(b), number)
	case !bytes.Equal(b[24:38], q[:senderBytes]):
		return fmt.Errorf("reply %d repeats % x, want % x", number, b[24:38], q[:senderBytes])
	case b[40] != 64:
		return fmt.Errorf("reply %d: Sender TTL %d, want 64", number, b[40])
	case received < sent-rounding, replied < received-rounding, now < replied-rounding:
		return fmt.Errorf("reply %d: sent %d, received %d, replied %d, now %d", number, sent, received, replied, now)
	case b[12]&0x80 == 0 || b[13] == 0:
		return fmt.Errorf("reply %d: Error Estimate % x, want one of a synchronized clock", number, b[12:14])
	}
	return nil
}

// noise is random padding.
func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}
