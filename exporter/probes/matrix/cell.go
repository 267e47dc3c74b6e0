package matrix

import (
	"fmt"
	"math/rand/v2"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// Cell is one packet size at one packet rate in one direction.
type Cell struct {
	Direction sample.Direction `json:"-"`
	// PacketBytes is the size of each IP packet, header included.
	PacketBytes int `json:"packet_bytes"`
	// PacketRate is in packets a second.
	PacketRate int `json:"packet_rate"`
}

// String is "forward: 1024 B x 100/s".
func (c Cell) String() string {
	return fmt.Sprintf("%v: %d B x %d/s", c.Direction, c.PacketBytes, c.PacketRate)
}

// packets is how many packets the cell has in a time, one at the least.
func (c Cell) packets(d time.Duration) int {
	return max(1, int(d/c.interval()))
}

// interval is the time from packet to packet.
func (c Cell) interval() time.Duration { return time.Second / time.Duration(c.PacketRate) }

// bytes is what it moves in that time, in IP octets.
func (c Cell) bytes(d time.Duration) int64 { return int64(c.packets(d)) * int64(c.PacketBytes) }

// segment is the cell as a stream: one packet after the other, evenly. overhead is the
// octets of IP and UDP headers.
func (c Cell) segment(d time.Duration, overhead int) stream.Segment {
	return stream.Segment{
		PayloadBytes: c.PacketBytes - overhead,
		Interval:     c.interval(),
		Burst:        1,
		Bursts:       c.packets(d),
	}
}

// order is the sequence in which cells are measured, as indices: each repetition of all of
// them in an order of its own by chance.
func order(cells, repetitions int, rng *rand.Rand) (turns []int) {
	for range repetitions {
		turns = append(turns, rng.Perm(cells)...)
	}
	return turns
}
