package lab

import (
	"container/heap"
	"slices"

	"oneway.example/exporter/core/instant"
)

// packet is a frame inside the link.
type packet struct {
	data    []byte
	counted bool
	key     uint64
	// record is its place in the log; only if logged.
	record int
	logged bool
	copies int
	// frame and draw are its headers and its faults.
	frame frame
	draw  draw
	// corrupted: its payload was changed.
	corrupted bool
	// capable: its transport is ECN-capable; marked: the link gave it the mark CE.
	capable, marked bool

	// due is its planned departure; order decides between equals.
	due   instant.Time
	order uint64
	// behind is the number of packets that must still overtake it, overtaken of those that did.
	behind, overtaken int
}

// flight has the packets behind the queue: a priority queue by time, and
// the packets that reordering holds back.
type flight struct {
	queue packetHeap
	held  []*packet
	order uint64
	// last is the due time of the latest packet: jitter must not overtake.
	last instant.Time
}

// add inserts p, to leave at due or with the packet before it.
func (f *flight) add(p *packet, due instant.Time) {
	f.last = max(f.last, due)
	f.push(p, f.last)
	f.overtake(p.counted, f.last)
}

// hold keeps p until n later packets of its class have left.
func (f *flight) hold(p *packet, due instant.Time, n int) {
	p.due, p.behind, p.overtaken = max(f.last, due), n, 0
	f.held = append(f.held, p)
}

// overtake counts for the held packets of the same class that one more packet leaves
// before them, at the given time.
func (f *flight) overtake(counted bool, due instant.Time) {
	f.held = slices.DeleteFunc(f.held, func(p *packet) bool {
		if p.counted != counted || due > deadline(p) {
			return false
		}
		p.overtaken++
		if p.overtaken < p.behind {
			return false
		}
		f.push(p, max(due, p.due))
		return true
	})
}

// deadline is when a held packet leaves in any case.
func deadline(p *packet) instant.Time { return p.due.Add(HoldTimeout) }

func (f *flight) push(p *packet, due instant.Time) {
	p.due, p.order = due, f.order
	f.order++
	heap.Push(&f.queue, p)
}

// next is the departure of the next packet; false if there is none inside.
func (f *flight) next() (instant.Time, bool) {
	var at instant.Time
	found := false
	if len(f.queue) > 0 {
		at, found = f.queue[0].due, true
	}
	for _, p := range f.held {
		if d := deadline(p); !found || d < at {
			at, found = d, true
		}
	}
	return at, found
}

// pop removes the first packet that is due at now or before, or returns nil.
func (f *flight) pop(now instant.Time) *packet {
	f.held = slices.DeleteFunc(f.held, func(p *packet) bool {
		d := deadline(p)
		if d <= now {
			f.push(p, d)
		}
		return d <= now
	})
	if len(f.queue) == 0 || f.queue[0].due > now {
		return nil
	}
	return heap.Pop(&f.queue).(*packet)
}

// packetHeap implements heap.Interface; a pointer in an interface allocates nothing.
type packetHeap []*packet

func (h packetHeap) Len() int { return len(h) }
func (h packetHeap) Less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].order < h[j].order
}
func (h packetHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *packetHeap) Push(x any)   { *h = append(*h, x.(*packet)) }

func (h *packetHeap) Pop() any {
	last := len(*h) - 1
	p := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return p
}
