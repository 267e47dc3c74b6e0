// Package tcplog reads TCP connections in the log of an emulated link: the payload that arrived, and when, the round trips,
// and the segments that were sent again. It is the truth of a TCP transfer, apart from the kernel that measures itself.
package tcplog

import (
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/lab"
)

// A key has the mark, the payload's size, the client's port, and the sequence number, or without payload the acknowledgment.
const (
	mark      = 1 << 61
	sizeShift = 48
	portShift = 32
	sizeMask  = 1<<12 - 1
)

// Segments selects the connections of a client, but those with a port of the server's: the control connection. A reset belongs to
// none: a host that closed a connection sends it when payload arrives late.
func Segments(client netip.Addr, control uint16) lab.SegmentClassifier {
	return func(s lab.Segment) (key uint64, ok bool) {
		local, remote := s.Source, s.Destination
		if remote.Addr() == client {
			local, remote = remote, local
		}
		number := s.Sequence
		if s.Payload == 0 {
			number = s.Acknowledgment
		}
		return mark | uint64(s.Payload&sizeMask)<<sizeShift | uint64(local.Port())<<portShift | uint64(number), remote.Port() != control && !s.Reset
	}
}

// Others is a classifier of UDP packets beside Segments: without the bit that marks a segment, which a random key may have.
func Others(c lab.Classifier) lab.Classifier {
	return func(payload []byte, src, dst netip.AddrPort) (key uint64, ok bool) {
		key, ok = c(payload, src, dst)
		return key &^ mark, ok
	}
}

// Is reports whether a packet is a segment that Segments has selected; no packet with another key may have bit 61.
func Is(r *lab.Record) bool { return r.Key&mark != 0 }

// Connection is a connection of which one end sends payload.
type Connection struct {
	// Port is the client's.
	Port uint16
	// data are the segments with payload, in order of entry, acks those of the receiving end without.
	data, acks []lab.Record
}

// fewest is the number of segments from which on a connection counts: the other end sends a few bytes, too.
const fewest = 10

// Connections returns those that sent payload in a direction, in the order of their begin: its log is data, and acks is that
// of the other direction.
func Connections(data, acks []lab.Record) (all []Connection) {
	of := func(port uint16) *Connection {
		if i := slices.IndexFunc(all, func(c Connection) bool { return c.Port == port }); i >= 0 {
			return &all[i]
		}
		all = append(all, Connection{Port: port})
		return &all[len(all)-1]
	}
	for _, r := range data {
		if Is(&r) && payload(&r) > 0 {
			c := of(port(&r))
			c.data = append(c.data, r)
		}
	}
	for _, r := range acks {
		if Is(&r) && payload(&r) == 0 {
			c := of(port(&r))
			c.acks = append(c.acks, r)
		}
	}
	return slices.DeleteFunc(all, func(c Connection) bool { return len(c.data) < fewest })
}

func payload(r *lab.Record) int64 { return int64(r.Key >> sizeShift & sizeMask) }
func port(r *lab.Record) uint16   { return uint16(r.Key >> portShift) }
func number(r *lab.Record) uint32 { return uint32(r.Key) }

// Time is from the entry of the first segment with payload to the exit of the last that was delivered.
func (c *Connection) Time() (begin, end instant.Time) {
	for _, r := range c.data {
		end = max(end, r.Exit.Before)
	}
	return c.data[0].Entry, end
}

// Truth is a connection by the log.
type Truth struct {
	// Throughput is the payload per second that left the link in order, so that an application had it.
	Throughput float64
	// RTT are the quartiles of the times from the entry of a segment to the exit of its acknowledgment.
	RTT [3]time.Duration
	// Segments with payload entered, Again of them not for the first time, and Dropped found a full queue.
	Segments, Again, Dropped int
}

// Between is the truth from the omitted time on to the end of a planned time, both from the first arrival; the numbers of
// segments are of all the time.
func (c *Connection) Between(omit, planned time.Duration) (t Truth) {
	entered, again, highest := map[int64]instant.Time{}, map[int64]bool{}, int64(0)
	for _, r := range c.data {
		begin := c.offset(number(&r))
		end := begin + payload(&r)
		if begin < highest {
			t.Again, again[end] = t.Again+1, true
		} else {
			entered[end] = r.Entry
		}
		highest = max(highest, end)
		if r.Outcome == lab.DroppedQueue {
			t.Dropped++
		}
	}
	t.Segments = len(c.data)
	arrived := c.delivered()
	if len(arrived) == 0 {
		return t
	}
	begin := arrived[0].Exit.Middle()
	from, to := begin.Add(omit), begin.Add(planned)
	inOrder := int64(0)
	for _, a := range c.Arrivals() {
		if a.At >= from && a.At <= to {
			inOrder += a.Bytes
		}
	}
	t.Throughput = float64(inOrder) / (planned - omit).Seconds()
	t.RTT = quartiles(c.roundTrips(from, to, func(ack uint32) (instant.Time, bool) {
		end := c.offset(ack)
		entry, ok := entered[end]
		return entry, ok && !again[end]
	}))
	return t
}

// Arrival is payload that left the link in order, so that an application had it.
type Arrival struct {
	At    instant.Time
	Bytes int64
}

// Arrivals returns all payload of the connection, by time; at the client's direction the first of them is the cookie.
func (c *Connection) Arrivals() (all []Arrival) {
	next, ends := int64(0), map[int64]int64{} // ends: of what arrived early, by its begin
	for _, r := range c.delivered() {
		begin, before := c.offset(number(&r)), next
		if end := begin + payload(&r); begin <= next {
			next = max(next, end)
		} else {
			ends[begin] = max(ends[begin], end)
		}
		for end := ends[next]; end > next; end = ends[next] {
			next = end
		}
		if next > before {
			all = append(all, Arrival{r.Exit.Middle(), next - before})
		}
	}
	return all
}

// delivered returns the segments that left the link, by time.
func (c *Connection) delivered() (all []lab.Record) {
	for _, r := range c.data {
		if r.Outcome == lab.Delivered {
			all = append(all, r)
		}
	}
	byExit(all)
	return all
}

// offset returns the place of a sequence number in the payload: a difference, as numbers wrap.
func (c *Connection) offset(n uint32) int64 { return int64(int32(n - number(&c.data[0]))) }

// roundTrips are those of the acknowledgments that left in a time. sent is the entry of the segment that an
// acknowledgment is for; false if that is not certain.
func (c *Connection) roundTrips(from, to instant.Time, sent func(ack uint32) (instant.Time, bool)) (all []time.Duration) {
	acks := slices.Clone(c.acks)
	byExit(acks)
	seen := map[uint32]bool{}
	for i := range acks {
		r := &acks[i]
		entry, ok := sent(number(r))
		if out := r.Exit.Middle(); ok && !seen[number(r)] && r.Outcome == lab.Delivered && out >= from && out <= to {
			all = append(all, out.Sub(entry))
		}
		seen[number(r)] = true
	}
	return all
}

func byExit(all []lab.Record) {
	slices.SortStableFunc(all, func(a, b lab.Record) int { return int(a.Exit.Middle() - b.Exit.Middle()) })
}

func quartiles(all []time.Duration) (q [3]time.Duration) {
	slices.Sort(all)
	for i := range q {
		if n := len(all); n > 0 {
			q[i] = all[(n-1)*(i+1)/4]
		}
	}
	return q
}
