package soak

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// point is a value at a time.
type point struct {
	at    time.Time
	value float64
}

// parts is how many the later half is cut into for a slope. Memory is a saw, whose teeth are
// collections: the least value of each part is what stays.
const parts = 12

// fit is the straight line of least squares through the least values of the parts of the later
// half: its slope in units a second, and the slope's standard error. Too few points have none.
func fit(all []point) (slope, deviation float64, ok bool) {
	if len(all) < 2 {
		return 0, 0, false
	}
	begin, end := all[0].at, all[len(all)-1].at
	half := end.Sub(begin) / 2
	least := make([]point, parts)
	for _, p := range all {
		since := p.at.Sub(begin) - half
		if since < 0 || half <= 0 {
			continue
		}
		i := min(int(int64(since)*parts/int64(half)), parts-1)
		if least[i].at.IsZero() || p.value < least[i].value {
			least[i] = p
		}
	}
	// A busy machine scrapes less often than it is asked to.
	least = slices.DeleteFunc(least, func(p point) bool { return p.at.IsZero() })
	if len(least) < parts/2 {
		return 0, 0, false
	}
	var n, x, y float64
	for _, p := range least {
		n, x, y = n+1, x+p.at.Sub(begin).Seconds(), y+p.value
	}
	x, y = x/n, y/n
	var xx, xy float64
	for _, p := range least {
		dx := p.at.Sub(begin).Seconds() - x
		xx, xy = xx+dx*dx, xy+dx*(p.value-y)
	}
	slope = xy / xx
	var rest float64
	for _, p := range least {
		d := p.value - y - slope*(p.at.Sub(begin).Seconds()-x)
		rest += d * d
	}
	return slope, math.Sqrt(rest / (n - 2) / xx), true
}

// table is what a soak ends with.
type table struct{ text strings.Builder }

func newTable() *table {
	b := &table{}
	b.row("quantity", "begin", "end", "slope per min", "bound", "verdict")
	return b
}

func (b *table) row(cells ...string) { fmt.Fprintln(&b.text, strings.Join(cells, "\t")) }

func (b *table) String() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, b.text.String())
	w.Flush()
	return out.String()
}

func mib(bytes float64) string { return fmt.Sprintf("%.2f MiB", bytes/(1<<20)) }

func TestSlopeIsThatOfTheLaterHalfsFloor(t *testing.T) {
	begin := time.Unix(1000, 0)
	var all []point
	for i := range 121 {
		x := float64(i) * 5
		saw := 1000 * float64(i%4)
		warm := 50 * math.Max(0, 300-x) // it grows no more in the later half
		all = append(all, point{begin.Add(time.Duration(i) * 5 * time.Second), 1e6 - warm + 3*x + saw})
	}
	slope, deviation, ok := fit(all)
	if !ok || math.Abs(slope-3) > 4*deviation+0.2 || deviation > 1 {
		t.Errorf("slope %v +- %v (%v), want 3", slope, deviation, ok)
	}
	if _, _, ok := fit(all[:3]); ok {
		t.Error("three points have a slope")
	}
}
