package incident

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/record"
	"oneway.example/exporter/sample"
)

// row is a packet as the values of columns. Times are nanoseconds; outcome and reasons are enumerations.
type row [10]int64

// Indices in a row; the delays' bounds and reasons follow them.
const (
	seqAt       = 0
	sentAt      = 1
	outcomeAt   = 2
	forwardAt   = 3
	reverseAt   = 6
	roundTripAt = 9
)

// undefined is an undefined time.
const undefined = math.MinInt64

// columns are the names of a row's values in a report. An undefined time is null there; the reason explains it.
func columns() []string {
	return []string{
		"seq", "sent_ns", "outcome", "forward_ns", "forward_error_bound_ns", "forward_reason",
		"reverse_ns", "reverse_error_bound_ns", "reverse_reason", "round_trip_ns",
	}
}

// rowOf returns the row of a packet.
func rowOf(p *record.Packet) row {
	r := row{seqAt: int64(p.Seq), sentAt: int64(p.T1.At), outcomeAt: int64(p.Outcome), roundTripAt: undefined}
	if trip, ok := p.RoundTrip(); ok {
		r[roundTripAt] = int64(trip)
	}
	for i, d := range [...]*sample.Delay{&p.Forward, &p.Reverse} {
		at := forwardAt + i*(reverseAt-forwardAt)
		r[at], r[at+1], r[at+2] = undefined, undefined, int64(d.Reason)
		if d.OK() {
			r[at], r[at+1] = int64(d.Value), int64(d.Bound)
		}
	}
	return r
}

// ring holds the newest packets of a path in blocks, each encoded independently. Written data does not change. The
// zero value is empty.
type ring struct {
	blocks []block // the oldest first
	last   row     // of the newest block
}

// block holds consecutive rows, each encoded as its difference from the previous one.
type block struct {
	data   []byte
	newest int64 // send time of its last packet
}

const (
	blocks  = 16                                 // of a full ring
	longest = len(row{}) * binary.MaxVarintLen64 // bytes of a row
)

// add appends r, and keeps the ring within most bytes.
func (g *ring) add(r *row, most int) {
	if n := len(g.blocks); n == 0 || len(g.blocks[n-1].data)+longest > cap(g.blocks[n-1].data) {
		g.blocks, g.last = append(g.blocks, block{data: make([]byte, 0, max(most/blocks, longest))}), row{}
		for len(g.blocks) > 1 && (g.size() > most || r[sentAt]-g.blocks[0].newest > int64(span)) {
			g.blocks = slices.Delete(g.blocks, 0, 1)
		}
	}
	b := &g.blocks[len(g.blocks)-1]
	for i, v := range r {
		b.data = binary.AppendVarint(b.data, v-g.last[i])
	}
	g.last, b.newest = *r, max(b.newest, r[sentAt])
}

// size is the size of the ring in bytes.
func (g *ring) size() (bytes int) {
	for _, b := range g.blocks {
		bytes += cap(b.data)
	}
	return bytes
}

// rows are the packets of the last span, the oldest first.
func (g *ring) rows() (all []row) {
	newest := int64(0)
	for _, b := range g.blocks {
		var r row
		for rest := b.data; len(rest) > 0; all = append(all, r) {
			for i := range r {
				v, n := binary.Varint(rest)
				r[i] += v
				rest = rest[n:]
			}
		}
		newest = max(newest, b.newest)
	}
	return slices.DeleteFunc(all, func(r row) bool { return newest-r[sentAt] > int64(span) })
}

// table is expanded from the ring only when it is written, so that a waiting report takes no additional memory.
type table struct {
	of    ring
	begin instant.Time // reference of the send times
}

// MarshalJSON is an array of arrays in the order of columns.
func (t table) MarshalJSON() ([]byte, error) {
	all := [][]any{}
	for _, r := range t.of.rows() {
		one := make([]any, len(r))
		for i, v := range r {
			switch {
			case i == sentAt:
				one[i] = v - int64(t.begin)
			case i == outcomeAt:
				one[i] = record.Outcome(v).String()
			case i == forwardAt+2, i == reverseAt+2:
				one[i] = sample.Reason(v).String()
			case v != undefined:
				one[i] = v
			}
		}
		all = append(all, one)
	}
	return json.Marshal(all)
}
