package matrix

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/stream"
)

// Omission is a cell that was not measured, and why in words.
type Omission struct {
	Cell
	Way string `json:"direction"`
	Why string `json:"why"`
}

// room is what a run may use.
type room struct {
	// limits are those of the far end's token; they count UDP payload, but for the day's: of
	// what is left of it the responder sets aside what is announced, which is IP octets.
	limits control.Limits
	// budget is what is left of the link's, in IP octets; negative: it has none.
	budget int64
	// overhead is the octets of IP and UDP headers.
	overhead int
}

// fit divides the cells into those that may be measured and those that may not. Cells that
// are too fast, too long or too small in themselves go first; of the rest, as many as what
// is left of the data allows, those that move the least first: so a small budget yields
// the larger part of the table.
func (m room) fit(cells []Cell, d time.Duration, repetitions int) (fits []Cell, out []Omission) {
	omit := func(c Cell, why string) { out = append(out, Omission{c, c.Direction.String(), why}) }
	for _, c := range cells {
		if why := m.forbids(c, d); why != "" {
			omit(c, why)
			continue
		}
		fits = append(fits, c)
	}
	slices.SortStableFunc(fits, func(a, b Cell) int { return cmp.Compare(a.bytes(d), b.bytes(d)) })
	var ip int64
	for i, c := range fits {
		packets := int64(repetitions) * int64(c.packets(d))
		ip += packets * int64(c.PacketBytes)
		if why := m.exhausted(ip); why != "" {
			for _, c := range fits[i:] {
				omit(c, why)
			}
			return fits[:i], out
		}
	}
	return fits, out
}

// forbids says in words why a cell cannot be measured at all; empty: it can.
func (m room) forbids(c Cell, d time.Duration) string {
	payload := c.PacketBytes - m.overhead
	switch {
	case payload < stream.HeaderBytes:
		return fmt.Sprintf("the smallest test packet here has %d octets", stream.HeaderBytes+m.overhead)
	case m.limits.BytesPerSecond > 0 && float64(payload*c.PacketRate) > m.limits.BytesPerSecond:
		return fmt.Sprintf("the token allows %s of payload", heavy.Rate(m.limits.BytesPerSecond).Words())
	case m.limits.Duration > 0 && d > m.limits.Duration:
		return fmt.Sprintf("the token allows %v for a transfer", m.limits.Duration)
	}
	return ""
}

// exhausted says in words why no more than so many octets may be moved; empty: they may.
func (m room) exhausted(ip int64) string {
	switch {
	case m.budget >= 0 && ip > m.budget:
		return fmt.Sprintf("the link's data budget has %.3g MB left", float64(m.budget)/1e6)
	case m.limits.BytesPerDay > 0 && ip > m.limits.LeftToday: // what is announced of a session counts headers
		return fmt.Sprintf("the token has %.3g MB left today", float64(m.limits.LeftToday)/1e6)
	}
	return ""
}
