package links

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"oneway.example/exporter/estimate/queue"
	"oneway.example/tests/testseed"
)

// recorded names the environment's variable with a directory of recorded traces in mahimahi's
// format; none is kept here.
const recorded = "ONEWAY_TRACES"

// table writes rows under their head.
func table(vs []Verdict) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(Head(), "\t"))
	for i := range vs {
		fmt.Fprintln(w, strings.Join(vs[i].Row(), "\t"))
	}
	_ = w.Flush()
	return b.String()
}

// runs are all cases, the synthetic ones with two seeds.
func runs(t *testing.T, seed uint64) (all []Verdict) {
	t.Helper()
	judge := func(cases []Case, seed uint64) {
		for _, c := range cases {
			all = append(all, Judge(c, seed))
		}
	}
	for i := range uint64(2) {
		judge(Made(), seed+i)
	}
	for i := range uint64(4) {
		judge(Cellular(seed+i), seed+i)
	}
	if d := os.Getenv(recorded); d != "" {
		cases, err := Recorded(d, seed)
		if err != nil {
			t.Fatal(err)
		}
		judge(cases, seed)
	} else {
		t.Logf("without recorded links: %s names no directory", recorded)
	}
	return all
}

// TestLoadTestsFindTheQueueOfAnyLink compares the results of load tests with links of every kind: synthetic
// ones, also of cellular shape; and recorded ones, if available.
func TestLoadTestsFindTheQueueOfAnyLink(t *testing.T) {
	all := runs(t, testseed.Of(t))
	count := func(name string, of, is func(v *Verdict) bool, percent int) {
		n, good := 0, 0
		for i := range all {
			if v := &all[i]; of(v) {
				n++
				if is(v) {
					good++
				}
			}
		}
		t.Logf("%s: %d of %d", name, good, n)
		if n == 0 || 100*good < percent*n {
			t.Errorf("%s: %d of %d, want %d %%", name, good, n, percent)
		}
	}
	every := func(*Verdict) bool { return true }
	sized := func(v *Verdict) bool { return v.Sized }
	steady := func(v *Verdict) bool { return v.Sized && v.Case.Steady }
	count("the state is right", every, func(v *Verdict) bool { return v.Kind }, 95)
	count("the interval contains the size, or there is none", every, func(v *Verdict) bool { return v.Covered }, 99)
	count("its half is at most three packets or 10 %", sized, func(v *Verdict) bool { return v.Narrow }, 80)
	count("the reported least is no more than was held", every, func(v *Verdict) bool { return v.AtLeast }, 100)
	count("the delays are within their bounds", sized, func(v *Verdict) bool { return v.Delay }, 98)
	count("each second's rate is within 2 %", every, func(v *Verdict) bool { return v.Throughput }, 100)
	count("of a steady link the size is within 0.5 %", steady, (*Verdict).exact, 100)
	if testing.Verbose() {
		t.Logf("%d runs\n%s", len(all), table(all))
	}
}

// If the path's delay grows by more than half of the full queue's delay, the queue is unknown.
func TestLargeChangeOfThePathIsReported(t *testing.T) {
	c := Made()[0].but("path grows by 200 ms", func(c *Case) { c.Grow, c.GrowAt = 200*ms, 10*time.Second })
	v := Judge(c, testseed.Of(t))
	if v.Told.State != queue.Unknown || v.Told.Size.OK || !strings.Contains(v.Told.Evidence, "the path or a clock has changed") {
		t.Errorf("%v, %+v: %s", v.Told.State, v.Told.Size, v.Told.Evidence)
	}
}

// exact reports whether the value is within 0.5 % of the largest admitted and the refused backlog.
func (v *Verdict) exact() bool {
	size := v.Told.Size
	return size.OK && size.Value > 0.995*v.True[0] && size.Value < 1.005*v.True[1] && size.Bound <= 1.5*float64(v.Case.Size)
}
