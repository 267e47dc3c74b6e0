package point

import (
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/metric"
	"oneway.example/exporter/record"
)

// Thin limits the points of a transfer.
type Thin struct {
	// First is the time from the begin of the transfer of which every packet has a point, unless these alone are more than Most.
	First time.Duration
	// Most is the largest number of points of a transfer; 0: no limit.
	Most int
}

// Rows emits the packets of a transfer. A packet that was not sent has no point.
func (r *Raw) Rows(from *record.Rows, thin Thin, emit func(*Point)) {
	p := r.begin(RunPacket, Tag{metric.Direction, from.Direction.String()}, Tag{metric.Path, from.Path}, Tag{metric.Probe, from.Probe})
	run, last := Text(from.Run), r.times.of(p)
	sent := 0
	for i := range from.Rows {
		if from.Rows[i].Sent != record.NoTime {
			sent++
		}
	}
	step := thin.step(from.Rows, sent)
	for i, done := 0, 0; i < len(from.Rows); i++ {
		row := &from.Rows[i]
		if row.Sent == record.NoTime {
			continue
		}
		every := step.at(done, row.Sent, sent)
		done++
		if every == 0 {
			continue
		}
		p.At = last.unique(from.Begin.Add(time.Duration(row.Sent)))
		p.Fields = row1(append(p.Fields[:0], Field{RunField, run}), row)
		p.Fields = Int(p.Fields, "every", int64(every*max(from.Every, 1)))
		emit(p)
	}
}

// row1 appends the fields of a packet.
func row1(to []Field, row *record.Row) []Field {
	to = Int(to, "seq", int64(row.Seq))
	to = Int(to, "segment", int64(row.Segment))
	to = Int(to, "ip_bytes", int64(row.IPBytes))
	to = Int(to, "copies", int64(row.Copies))
	to = Int(to, "damage", int64(row.Damage))
	lost := int64(0)
	if row.Arrived == record.NoTime {
		lost = 1
	} else {
		to = Float(to, "delay_seconds", seconds(row.Arrived-row.Sent))
	}
	return append(to, Field{"lost", lineprotocol.IntValue(lost)})
}

// steps is which packets of a transfer have a point: the first ones, and then each every-th.
type steps struct {
	first int // number of packets of which each has a point
	every int // 0: no others
}

// step finds the steps for sent packets.
func (t Thin) step(rows []record.Row, sent int) steps {
	if t.Most <= 0 || sent <= t.Most {
		return steps{first: sent}
	}
	first := 0
	for i := range rows {
		if at := rows[i].Sent; at != record.NoTime {
			if time.Duration(at) >= t.First {
				break
			}
			first++
		}
	}
	if first >= t.Most {
		first = 0
	}
	most := t.Most - first
	return steps{first, (sent - first + most - 1) / most}
}

// at is the number of packets that the one with this index represents; 0: it has no point.
func (s steps) at(index int, _ int64, sent int) int {
	switch {
	case index < s.first:
		return 1
	case (index-s.first)%s.every != 0:
		return 0
	}
	return min(s.every, sent-index)
}
