package incident

import (
	"slices"
	"time"

	"oneway.example/exporter/core/record"
)

// Constants of floors; see the package documentation.
const (
	floorTime    = 5 * time.Minute // of a block
	floorPackets = 10              // in a block, at least
	floorNew     = 3               // blocks that must agree
	floorBlocks  = 12              // before these, at most: an hour
	minFloorStep = 5 * time.Millisecond
)

// floor finds changes of the smallest round trip of a path that stay.
type floor struct {
	begun   time.Time // of the block; zero: it has no packet
	packets int
	least   time.Duration // of the block
	blocks  []floorBlock  // the oldest one first
}

// floorBlock is the smallest round trip of a time.
type floorBlock struct {
	begun time.Time
	least time.Duration
}

// floorStep is a change of the smallest round trip since a time.
type floorStep struct {
	since         time.Time
	before, after time.Duration
}

// pause discards the current block: its packets shared the link with a load test.
func (f *floor) pause() { f.begun, f.packets = time.Time{}, 0 }

// add adds a packet. changed: the block before it was the last one of a change.
func (f *floor) add(p *record.Packet, now time.Time) (found floorStep, changed bool) {
	if p.Outcome != record.Received {
		return found, false
	}
	trip, known := p.RoundTrip()
	if !known {
		return found, false
	}
	if f.packets >= floorPackets && now.Sub(f.begun) >= floorTime {
		f.blocks = append(f.blocks, floorBlock{f.begun, f.least})
		f.pause()
		found, changed = f.judge()
	}
	if f.packets == 0 {
		f.begun, f.least = now, trip
	}
	f.packets++
	f.least = min(f.least, trip)
	return found, changed
}

// judge compares the last blocks with those before. The last blocks after a change are all that is known of the new floor.
func (f *floor) judge() (found floorStep, changed bool) {
	if more := len(f.blocks) - floorBlocks - floorNew; more > 0 {
		f.blocks = slices.Delete(f.blocks, 0, more)
	}
	split := len(f.blocks) - floorNew
	if split < floorNew {
		return found, false
	}
	last := f.blocks[split:]
	before, low, high := sorted(f.blocks[:split])[(split-1)/2], sorted(last)[0], sorted(last)[floorNew-1]
	step := max(minFloorStep, before/5)
	if low <= before+step && high >= before-step {
		return found, false
	}
	found = floorStep{since: last[0].begun, before: before, after: low}
	f.blocks = slices.Clone(last)
	return found, true
}

// sorted are the smallest round trips of blocks, the smallest one first.
func sorted(of []floorBlock) (all []time.Duration) {
	for _, b := range of {
		all = append(all, b.least)
	}
	slices.Sort(all)
	return all
}
