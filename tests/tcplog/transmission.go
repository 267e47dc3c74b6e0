package tcplog

import (
	"cmp"
	"slices"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/lab"
)

// Transmission is a segment with payload that entered the link.
type Transmission struct {
	// Begin and End are its place in the payload of the connection.
	Begin, End int64
	lab.Record
}

// Transmissions returns all with payload, in the order of their entry.
func (c *Connection) Transmissions() []Transmission {
	all := make([]Transmission, 0, len(c.data))
	for i := range c.data {
		begin := c.offset(number(&c.data[i]))
		all = append(all, Transmission{begin, begin + payload(&c.data[i]), c.data[i]})
	}
	return all
}

// Byte is the truth of a byte of a connection.
type Byte struct {
	// Entries are those of the segments with it, by time.
	Entries []instant.Time
	// Arrival is the exit of the first copy that was delivered, and Lost is set if none was.
	Arrival lab.Interval
	Lost    bool
}

// Bytes returns the truth of bytes, which increase: those that end at these offsets in the payload of the connection.
func (c *Connection) Bytes(offsets []int64) []Byte {
	all := make([]Byte, len(offsets))
	for i := range all {
		all[i].Lost = true
	}
	for _, x := range c.Transmissions() {
		i, _ := slices.BinarySearch(offsets, x.Begin+1)
		for ; i < len(offsets) && offsets[i] <= x.End; i++ {
			b := &all[i]
			b.Entries = append(b.Entries, x.Entry)
			if x.Outcome == lab.Delivered && (b.Lost || x.Exit.Middle() < b.Arrival.Middle()) {
				b.Arrival, b.Lost = x.Exit, false
			}
		}
	}
	for i := range all {
		slices.SortFunc(all[i].Entries, cmp.Compare[instant.Time])
	}
	return all
}
