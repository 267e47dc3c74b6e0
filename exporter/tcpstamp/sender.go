package tcpstamp

import (
	"slices"
	"sort"
	"time"

	"oneway.example/exporter/instant"
)

// Limits of the sending end.
const (
	// MaxSent is the most sampled bytes of a flow.
	MaxSent = 4096
	// MinSpacing is the least mean time between samples: above that the sender takes fewer.
	MinSpacing = 5 * time.Millisecond
	// MaxBursts is the most bursts of a flow, and BurstSegments the segments of each. A burst with fewer than MinSegments
	// is not recorded.
	MaxBursts     = 32
	BurstSegments = 128
	MinSegments   = 100
	maxAcks       = MaxBursts * BurstSegments
	// spacedOver is the number of samples whose mean spacing counts.
	spacedOver = 16
)

// Wants is what the kernel shall stamp of the last byte of a write.
type Wants uint8

// The values. WantAck: a segment of a burst.
const (
	WantNothing Wants = iota
	WantAck
	WantAll
)

// Write is how the next write of a flow shall be made.
type Write struct {
	// End is the offset of its last byte; the write has no bytes after it.
	End   int64
	Wants Wants
	// Record: no later byte may be in the same segment (MSG_EOR).
	Record bool
}

// Event is what a stamp of a sent byte is of.
type Event uint8

// The events: the byte entered the packet scheduler, left the host, was acknowledged.
const (
	Scheduled Event = iota
	Left
	Acked
)

// Stamp is a kernel's stamp of a byte of the flow.
type Stamp struct {
	Event  Event
	Offset int64
	At     instant.Time
	// Early and Through are of Acked: how much earlier the acknowledgment may have arrived, and the number of payload
	// bytes of the flow that were acknowledged then, if Known.
	Early   time.Duration
	Through int64
	Known   bool
}

// Sender chooses the writes of the sending end of a flow and collects their stamps. Its methods are for one goroutine
// and do not allocate.
type Sender struct {
	grid int64
	sent []Sent

	mss        int64
	burstEvery time.Duration
	bursts     []burst
	acks       []Ack
	bursting   bool
	nextBurst  instant.Time
	lastStamp  instant.Time
}

// burst is the range of bytes (from, until] of a burst.
type burst struct {
	from, until int64
	segments    int
	begin       instant.Time
}

// NewSender returns the sender of a flow without samples. mss is the payload of a full segment; 0: no bursts.
// burstEvery is the least time between the begins of bursts, so that MaxBursts cover the flow.
func NewSender(mss int, burstEvery time.Duration) *Sender {
	s := &Sender{grid: Grid, sent: make([]Sent, 0, MaxSent), mss: int64(mss), burstEvery: burstEvery}
	if mss > 0 {
		s.bursts, s.acks = make([]burst, 0, MaxBursts), make([]Ack, 0, maxAcks)
	}
	return s
}

// Next returns how to write the bytes after offset, at most up to end, at a time just before the write. It must be
// called for each write, and again for the rest of a write that the socket took in part only.
func (s *Sender) Next(offset, end int64, now instant.Time) Write {
	w := Write{End: min(end, (offset/s.grid+1)*s.grid)}
	if s.inBurst(offset, now) {
		w.End, w.Wants, w.Record = min(w.End, offset+s.mss), WantAck, true
		b := &s.bursts[len(s.bursts)-1]
		b.until = w.End
		b.segments++
	}
	if w.End%s.grid == 0 {
		w.Wants = WantAll
		s.begin(w.End, now)
	}
	return w
}

// begin registers a sample before its write: a stamp may come before the write returns.
func (s *Sender) begin(offset int64, now instant.Time) {
	if n := len(s.sent); n > 0 && s.sent[n-1].Offset == offset {
		s.sent[n-1].Written = now // the first part of the write ended before the byte
		return
	}
	if len(s.sent) == MaxSent || s.tooFast(now) {
		s.raise()
		if offset%s.grid != 0 {
			return // its stamps are ignored
		}
	}
	s.sent = append(s.sent, Sent{Offset: offset, Written: now})
}

func (s *Sender) tooFast(now instant.Time) bool {
	n := len(s.sent)
	return n >= spacedOver && now.Sub(s.sent[n-spacedOver].Written) < spacedOver*MinSpacing
}

// raise raises the level until samples are as rare as required.
func (s *Sender) raise() {
	s.grid *= 2
	s.sent = slices.DeleteFunc(s.sent, func(x Sent) bool { return x.Offset%s.grid != 0 })
}

// inBurst decides whether the bytes after offset are a segment of a burst. A burst lasts until its last segment was
// written, and takes at most a quarter of the time.
func (s *Sender) inBurst(offset int64, now instant.Time) bool {
	n := len(s.bursts)
	if s.bursting {
		b := &s.bursts[n-1]
		if b.segments < BurstSegments && b.until == offset {
			return true
		}
		s.bursting = false
		s.nextBurst = max(b.begin.Add(s.burstEvery), now.Add(3*now.Sub(b.begin)))
	}
	if s.mss == 0 || n == MaxBursts || now < s.nextBurst {
		return false
	}
	if s.nextBurst == 0 { // the first one waits, too: slow start has bursts of its own
		s.nextBurst = now.Add(max(s.burstEvery/2, 1))
		return false
	}
	s.bursts = append(s.bursts, burst{from: offset, until: offset, begin: now})
	s.bursting = true
	return true
}

// Stamp takes a stamp. Those of bytes that are not sampled are ignored.
func (s *Sender) Stamp(t Stamp) {
	if t.Event == Acked {
		s.acked(t)
	}
	i := sort.Search(len(s.sent), func(i int) bool { return s.sent[i].Offset >= t.Offset })
	if i == len(s.sent) || s.sent[i].Offset != t.Offset {
		return
	}
	x := &s.sent[i]
	switch t.Event {
	case Scheduled:
		if x.Scheduled == 0 {
			x.Scheduled = t.At
		}
	case Left:
		if x.First == 0 {
			x.First = t.At
		}
		x.Last = t.At
		x.Transmissions++
	case Acked:
		if x.Acked == 0 {
			x.Acked, x.AckedEarly = t.At, t.Early
		}
	}
}

// sameAck is the most time between two stamps of one acknowledgment in kernels that do not tell which they are of: the
// kernel stamps its segments in one loop.
const sameAck = 10 * time.Microsecond

// acked adds the acknowledgment of a segment of a burst, once for all segments that it acknowledged.
func (s *Sender) acked(t Stamp) {
	i := s.burst(t.Offset)
	if i < 0 {
		return
	}
	offset := t.Offset
	if t.Known {
		offset = t.Through
	}
	if n := len(s.acks); n > 0 && s.acks[n-1].Burst == int32(i) {
		last := &s.acks[n-1]
		if same := t.At.Sub(s.lastStamp) <= sameAck; offset <= last.Offset || !t.Known && same {
			last.Offset = max(last.Offset, offset)
			s.lastStamp = t.At
			return
		}
	}
	if len(s.acks) == cap(s.acks) {
		return
	}
	s.lastStamp = t.At
	s.acks = append(s.acks, Ack{Burst: int32(i), Offset: offset, At: t.At, Early: t.Early})
}

// burst returns the number of the burst with the byte, or -1.
func (s *Sender) burst(offset int64) int {
	for i := len(s.bursts) - 1; i >= 0; i-- {
		if b := &s.bursts[i]; b.from < offset {
			if offset <= b.until {
				return i
			}
			return -1
		}
	}
	return -1
}

// Records returns what was collected, of bytes up to payload: those that were written.
func (s *Sender) Records(payload int64) ([]Sent, []Ack) {
	sent := slices.DeleteFunc(s.sent, func(x Sent) bool { return x.Offset > payload })
	acks := slices.DeleteFunc(s.acks, func(a Ack) bool {
		return a.Offset > payload || s.bursts[a.Burst].segments < MinSegments
	})
	return sent, acks
}
