package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
)

// report prints the cells by direction beside the paper's values, and the truth.
func report(out io.Writer, all []measured, length time.Duration) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintf(out, "\nHalepovic et al. 2008, TCP over WiMAX: sections 4.1 and 4.2. Each cell: one transfer of %v, the first %v left out\n", length, omitted(length))
	for _, line := range notes() {
		fmt.Fprintln(out, "  "+line)
	}
	for _, d := range []sample.Direction{sample.Reverse, sample.Forward} {
		if err := printDirection(out, all, d); err != nil {
			return err
		}
	}
	return printTruth(out, all)
}

// printDirection prints a row for each buffer and quantity.
func printDirection(out io.Writer, all []measured, d sample.Direction) error {
	name, figures := "downlink", [2]string{"Figure 4", "Figure 7"}
	if d == sample.Forward {
		name, figures = "uplink", [2]string{"Figure 8", "Table 2"}
	}
	by := map[cell]*measured{}
	for i := range all {
		by[all[i].cell] = &all[i]
	}
	rows := 0
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n%s\tbuffer\tNew Reno\tCubic\tVegas\tVeno\t  paper\n", name)
	for _, q := range []struct {
		name  string
		value func(m *measured) string
		paper func(kib int64) string
	}{
		{"throughput, kb/s", (*measured).throughput, func(kib int64) string { return figures[0] + ": " + paperThroughput(d, kib) }},
		{"median RTT, ms", (*measured).rtt, func(int64) string { return "(" + paperRTT(d) + ")" }},
		{"sent again, %", (*measured).again, func(kib int64) string {
			if words := paperRetransmitted(d, kib); words != "" {
				return figures[1] + ": " + words
			}
			return "-"
		}},
	} {
		for _, kib := range sizes() {
			values, some := make([]string, 0, 4), false
			for _, v := range variants() {
				m := by[cell{d, v, kib << 10}]
				if m == nil {
					values = append(values, "")
					continue
				}
				values, some = append(values, q.value(m)), true
			}
			if some {
				rows++
				fmt.Fprintf(w, "%s\t%s\t%s\t  %s\n", q.name, bufferWords(kib<<10), strings.Join(values, "\t"), q.paper(kib))
			}
		}
	}
	if rows == 0 {
		return nil
	}
	return w.Flush()
}

// printTruth prints the counters of the sending guest beside the values of oneway.
func printTruth(out io.Writer, all []measured) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\ncell\tbuffer\tvariant\tTCP reports\toneway: sent again\tkernel: sent again\tqueue: dropped\tlimited by\t\n")
	for i := range all {
		m := &all[i]
		fmt.Fprintf(w, "%v\t%s\t%s\t%s\t%s %%\t%.2f %%: %d of %d segments\t%d packets\t%s\t\n", m.direction, bufferWords(m.buffer), m.variant, m.result.Used, m.again(),
			100*m.truth.share(), m.truth.retransmitted, m.truth.segments+m.truth.retransmitted, m.truth.dropped, metric.Words(string(m.result.Limit)))
	}
	fmt.Fprintln(w)
	return w.Flush()
}

func bufferWords(bytes int64) string {
	if bytes == 0 {
		return "auto"
	}
	return fmt.Sprintf("%d KB", bytes>>10)
}

func (m *measured) throughput() string {
	if m.result.Throughput == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f", m.result.Throughput[1]*8/1e3)
}

func (m *measured) rtt() string {
	if m.result.RTT == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f", m.result.RTT[1]*1e3)
}

func (m *measured) again() string {
	if m.result.Retransmitted == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", 100**m.result.Retransmitted)
}

// name is the cell, line also its result.
func (c cell) name() string {
	return fmt.Sprintf("%v, %s, %s", c.direction, c.variant, bufferWords(c.buffer))
}

func (m *measured) line() string {
	return fmt.Sprintf("%s: %s kb/s, RTT %s ms, sent again %s %%", m.name(), m.throughput(), m.rtt(), m.again())
}
