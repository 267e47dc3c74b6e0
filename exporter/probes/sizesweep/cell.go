package sizesweep

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
)

// Cell is one packet size at one packet rate in one direction.
type Cell struct {
	Direction sample.Direction `json:"-"`
	// PacketBytes is the size of each IP packet, header included.
	PacketBytes int `json:"packet_bytes"`
	// PacketRate is in packets a second.
	PacketRate int `json:"packets_per_second"`
}

// String is "forward: 1024 B x 100/s".
func (c Cell) String() string {
	return fmt.Sprintf("%v: %d B x %d/s", c.Direction, c.PacketBytes, c.PacketRate)
}

// packets is the number of the cell's packets in a time, at least one.
func (c Cell) packets(d time.Duration) int {
	return max(1, int(d/c.interval()))
}

// interval is the time between packets.
func (c Cell) interval() time.Duration { return time.Second / time.Duration(c.PacketRate) }

// bytes is the size of the cell's packets in that time, in IP bytes.
func (c Cell) bytes(d time.Duration) int64 { return int64(c.packets(d)) * int64(c.PacketBytes) }

// segment is the cell as a stream of evenly spaced packets. overhead is the bytes of IP and UDP headers.
func (c Cell) segment(d time.Duration, overhead int) stream.Segment {
	return stream.Segment{PayloadBytes: c.PacketBytes - overhead, Interval: c.interval(), Burst: 1, Bursts: c.packets(d)}
}

// Omission is a cell that was not measured, and the reason in words.
type Omission struct {
	Cell
	DirectionName string `json:"direction"`
	Why           string `json:"reason"`

	// reason is the reason of a run in which no cell can be measured.
	reason string
}

// space is the limits of a run.
type space struct {
	// limits are those of the remote end's token. They count UDP payload, except those of a day, from which the
	// load server reserves the announced IP bytes.
	limits loadcontrol.Limits
	// quota is the rest of the link's quota, in IP bytes; math.MaxInt64: the link has none.
	quota int64
	// overhead is the bytes of IP and UDP headers.
	overhead int
}

// fit divides the cells into those that may be measured and the others. Cells that are too fast, too long or too
// small are left out first. Of the rest as many fit as the remaining data allows, the smallest first, so that a
// small quota gives the largest number of cells.
func (m space) fit(cells []Cell, d time.Duration, repetitions int) (fits []Cell, out []Omission) {
	omit := func(c Cell, reason, why string) { out = append(out, Omission{c, c.Direction.String(), why, reason}) }
	for _, c := range cells {
		if reason, why := m.forbids(c, d); why != "" {
			omit(c, reason, why)
			continue
		}
		fits = append(fits, c)
	}
	slices.SortStableFunc(fits, func(a, b Cell) int { return cmp.Compare(a.bytes(d), b.bytes(d)) })
	var ip int64
	for i, c := range fits {
		ip += int64(repetitions) * c.bytes(d)
		if reason, why := m.exhausted(ip); why != "" {
			for _, c := range fits[i:] {
				omit(c, reason, why)
			}
			return fits[:i], out
		}
	}
	return fits, out
}

// forbids returns why a cell cannot be measured at all; empty: it can.
func (m space) forbids(c Cell, d time.Duration) (reason, why string) {
	payload := c.PacketBytes - m.overhead
	switch {
	case payload < stream.HeaderBytes:
		return runreason.NoResult, fmt.Sprintf("the smallest test packet here has %d bytes", stream.HeaderBytes+m.overhead)
	case m.limits.BytesPerSecond > 0 && float64(payload)*float64(c.PacketRate) > m.limits.BytesPerSecond:
		return runreason.RateLimit, fmt.Sprintf("the token allows %s of payload", unit.BytesPerSecond.Format(m.limits.BytesPerSecond))
	case m.limits.Duration > 0 && d > m.limits.Duration:
		return runreason.TimeLimit, fmt.Sprintf("the token allows %v for a transfer", m.limits.Duration)
	}
	return "", ""
}

// exhausted returns why so many bytes may not be moved; empty: they may.
func (m space) exhausted(ip int64) (reason, why string) {
	switch {
	case ip > m.quota:
		return runreason.Quota, fmt.Sprintf("the link's data quota (quota_bytes) has %s left", unit.Bytes.Format(float64(m.quota)))
	case ip > m.limits.LeftOfDay(): // the announced bytes of a session include headers
		return runreason.DayLimit, fmt.Sprintf("the token has %s left today (per-day)", unit.Bytes.Format(float64(m.limits.LeftOfDay())))
	}
	return "", ""
}
