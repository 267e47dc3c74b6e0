package chrony

import (
	"encoding/binary"
	"errors"
	"math"
	"net"
	"os"
	"testing"
	"time"

	fb "github.com/facebook/time/ntp/chrony"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/clocktest"
)

// canned is a connection that receives one datagram, with the sequence number of the request if fix is set, and then
// nothing.
type canned struct {
	net.Conn
	datagram []byte
	fix      bool
	sequence uint32
}

func (c *canned) SetDeadline(time.Time) error { return nil }

func (c *canned) Write(b []byte) (int, error) {
	c.sequence = binary.BigEndian.Uint32(b[8:])
	return len(b), nil
}

func (c *canned) Read(b []byte) (int, error) {
	if c.datagram == nil {
		return 0, os.ErrDeadlineExceeded
	}
	if c.fix && len(c.datagram) >= 20 {
		binary.BigEndian.PutUint32(c.datagram[16:], c.sequence)
	}
	n := copy(b, c.datagram)
	c.datagram = nil
	return n, nil
}

// correctTracking is a reply of the fake chronyd.
func correctTracking() []byte {
	request := make([]byte, 104)
	request[5] = commandTracking
	return newDaemon(clocktest.NewClock()).reply(request)
}

func TestEveryCutOfAReplyIsRejected(t *testing.T) {
	whole := correctTracking()
	for n := range len(whole) {
		_, err := request[*fb.ReplyTracking](newLink(&canned{datagram: whole[:n:n], fix: true}), fb.NewTrackingPacket())
		if causeOf(err) != truncated {
			t.Errorf("%d bytes of %d: %v, want truncated", n, len(whole), err)
		}
	}
	if _, err := request[*fb.ReplyTracking](newLink(&canned{datagram: whole, fix: true}), fb.NewTrackingPacket()); err != nil {
		t.Errorf("the whole reply: %v", err)
	}
}

func FuzzReply(f *testing.F) {
	f.Add(correctTracking(), true)
	f.Add(correctTracking()[:replyHeadBytes], true)
	f.Add(append(correctTracking(), 0), true)
	f.Add([]byte("junk"), false)
	f.Fuzz(func(t *testing.T, datagram []byte, fix bool) {
		reply, err := request[*fb.ReplyTracking](newLink(&canned{datagram: datagram, fix: fix}), fb.NewTrackingPacket())
		if err != nil {
			return
		}
		if len(datagram) != replyHeadBytes+76 {
			t.Fatalf("%d bytes were accepted", len(datagram))
		}
		r, err := newReport(&reply.Tracking, clock.Check{Now: clock.Reading{Wall: 1e18, Mono: 1}}, clock.Check{Now: clock.Reading{Wall: 1e18 + 1, Mono: 2}})
		if err != nil {
			var q *queryError
			if !errors.As(err, &q) || q.reason != implausible {
				t.Fatalf("rejected for %v", err)
			}
			return
		}
		now := r.boundAt(0, 0, 1e-6, drift{})
		later := r.boundAt(time.Hour, time.Hour, 1e-6, drift{})
		if !(now >= 0) || !(later > now) && now < 1e9 || math.IsInf(later, 0) {
			t.Fatalf("bound %v, an hour later %v", now, later)
		}
		if roundUp(later) < 0 {
			t.Fatalf("bound %v became %v", later, roundUp(later))
		}
	})
}

func TestRoundUpLosesNothing(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{
		0: 0, 1e-9: 1, 1.1e-9: 2, 0.5: time.Second / 2, 1e300: math.MaxInt64, math.Inf(1): math.MaxInt64,
	} {
		if got := roundUp(seconds); got != want {
			t.Errorf("roundUp(%g) = %d, want %d", seconds, got, want)
		}
	}
}
