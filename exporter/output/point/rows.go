package point

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
)

// Thin limits the points of a transfer.
type Thin struct {
	// First is the time from the begin of the transfer of which every packet has a point, unless these alone are more than Most.
	First time.Duration
	// Most is the largest number of points of a transfer; 0: no limit.
	Most int
}

// Rows emits the packets of a transfer in the order of sending. A packet that was not sent has no point.
func (r *Raw) Rows(from *record.Rows, thin Thin, emit func(*Point)) {
	p := r.begin(RunPacket, Tag{metric.Direction, from.Direction.String()}, Tag{metric.Path, from.Path}, Tag{metric.Probe, from.Probe})
	run, last := Text(from.Run), r.times.of(p)
	rows := sentInOrder(from.Rows)
	steps := thin.steps(rows)
	for i := range rows {
		every := steps.at(i, len(rows))
		if every == 0 {
			continue
		}
		p.At = last.unique(from.Begin.Add(time.Duration(rows[i].Sent)))
		p.Fields = r.appendRow(append(p.Fields[:0], Field{RunField, run}), &rows[i], &from.Bound)
		p.Fields = Int(p.Fields, "every", int64(every*max(from.Every, 1)))
		emit(p)
	}
}

// sentInOrder are the sent packets in the order of sending. It copies only if that is not the order of rows.
func sentInOrder(rows []record.Row) []record.Row {
	bySent := func(a, b record.Row) int { return cmp.Compare(a.Sent, b.Sent) }
	if !slices.IsSortedFunc(rows, bySent) {
		rows = slices.Clone(rows)
		slices.SortStableFunc(rows, bySent)
	}
	first := 0 // after those with NoTime, the least number
	for first < len(rows) && rows[first].Sent == record.NoTime {
		first++
	}
	return rows[first:]
}

// appendRow appends the fields of a packet; bound is that of all delays of the transfer.
func (r *Raw) appendRow(to []Field, row *record.Row, bound *sample.Bound) []Field {
	to = Int(to, "seq", int64(row.Seq))
	to = Float(to, "sent_seconds", seconds(row.Sent))
	to = Int(to, "segment", int64(row.Segment))
	to = Int(to, "ip_bytes", int64(row.IPBytes))
	to = Int(to, "copies", int64(row.Copies))
	to = Int(to, "damage", int64(row.Damage))
	if row.Arrived != record.NoTime && row.Copies > 0 { // the delay of a damaged copy has no bound
		to = Float(to, "delay_seconds", seconds(row.Arrived-row.Sent))
		if bound.Reason == sample.OK {
			to = Float(to, "delay_error_bound_seconds", bound.Error.Seconds())
		}
		to = append(to, Field{"delay_reason", r.texts.text(bound.Reason.String())})
	}
	lost := int64(0)
	if row.Copies == 0 { // a packet that arrived may have no timestamp
		lost = 1
	}
	return Int(to, "lost", lost)
}

// steps is which packets of a transfer have a point: the first ones, and then each every-th.
type steps struct {
	first int
	every int // 0: there are no others
}

// steps finds the steps for sent packets.
func (t Thin) steps(rows []record.Row) steps {
	sent := len(rows)
	if t.Most <= 0 || sent <= t.Most {
		return steps{first: sent}
	}
	first := sort.Search(sent, func(i int) bool { return time.Duration(rows[i].Sent) >= t.First })
	if first >= t.Most {
		first = 0
	}
	most := t.Most - first
	return steps{first, (sent - first + most - 1) / most}
}

// at is the number of packets that the one with this index represents; 0: it has no point.
func (s steps) at(index, sent int) int {
	switch {
	case index < s.first:
		return 1
	case (index-s.first)%s.every != 0:
		return 0
	}
	return min(s.every, sent-index)
}
