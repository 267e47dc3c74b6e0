package capacity

import (
	"math"
	"slices"
)

// groups is how a train falls into groups of packets without a gap.
type groups struct {
	// small counts the gaps that are none, late those of them in the train's last quarter, of
	// two gaps at the least, several the groups of more than one packet.
	small, late, several int
	// between are the times from group to group, begin to begin.
	between []float64
}

func groupsOf(gaps []float64, none float64) (g groups) {
	g.between = make([]float64, 0, len(gaps))
	since, late := 0.0, min(len(gaps)*3/4, len(gaps)-2)
	within := false
	for i, gap := range gaps {
		since += gap
		if gap <= none {
			g.small++
			if !within {
				g.several++
			}
			if within = true; i >= late {
				g.late++
			}
			continue
		}
		within = false
		g.between = append(g.between, since)
		since = 0
	}
	return g
}

// throughout tells whether there are groups to the train's end: at its begin alone they are
// what a token bucket let pass.
func (g *groups) throughout() bool { return 10*g.late >= g.small }

// period is the median time between groups.
func (g *groups) period() float64 {
	if len(g.between) == 0 {
		return 0
	}
	s := slices.Clone(g.between)
	slices.Sort(s)
	return s[len(s)/2]
}

// widest is the longest time between groups; of a single group, without end.
func (g *groups) widest() float64 {
	if len(g.between) == 0 {
		return math.Inf(1)
	}
	return slices.Max(g.between)
}

// periodic tells whether the times between groups are multiples of one.
func (g *groups) periodic() bool {
	period, fit := g.period(), 0
	for _, b := range g.between {
		if times := b / period; math.Abs(times-math.Round(times)) < irregular && times > 0.5 {
			fit++
		}
	}
	return len(g.between) >= 2 && float64(fit) >= regular*float64(len(g.between))
}
