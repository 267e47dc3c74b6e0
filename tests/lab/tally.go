package lab

import (
	"cmp"
	"slices"

	"oneway.example/exporter/core/instant"
)

// Tally is what a receiver that knows the packets' keys counts of a log, by the RFCs' own
// words. Sent = Received + Lost.
type Tally struct {
	Sent uint64
	// Received packets came uncorrupted, once or more often; of the Lost ones no uncorrupted
	// copy came (RFC 7680 section 2.4).
	Received, Lost uint64
	// Duplicated counts further uncorrupted copies (RFC 5560 section 2), Reordered the first
	// ones whose key is below one that came before (RFC 4737 section 3.3), Corrupted all
	// corrupted copies.
	Duplicated, Reordered, Corrupted uint64
}

// TallyOf counts the packets of a log that is complete (Lab.Drain): no packet is on its way,
// and keys count the packets in the order of sending.
func TallyOf(log []Record) (t Tally) {
	type arrival struct {
		key  uint64
		good bool
		at   instant.Time
	}
	arrivals := make([]arrival, 0, len(log))
	for i := range log {
		r := &log[i]
		if r.Outcome != Delivered {
			continue
		}
		arrivals = append(arrivals, arrival{r.Key, !r.Corrupted, r.Exit.Middle()})
		if r.Duplicated {
			arrivals = append(arrivals, arrival{r.Key, !r.Corrupted, r.Copy.Middle()})
		}
	}
	slices.SortStableFunc(arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	seen, next := make(map[uint64]bool, len(log)), uint64(0)
	for _, a := range arrivals {
		switch {
		case !a.good:
			t.Corrupted++
		case seen[a.key]:
			t.Duplicated++
		default:
			seen[a.key] = true
			t.Received++
			if a.key < next {
				t.Reordered++
			}
			next = max(next, a.key+1)
		}
	}
	t.Sent = uint64(len(log))
	t.Lost = t.Sent - t.Received
	return t
}
