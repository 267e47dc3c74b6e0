package lab

import (
	"oneway.example/exporter/instant"
)

// shaper is the bottleneck: a droptail queue in bytes before a transmitter of
// constant rate. It holds no packets, only when each of them leaves.
type shaper struct {
	// free is when the transmitter is done with the last packet.
	free instant.Time
	// waiting are the packets that have not left yet at the last entry.
	// Those before head are gone.
	waiting []waiting
	head    int
	// bytes is the sum of those that are not gone.
	bytes int
}

type waiting struct {
	departure instant.Time
	size      int
}

// admit takes a packet of size bytes that enters at the given time, no earlier
// than the one before. It returns when the packet leaves the queue, or false
// if there is no room for it.
func (s *shaper) admit(entry instant.Time, size int, l *Link) (departure instant.Time, ok bool) {
	s.leave(entry)
	if l.Rate == 0 {
		return max(entry, s.free), true
	}
	if s.bytes+size > l.queue() {
		return 0, false
	}
	departure = max(entry, s.free)
	// 8e9 x 65535 fits an int64 with room to spare.
	s.free = departure + instant.Time(int64(size)*8e9/l.Rate)
	if departure > entry {
		s.waiting = append(s.waiting, waiting{departure, size})
		s.bytes += size
	}
	return departure, true
}

// queued is how many bytes wait at the given time, no earlier than the last entry.
func (s *shaper) queued(now instant.Time) int {
	s.leave(now)
	return s.bytes
}

// leave forgets the packets that are gone at the given time.
func (s *shaper) leave(now instant.Time) {
	for s.head < len(s.waiting) && s.waiting[s.head].departure <= now {
		s.bytes -= s.waiting[s.head].size
		s.head++
	}
	// Moving the rest down only when it is the smaller half costs one copy a
	// packet at most, and keeps the memory.
	if s.head > len(s.waiting)/2 {
		s.waiting = append(s.waiting[:0], s.waiting[s.head:]...)
		s.head = 0
	}
}
