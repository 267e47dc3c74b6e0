package lab

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// start is when the simulated runs begin.
const start = instant.Time(1_700_000_000_000_000_000)

// keyed is the tests' packet: its number in the first eight bytes.
func keyed(payload []byte, _, dst netip.AddrPort) (uint64, bool) {
	if len(payload) < 8 || dst.Port() != 862 {
		return 0, false
	}
	return binary.BigEndian.Uint64(payload), true
}

// sim drives a pipe without sockets and without waiting.
type sim struct {
	*pipe
	t testing.TB
	// out are the keys in the order in which they left.
	out []uint64
}

func newSim(t testing.TB, l Link, o Options) *sim {
	t.Helper()
	if key, err := l.check(); err != nil {
		t.Fatal(key, err)
	}
	o.Classifier = keyed
	return &sim{pipe: newPipe(sample.Forward, l, &o), t: t}
}

// send enters packet n of so many IP bytes at the given time, after letting out
// what was due before.
func (s *sim) send(n uint64, size int, at time.Duration) {
	s.t.Helper()
	s.run(start.Add(at))
	payload := make([]byte, size-28)
	binary.BigEndian.PutUint64(payload, n)
	if !s.enter(udpFrame(s.t, families[0].src, families[0].dst, payload), start.Add(at)) {
		s.t.Fatal("test packet taken for control traffic")
	}
}

// run lets out all that is due until the given time, each at its due time.
func (s *sim) run(until instant.Time) {
	for {
		due, some := s.next()
		if !some || due > until {
			return
		}
		for p := s.pop(due); p != nil; p = s.pop(due) {
			n := binary.BigEndian.Uint64(p.data[ethernetHeader+28:])
			s.out = append(s.out, n)
			copies := p.copies
			dup := Interval{}
			if copies > 0 {
				s.out = append(s.out, n)
				dup = Interval{due, due}
			}
			s.left(p, Delivered, Interval{due, due}, dup)
		}
	}
}

// finish lets everything out and returns the log.
func (s *sim) finish() []Record {
	s.run(1 << 62)
	return s.log.snapshot()
}
