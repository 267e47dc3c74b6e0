package vmlab

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/vmlab/record"
)

const (
	lanName = "LAN check"
	// lanLimit is the largest delay of the thesis's check, figure 4.3.
	lanLimit = 800 * time.Microsecond
	// lanShare of the delays must be below it. Some are truly above on every machine that
	// runs other programs, too; the table has their number, and shows that the clocks are not
	// the cause.
	lanShare = 0.99
	// lanLeast is the least share of the packets for the check: on a machine
	// that stands still more often there is no result.
	lanLeast = 0.5
)

// lan is the thesis's check: between two disciplined clocks on a LAN all delays are
// positive and below 0.8 ms. A network card does not wait for a program, so the kernel's
// threads that stand for it here do not either. The bound is wider for it and has no limit here,
// because then a guest holds a packet longer. Packets that met a machine that stood still are left out.
func lan() Scenario {
	return Scenario{
		Name: lanName, States: []string{"synchronized"},
		Metric: "oneway_clock_error_bound_seconds is there, kind is pps",
		Met:    disciplined,
		Do: func(r *Run) error {
			if err := r.Both(func(h *Host) error { return h.first(true) }); err != nil {
				return err
			}
			stood := r.watchMachine()
			err := pause(20 * time.Second)()
			r.Stood = stood()
			return err
		},
		Mend: func(r *Run) error { return r.Both(func(h *Host) error { return h.first(false) }) },
	}
}

// first gives the guest's network threads priority over its processes, or removes it.
func (h *Host) first(on bool) error {
	c := record.Command{Do: record.First, Args: []string{"napi/", "ksoftirqd/"}}
	if on {
		c.By = 1
	}
	_, err := h.Do(c)
	return err
}

// checkLAN checks the delays.
func checkLAN(j *Judgment, fault func(format string, args ...any)) {
	for dir, v := range j.Values {
		direction := sample.Direction(dir)
		if share := float64(len(v)) / float64(max(1, len(v)+j.Stood[dir])); share < lanLeast {
			fault("the machine stood still for all but %.0f %% of the packets %s; want %.0f %%", 100*share, direction, 100*lanLeast)
		}
		if late := above(v); float64(late) > (1-lanShare)*float64(len(v)) {
			fault("%d of %d delays %s are above %v; want %.0f %% below", late, len(v), direction, lanLimit, 100*lanShare)
		}
	}
}

// falsely is the number of delays of a direction that are falsely reported above the limit.
func falsely(j *Judgment, dir int) (n int) {
	for i, d := range j.Values[dir] {
		if d > lanLimit && j.True[dir][i] <= lanLimit {
			n++
		}
	}
	return n
}

func above(v []time.Duration) int {
	return count(v, func(d time.Duration) bool { return d > lanLimit })
}

func count(v []time.Duration, keep func(time.Duration) bool) (n int) {
	for _, d := range v {
		if keep(d) {
			n++
		}
	}
	return n
}

// printLAN writes the thesis's check beside the results.
func printLAN(w io.Writer, j *Judgment) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LAN check (figure 4.3)\tpaper\toneway, forward\toneway, reverse\ttruth, forward\ttruth, reverse")
	row := func(name, paper string, f func(v []time.Duration) string) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", name, paper, f(j.Values[0]), f(j.Values[1]), f(j.True[0]), f(j.True[1]))
	}
	for _, q := range []struct {
		name, paper string
		q           float64
	}{{"smallest delay", "0.2 ms", 0}, {"median", "", 0.5}, {"99th percentile", "", 0.99}, {"largest delay", "0.8 ms", 1}} {
		row(q.name, q.paper, func(v []time.Duration) string { return figure(quantile(v, q.q)) })
	}
	row("not positive", "none", func(v []time.Duration) string {
		return fmt.Sprintf("%d of %d", count(v, func(d time.Duration) bool { return d <= 0 }), len(v))
	})
	row("above 0.8 ms", "none", func(v []time.Duration) string { return fmt.Sprintf("%d of %d", above(v), len(v)) })
	fmt.Fprintf(t, "of these truly not\tnone\t%d\t%d\t\t\n", falsely(j, 0), falsely(j, 1))
	fmt.Fprintf(t, "left out: the machine stood still\t\t%d\t%d\t\t\n", j.Stood[0], j.Stood[1])
	_ = t.Flush()
}
