package heavy

import (
	"strconv"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// MaxRows is how many packets a run's report has rows for, all transfers together. Beyond
// it, every second row of all transfers is left out, and again until they fit;
// Series.Every says of how many packets one was kept.
const MaxRows = 100_000

// Series is a transfer as the report has it.
type Series struct {
	Direction string           `json:"direction"`
	Plan      stream.Plan      `json:"plan"`
	Sent      *stream.Sent     `json:"sent"`
	Received  *stream.Received `json:"received"`
	Counts    Counts           `json:"counts"`
	Near      Clocks           `json:"near_clock"`
	Far       Clocks           `json:"far_clock"`
	Shared    bool             `json:"one_clock"`
	Cut       string           `json:"cut,omitempty"`
	// Begin is what the times of the rows are counted from.
	Begin instant.Time `json:"begin_ns"`
	// Every: one row stands for so many packets; 1: all are here.
	Every   int      `json:"every"`
	Columns []string `json:"columns"`
	Rows    []Row    `json:"rows"`
}

// Row is one packet. Times are nanoseconds after Series.Begin; Sent or Arrived of -1<<63
// is none, null in JSON.
type Row struct {
	Seq           uint32
	Segment       uint16
	Copies        uint16
	IPBytes       uint32
	Sent, Arrived int64
	Damage        stream.Damage
}

const none = -1 << 63

func columns() []string {
	return []string{"seq", "segment", "ip_bytes", "sent_ns", "arrived_ns", "copies", "damage"}
}

// MarshalJSON is an array in the order of Columns.
func (r Row) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 64), '[')
	b = strconv.AppendUint(b, uint64(r.Seq), 10)
	b = strconv.AppendUint(append(b, ','), uint64(r.Segment), 10)
	b = strconv.AppendUint(append(b, ','), uint64(r.IPBytes), 10)
	b = appendTime(append(b, ','), r.Sent)
	b = appendTime(append(b, ','), r.Arrived)
	b = strconv.AppendUint(append(b, ','), uint64(r.Copies), 10)
	b = strconv.AppendUint(append(b, ','), uint64(r.Damage), 10)
	return append(b, ']'), nil
}

func appendTime(b []byte, ns int64) []byte {
	if ns == none {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, ns, 10)
}

// series is the transfer for the report, with a row for each packet of which every is one.
func (t *Transfer) series(every int) *Series {
	s := &Series{
		Direction: t.Direction.String(), Plan: t.Plan, Sent: t.Sent, Received: t.Received, Counts: t.Counts,
		Near: t.Near, Far: t.Far, Shared: t.Shared, Cut: t.Cut,
		Begin: t.Sent.Begin, Every: every, Columns: columns(),
		Rows: make([]Row, 0, len(t.Packets)/every+1),
	}
	after := func(x sample.Stamp) int64 {
		if !x.Present() {
			return none
		}
		return int64(x.At.Sub(s.Begin))
	}
	for i := 0; i < len(t.Packets); i += every {
		p := &t.Packets[i]
		s.Rows = append(s.Rows, Row{
			Seq: p.Seq, Segment: p.Segment, Copies: p.Copies, IPBytes: p.IPBytes,
			Sent: after(p.Sent), Arrived: after(p.Arrived), Damage: p.Damage,
		})
	}
	return s
}

// recorder keeps the series of a run within MaxRows.
type recorder struct {
	series []*Series
	every  int
	rows   int
	most   int
}

// add takes a transfer. The records of single packets are not kept, only the rows.
func (r *recorder) add(t *Transfer) {
	s := t.series(max(1, r.every))
	sent, received := *t.Sent, *t.Received
	sent.Packets, received.Packets = nil, nil
	s.Sent, s.Received = &sent, &received
	r.series = append(r.series, s)
	r.rows += len(s.Rows)
	for r.most > 0 && r.rows > r.most && r.rows > len(r.series) {
		r.thin()
	}
}

// thin drops every second row of all series.
func (r *recorder) thin() {
	r.every, r.rows = 2*max(1, r.every), 0
	for _, s := range r.series {
		kept := make([]Row, 0, (len(s.Rows)+1)/2)
		for i := 0; i < len(s.Rows); i += 2 {
			kept = append(kept, s.Rows[i])
		}
		s.Rows, s.Every = kept, 2*s.Every
		r.rows += len(kept)
	}
}
