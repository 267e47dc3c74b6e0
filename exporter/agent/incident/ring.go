package incident

import (
	"encoding/binary"
	"encoding/json"
	"slices"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
)

// row is a packet, with the columns of record.IncidentPackets.
type row [10]int64

// rowOf returns the row of a packet.
func rowOf(p *record.Packet) row {
	r := row{record.IncidentSeq: int64(p.Seq), record.IncidentSent: int64(p.T1.At), record.IncidentOutcome: int64(p.Outcome), record.IncidentRoundTrip: record.NoTime}
	if trip, ok := p.RoundTrip(); ok {
		r[record.IncidentRoundTrip] = int64(trip)
	}
	for i, d := range [...]*sample.Delay{&p.Forward, &p.Reverse} {
		at := record.IncidentForward + i*(record.IncidentReverse-record.IncidentForward)
		r[at], r[at+1], r[at+2] = record.NoTime, record.NoTime, int64(d.Reason)
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
		for len(g.blocks) > 1 && (g.size() > most || r[record.IncidentSent]-g.blocks[0].newest > int64(Span)) {
			g.blocks = slices.Delete(g.blocks, 0, 1)
		}
	}
	b := &g.blocks[len(g.blocks)-1]
	for i, v := range r {
		b.data = binary.AppendVarint(b.data, v-g.last[i])
	}
	g.last, b.newest = *r, max(b.newest, r[record.IncidentSent])
}

// size is the size of the ring in bytes.
func (g *ring) size() (bytes int) {
	for _, b := range g.blocks {
		bytes += cap(b.data)
	}
	return bytes
}

// rows are the packets of the last span, in the order in which they were added.
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
	return slices.DeleteFunc(all, func(r row) bool { return newest-r[record.IncidentSent] > int64(Span) })
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
			text := record.IncidentPackets.Columns[i].Text
			switch {
			case i == record.IncidentSent:
				one[i] = v - int64(t.begin)
			case text != nil:
				one[i] = text(v)
			case v != record.NoTime:
				one[i] = v
			}
		}
		all = append(all, one)
	}
	return json.Marshal(all)
}
