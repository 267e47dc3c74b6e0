package tcpstate

import (
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

func TestKneeIsTheSmallestBufferThatReachesTheBest(t *testing.T) {
	k := func(buffers, rate int64, spread float64) Cell {
		r := float64(rate)
		return Cell{buffers << 10, []float64{r, r + spread, r - spread}}
	}
	for _, c := range []struct {
		what  string
		cells []Cell
		want  Knee
	}{
		{"clear, in any order", []Cell{k(512, 990, 1), k(17, 150, 1), k(64, 560, 1), k(128, 1000, 1)}, Knee{128 << 10, 64 << 10, 128 << 10, 1000}},
		{"quartiles overlap", []Cell{k(17, 150, 1), k(64, 940, 20), k(128, 960, 20), k(256, 1000, 1)}, Knee{128 << 10, 17 << 10, 256 << 10, 1000}},
		{"smallest is enough", []Cell{k(17, 1000, 1), k(64, 1000, 1)}, Knee{17 << 10, 0, 17 << 10, 1000}},
		{"never reliable", []Cell{k(17, 800, 100), k(64, 1000, 300)}, Knee{64 << 10, 0, 0, 900}},
		{"varies, far above", []Cell{k(17, 100, 1), k(64, 1000, 300)}, Knee{64 << 10, 17 << 10, 64 << 10, 1000}},
		// Larger buffers can be worse: loss by the own queue.
		{"falls again", []Cell{k(17, 150, 1), k(128, 1000, 1), k(1024, 700, 1)}, Knee{128 << 10, 17 << 10, 128 << 10, 1000}},
		{"a cell failed", []Cell{k(17, 150, 1), {Buffer: 64 << 10}, k(128, 1000, 1)}, Knee{128 << 10, 17 << 10, 128 << 10, 1000}},
	} {
		if got, ok := FindKnee(c.cells); !ok || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.what, got, ok, c.want)
		}
	}
	for _, none := range [][]Cell{nil, {k(17, 1, 0)}, {{Buffer: 1}, {Buffer: 2}}, {k(1, 0, 0), k(2, 0, 0)}} {
		if got, ok := FindKnee(none); ok {
			t.Errorf("%v: %+v", none, got)
		}
	}
}

// TestKneeIsDecidedWronglyInAtMostFivePercent has nine sizes. The last five reach the plateau, and the one before
// them reaches a share of it.
func TestKneeIsDecidedWronglyInAtMostFivePercent(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 3))
	const runs = 1000
	for _, share := range []float64{0.5, 0.9, 0.94, 0.96, 1} {
		for _, sigma := range []float64{0.01, 0.03, 0.05, 0.1} {
			for _, repetitions := range []int{3, 5, 10} {
				decided, wrong, outside := 0, 0, 0
				for range runs {
					truth, cells := int64(5), []Cell(nil)
					for i, mean := range []float64{0.1, 0.2, 0.4, share, 1, 1, 1, 1, 1} {
						c := Cell{Buffer: int64(i + 1)}
						for range repetitions {
							c.Rates = append(c.Rates, 1e6*mean*(1+sigma*rng.NormFloat64()))
						}
						cells = append(cells, c)
					}
					if share >= 0.95 {
						truth = 4
					}
					k, _ := FindKnee(cells)
					if k.AtMost == k.Above+1 {
						if decided++; k.Buffer != k.AtMost {
							t.Fatalf("%+v: the buffer is not in the interval", k)
						}
					}
					switch inside := k.Above < truth && (k.AtMost == 0 || k.AtMost >= truth); {
					case inside:
					case k.AtMost == k.Above+1:
						wrong++
					default:
						outside++
					}
				}
				t.Logf("share %.2f, sigma %.2f, %d repetitions: decided %d of %d, wrong %d, intervals without the knee %d", share, sigma, repetitions, decided, runs, wrong, outside)
				if wrong > runs/20 || outside > (runs-decided)/20+5 {
					t.Errorf("share %.2f, sigma %.2f, %d repetitions: wrong %d, intervals without the knee %d of %d", share, sigma, repetitions, wrong, outside, runs-decided)
				}
				easy := share < 0.94 || share == 1
				least := map[float64]int{0.01: runs * 9 / 10, 0.03: map[int]int{3: runs / 25, 5: runs / 6, 10: runs * 6 / 10}[repetitions]}[sigma]
				if easy && decided < least {
					t.Errorf("share %.2f, sigma %.2f, %d repetitions: decided %d of %d", share, sigma, repetitions, decided, runs)
				}
			}
		}
	}
}

// Nor is it where cells near the plateau are unequal: most nearly reach it, or larger buffers reduce the throughput.
func TestKneeOfUnequalCellsIsInItsInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 4))
	const runs = 500
	for _, c := range []struct {
		shape []float64
		knee  int64
	}{
		{[]float64{.5, .8, .94, 1, 1, 1}, 4},
		{[]float64{.5, .8, .93, .96, .98, 1}, 4},
		{[]float64{.6, .8, .90, .92, .94, .96, .98, 1}, 6},
		{[]float64{.5, .94, .94, .94, .94, .94, 1}, 7},
		{[]float64{.9, .92, .94, .96, .98, 1}, 4},
		{[]float64{.25, .5, .94, 1, .97, .94, .91}, 4},
	} {
		for _, sigma := range []float64{.01, .03, .05} {
			for _, repetitions := range []int{3, 5, 10} {
				wrong := 0
				for range runs {
					var cells []Cell
					for i, mean := range c.shape {
						one := Cell{Buffer: int64(i + 1)}
						for range repetitions {
							one.Rates = append(one.Rates, 1e6*mean*(1+sigma*rng.NormFloat64()))
						}
						cells = append(cells, one)
					}
					if k, _ := FindKnee(cells); k.Above >= c.knee || k.AtMost != 0 && k.AtMost < c.knee {
						wrong++
					}
				}
				if wrong > runs*4/100 {
					t.Errorf("%v, sigma %.2f, %d repetitions: %d of %d intervals without the knee", c.shape, sigma, repetitions, wrong, runs)
				}
			}
		}
	}
}

// A flow of min(rate, buffer/RTT) with noise has its knee where the buffer is 95 % of the BDP.
func TestKneeOfASimulatedPathIsAtItsBDP(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 2))
	for range 300 {
		rate, rtt := 1e5*(1+9*rng.Float64()), time.Duration(50+rng.IntN(200))*ms
		bdp, ok := BDP(rate, rtt)
		var cells []Cell
		for buffer := int64(1 << 10); buffer <= 1<<23; buffer *= 2 {
			c := Cell{Buffer: buffer}
			for range 5 {
				c.Rates = append(c.Rates, min(rate, float64(buffer)/rtt.Seconds())*(1-0.01*rng.Float64()))
			}
			cells = append(cells, c)
		}
		k, found := FindKnee(cells)
		if !ok || !found || float64(k.Buffer) < 0.93*bdp || float64(k.Buffer) > 2*bdp || k.Above >= k.Buffer || k.AtMost < k.Buffer {
			t.Fatalf("BDP %.0f: %+v, %v", bdp, k, found)
		}
	}
}
