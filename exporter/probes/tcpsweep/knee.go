package tcpsweep

import (
	"math"
	"slices"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/exporter/probe/report"
)

// Knee is the smallest buffer that reaches 95 % of the best throughput, of one direction and congestion control. A cell counts
// with the smaller of its buffers, as the kernel has limited them; with both auto-tuned it has none.
type Knee struct {
	Direction         sample.Direction `json:"-"`
	DirectionName     string           `json:"direction"`
	CongestionControl string           `json:"congestion_control"`
	// Buffer is by the means; nil: auto-tuning alone reaches it.
	Buffer *int64 `json:"buffer_bytes,omitempty"`
	// Above and AtMost hold with a confidence of at least 96 %, by the spread of the repetitions; nil: that end is not known.
	Above  *int64 `json:"more_than_bytes,omitempty"`
	AtMost *int64 `json:"at_most_bytes,omitempty"`
	// Overlap: the repetitions cannot tell, as they are too few, as one of them ended early and would have changed the mean, or
	// because they vary too much for a decision between neighboring sizes.
	Overlap bool `json:"undecided"`
	// Best is the mean throughput of the cells that overlap the best one, and BDP that times the least RTT of all cells of the
	// direction; nil: not known, as where buffers limited the best cell and none is larger.
	Best float64  `json:"best_throughput_bytes_per_second"`
	BDP  *float64 `json:"bandwidth_delay_product_bytes,omitempty"`
	// held: the largest buffer had the best throughput, and limited the sender: the path may carry more.
	held bool
}

// unlimited is the buffer of cells with auto-tuning at both ends.
const unlimited = math.MaxInt64

// fewest repetitions say something about their spread.
const fewest = 3

// buffer is the smaller buffer in effect.
func (m *MeasuredCell) buffer() int64 {
	least := int64(unlimited)
	for _, b := range []tcpsocket.Buffer{m.Send, m.Receive} {
		if b.Asked > 0 {
			least = min(least, int64(b.Effective/2))
		}
	}
	return least
}

// knees computes those of all directions and congestion controls, in the order of the cells.
func knees(cells []MeasuredCell) (all []Knee) {
	type key struct {
		direction sample.Direction
		name      string
	}
	var keys []key
	by, rttMin, few, filled := map[key]map[int64][]float64{}, map[sample.Direction]float64{}, map[key]bool{}, map[key]map[int64]bool{}
	for i := range cells {
		m := &cells[i]
		if m.RTTMin != nil && (rttMin[m.Direction] == 0 || *m.RTTMin < rttMin[m.Direction]) {
			rttMin[m.Direction] = *m.RTTMin
		}
		if m.Throughput == nil {
			continue
		}
		at := key{m.Direction, m.name()}
		if by[at] == nil {
			keys, by[at], filled[at] = append(keys, at), map[int64][]float64{}, map[int64]bool{}
		}
		if m.Limited[tcpstate.LimitReceiver]+m.Limited[tcpstate.LimitSendBuffer] <= 0.5 {
			filled[at][m.buffer()] = true
		}
		counted := 0
		for _, one := range m.Repetitions {
			if one.Partial == "" && one.Throughput != nil {
				by[at][m.buffer()] = append(by[at][m.buffer()], *one.Throughput)
				counted++
			}
		}
		few[at] = few[at] || counted < fewest || counted < len(m.Repetitions)
	}
	for _, at := range keys {
		var sizes []int64
		var swept []tcpstate.Cell
		for buffer, rates := range by[at] {
			sizes, swept = append(sizes, buffer), append(swept, tcpstate.Cell{Buffer: buffer, Rates: rates})
		}
		found, ok := tcpstate.FindKnee(swept)
		if !ok {
			continue
		}
		slices.Sort(sizes)
		knee := Knee{Direction: at.direction, DirectionName: at.direction.String(), CongestionControl: at.name, Buffer: finite(found.Buffer), Best: found.Best, Overlap: true}
		if !few[at] {
			knee.Above, knee.AtMost = finite(found.Above), finite(found.AtMost)
			i := slices.Index(sizes, found.Buffer)
			knee.Overlap = found.AtMost != found.Buffer || i > 0 && found.Above != sizes[i-1]
		}
		knee.held = found.Buffer == sizes[len(sizes)-1] && !filled[at][found.Buffer]
		if bdp, ok := tcpstate.BDP(found.Best, time.Duration(rttMin[at.direction]*1e9)); ok && !knee.held {
			knee.BDP = &bdp
		}
		all = append(all, knee)
	}
	return all
}

// finite returns nil for auto-tuning, and for an unknown end.
func finite(buffer int64) *int64 {
	if buffer == 0 || buffer == unlimited {
		return nil
	}
	return &buffer
}

// numbers are the buffer: "128 KiB", or the interval that the repetitions leave.
func (k *Knee) numbers() []report.Number {
	size := func(label string, bytes *int64) report.Number {
		return report.Number{Label: label, Value: new(float64(*bytes)), Unit: unit.BufferBytes}
	}
	switch {
	case !k.Overlap && k.Buffer == nil:
		return []report.Number{{Text: auto}}
	case !k.Overlap:
		return []report.Number{size("", k.Buffer)}
	}
	all := []report.Number{{Text: "cannot tell"}}
	if k.Above != nil {
		all = append(all, size(">", k.Above))
	}
	if k.AtMost != nil {
		all = append(all, size("≤", k.AtMost))
	}
	return all
}
