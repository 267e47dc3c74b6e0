// Command papertcp repeats the TCP measurements of Halepovic, Wu, Williamson and Ghaderi, "TCP over WiMAX" (MASCOTS
// 2008, section 4): New Reno, Cubic, Vegas and Veno with socket buffers of 8 to 64 KB and auto-tuned ones, in both
// directions of a path with the paper's rates and round trip. Two guest kernels (package vmlab) are the laptops, their
// queueing disciplines are the path, and `oneway test tcp-sweep` measures each cell. The results stand beside the
// paper's values; the kernel's counters of segments and those of the path's queue are the truth.
//
// `make paper-tcp` runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/flaky"
	"oneway.example/tests/vmlab"
)

// Defaults of the time of a cell, and its limits: the whole takes 13 minutes, the smoke test less than one, and a command
// in a guest must end within 5 minutes.
const (
	usualCell = 18 * time.Second
	smokeCell = 8 * time.Second
	shortest  = 5 * time.Second
	longest   = 4 * time.Minute
)

// omitted is the beginning of a cell that its throughput and round trip leave out: the slow start, and on the uplink the
// seconds that its queue takes to drain.
func omitted(length time.Duration) time.Duration {
	return (length / 3).Truncate(100 * time.Millisecond)
}

func main() {
	build := flag.String("build", "build/vmlab", "directory with the programs guest and oneway and with wake.so; the logs are left there")
	smoke := flag.Bool("smoke", false, "one cell of each variant, and one with a small buffer, only")
	cell := flag.Duration("cell", 0, "time of sending of each cell; 0: 18s, or 8s with -smoke; the paper's is 60s")
	precision := flag.String("precision", "assert", "what becomes of limits that only a quiet machine keeps: assert (after up to three runs), or print")
	flag.Parse()
	if *cell == 0 {
		*cell = usualCell
		if *smoke {
			*cell = smokeCell
		}
	}
	if *cell < shortest || *cell > longest {
		fmt.Fprintf(os.Stderr, "papertcp: -cell is %v; want %v to %v\n", *cell, shortest, longest)
		os.Exit(2)
	}
	if *precision != "assert" && *precision != "print" {
		fmt.Fprintf(os.Stderr, "papertcp: -precision is %q; want assert or print\n", *precision)
		os.Exit(2)
	}
	cells := allCells()
	if *smoke {
		cells = smokeCells()
	}
	if err := run(*build, cells, *cell, *precision == "assert"); err != nil {
		fmt.Fprintln(os.Stderr, "papertcp:", err)
		os.Exit(1)
	}
}

// cell is one measurement.
type cell struct {
	direction sample.Direction
	variant   string // as the kernel calls it
	buffer    int64  // bytes of both ends, as an application sets them; 0: auto-tuning
}

// variants are those of the paper.
func variants() []string { return []string{"reno", "cubic", "vegas", "veno"} }

// sizes are those of the paper in a direction, in KiB; 0: auto-tuning. The paper has no uplink with 64 KB.
func sizes() []int64 { return []int64{8, 16, 32, 64, 0} }

// allCells are those of the paper's figures 4 and 7 and Table 2, and the uplink with 64 KB.
func allCells() (all []cell) {
	for _, d := range []sample.Direction{sample.Reverse, sample.Forward} {
		for _, size := range sizes() {
			for _, v := range variants() {
				all = append(all, cell{d, v, size << 10})
			}
		}
	}
	return all
}

// smokeCells are the downlink's with 64 KB, which is more than path and queue hold: a variant that reacts to loss only
// must lose; and one with a buffer that does not fill the path.
func smokeCells() []cell {
	all := []cell{{sample.Reverse, "reno", 16 << 10}}
	for _, v := range variants() {
		all = append(all, cell{sample.Reverse, v, 64 << 10})
	}
	return all
}

func run(build string, cells []cell, length time.Duration, precise bool) (err error) {
	if build, err = filepath.Abs(build); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/dev/shm", "oneway-papertcp-")
	if err != nil {
		return err
	}
	kept, err := flaky.Open(flaky.Dir, "papertcp")
	if err != nil {
		return err
	}
	logs := filepath.Join(build, "papertcp-logs")
	defer func() { err = errors.Join(err, vmlab.KeepLogs(dir, logs, nearName, farName)) }()
	begin := time.Now()
	p, err := startPair(build, dir, logs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	fmt.Fprintf(os.Stderr, "papertcp: both guests run after %.0f s; %d cells of %v\n", time.Since(begin).Seconds(), len(cells), length)
	all, late := []measured{}, []string{}
	for i, c := range cells {
		m, spoiled, err := p.quietly(c, length)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", c.name(), err), report(os.Stdout, all, length))
		}
		fmt.Fprintf(os.Stderr, "papertcp: %d of %d: %s\n", i+1, len(cells), m.line())
		all, late = append(all, *m), append(late, spoiled...)
	}
	faults, err := rerunFailed(func(c cell) (m *measured, err error) {
		m, _, err = p.quietly(c, length)
		return m, err
	}, all, length, kept)
	fmt.Fprintf(os.Stderr, "papertcp: took %.0f s\n", time.Since(begin).Seconds())
	late = append(late, vegasQueuesLess(all)...)
	return errors.Join(err, report(os.Stdout, all, length), verdict(faults, late, precise))
}

// tries is how often a cell is measured that a busy machine may have spoiled: an error of oneway's is there each time.
const tries = 3

// quietly measures a cell until it is as the path allows, and returns what it is not at last.
func (p *pair) quietly(c cell, length time.Duration) (m *measured, late []string, err error) {
	for try := range tries {
		if try > 0 {
			fmt.Fprintf(os.Stderr, "papertcp: once more, as on a busy machine: %s\n", strings.Join(late, "; "))
		}
		if m, err = p.measure(c, length); err != nil {
			return nil, nil, err
		}
		if late = m.late(); len(late) == 0 {
			break
		}
	}
	return m, late, nil
}

// rerunFailed measures each cell with faults once more, after all others, and returns the faults that remain. A cell that has
// none then is flaky: its new result takes the place of the first, and kept gets the faults of that.
func rerunFailed(measure func(cell) (*measured, error), all []measured, length time.Duration, kept *flaky.Kept) (remain []string, err error) {
	for i := range all {
		faults := all[i].faults(length)
		if len(faults) == 0 {
			continue
		}
		again, err := measure(all[i].cell)
		if err != nil {
			return append(remain, faults...), err
		}
		if second := again.faults(length); len(second) > 0 {
			remain = slices.Concat(remain, faults, second)
			continue
		}
		fmt.Printf("FLAKY %s\n", strings.Join(faults, "\n  "))
		if _, err := kept.Add(all[i].name(), strings.Join(faults, "\n")+"\n"); err != nil {
			return remain, err
		}
		all[i] = *again
	}
	if n := len(kept.Files); n > flaky.Max {
		remain = append(remain, fmt.Sprintf("%d flaky cells: at most %d are accepted", n, flaky.Max))
	}
	return remain, nil
}

// verdict fails with faults, and with late if that is to be asserted; else it prints late.
func verdict(faults, late []string, precise bool) error {
	if precise {
		faults = append(faults, late...)
	} else if len(late) > 0 {
		fmt.Printf("NOT ASSERTED, the machine is not quiet:\n  %s\n", strings.Join(late, "\n  "))
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n  "))
	}
	return nil
}
