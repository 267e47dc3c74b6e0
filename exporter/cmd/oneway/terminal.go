package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"oneway.example/exporter/loadtest"
	"oneway.example/exporter/option"
	"oneway.example/exporter/report"
	"oneway.example/exporter/sample"
)

func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// liveLine is one line that a terminal shows during a run; nothing is shown if standard error is not a terminal.
type liveLine struct {
	mu    sync.Mutex
	out   io.Writer
	width int // columns; 0: not a terminal
	drawn bool
}

func newLiveLine(out io.Writer) *liveLine {
	l := &liveLine{out: out}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		l.width = 80
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			l.width = w
		}
	}
	return l
}

func (l *liveLine) show(text string) {
	if l.width == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	line := []rune(text)
	fmt.Fprintf(l.out, "\r%-*s", l.width-1, string(line[:min(len(line), l.width-1)]))
	l.drawn = true
}

func (l *liveLine) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wipe()
}

// wipe clears the line; the caller holds mu.
func (l *liveLine) wipe() {
	if l.drawn {
		fmt.Fprintf(l.out, "\r%-*s\r", l.width-1, "")
	}
	l.drawn = false
}

// say writes a separate line, terminal or not.
func (l *liveLine) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wipe()
	fmt.Fprintf(l.out, format+"\n", args...)
}

// announceEnd says that the results follow when ctx ends, which may take seconds. The returned function ends that.
func (l *liveLine) announceEnd(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		l.say("Stopped; packets under way are awaited for a few seconds, and the results so far follow. Ctrl-C again ends at once.")
	})
}

// table is a heading and aligned rows; end reports the first error.
type table struct {
	out io.Writer
	w   *tabwriter.Writer
}

func newTable(out io.Writer, heading string, args ...any) *table {
	fmt.Fprintf(out, heading, args...)
	return &table{out, tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
}

func (t *table) row(cells ...string) { fmt.Fprintln(t.w, "  "+strings.Join(cells, "\t")) }

// interval adds a row with a value and its bound, if there is a value.
func (t *table) interval(name string, value, bound *report.Seconds) {
	if value != nil {
		t.row(name, milliseconds(value.Seconds())+" ± "+orDash(bound, func(d report.Seconds) string { return milliseconds(d.Seconds()) }))
	}
}

// count adds a row with a count above zero.
func (t *table) count(name string, n uint64) {
	if n > 0 {
		t.row(name, strconv.FormatUint(n, 10))
	}
}

func (t *table) end() error {
	if err := t.w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(t.out)
	return err
}

// printSummary writes the summary of a run with a column per direction.
func printSummary(out io.Writer, o *loadtest.Outcome) error {
	t := newTable(out, "%s to %s, %s: %s, %.1f MB forward, %.1f MB reverse\n\n", o.Kind, o.LoadServer, o.ID, o.Result,
		float64(o.ForwardBytes)/1e6, float64(o.ReverseBytes)/1e6)
	var names []string
	cells := map[[2]string][]string{}
	for _, s := range o.Summary {
		if !slices.Contains(names, s.Quantity) {
			names = append(names, s.Quantity)
		}
		cells[[2]string{s.Quantity, s.Direction}] = wrap(s.Value)
	}
	if len(names) == 0 {
		return nil
	}
	t.row("", sample.Forward.String(), sample.Reverse.String())
	for _, n := range names {
		left, right := cells[[2]string{n, sample.Forward.String()}], cells[[2]string{n, sample.Reverse.String()}]
		if all, ok := cells[[2]string{n, ""}]; ok {
			left, right = all, nil
		}
		for i := range max(len(left), len(right)) {
			row := []string{n}
			if i > 0 {
				row[0] = ""
			}
			if i < len(left) {
				row = append(row, left[i])
			} else if i < len(right) {
				row = append(row, "")
			}
			if i < len(right) {
				row = append(row, right[i])
			}
			t.row(row...)
		}
	}
	return t.end()
}

// widestCell and mostLines limit two columns to a terminal of 80 columns; the notes have the full text.
const (
	widestCell = 28
	mostLines  = 3
)

// wrap breaks a text behind a comma or semicolon if it can, else at a space.
func wrap(text string) (lines []string) {
	for r := []rune(text); ; {
		if len(r) <= widestCell {
			return append(lines, string(r))
		}
		if len(lines) == mostLines-1 {
			return append(lines, strings.TrimRight(string(r[:widestCell-1]), " ,:;")+"…")
		}
		end, best := widestCell, 0
		for i := 1; i <= widestCell; i++ {
			if r[i] != ' ' {
				continue
			}
			rank := 1
			if strings.ContainsRune(",;", r[i-1]) {
				rank = 2
			}
			if rank >= best {
				end, best = i, rank
			}
		}
		lines = append(lines, string(r[:end]))
		r = []rune(strings.TrimLeft(string(r[end:]), " "))
	}
}

// orDash is a value as text, or "-" for nil.
func orDash[T any](v *T, words func(T) string) string {
	if v == nil {
		return "-"
	}
	return words(*v)
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.3f ms", seconds*1e3) }

// seconds prints a value of seconds in milliseconds, or "-" for nil.
func seconds(v *float64) string { return orDash(v, milliseconds) }

func percentage(ratio float64) string { return fmt.Sprintf("%.2f %%", 100*ratio) }

func ratioOf(v *float64) string { return orDash(v, percentage) }

func rateOf(v *float64) string {
	return orDash(v, func(bytes float64) string { return option.Rate(bytes).Display() })
}

func number(n *uint64) string {
	return orDash(n, func(n uint64) string { return strconv.FormatUint(n, 10) })
}

// barCells is the length of the bar, in characters.
const barCells = 24

// progressLine is "[######      ]  43 %  forward: load, 12.3 MB  35s left".
func progressLine(p loadtest.Progress, since time.Duration) string {
	p.Share = min(max(p.Share, 0), 1)
	done := int(p.Share * barCells)
	line := fmt.Sprintf("[%s%s] %3.0f %%  %s", strings.Repeat("#", done), strings.Repeat(" ", barCells-done), 100*p.Share, p.Phase)
	if p.Bytes > 0 {
		line += fmt.Sprintf(", %.1f MB", float64(p.Bytes)/1e6)
	}
	if p.Share > 0.02 && p.Share < 1 { // earlier estimates are too imprecise
		left := time.Duration(float64(since) * (1 - p.Share) / p.Share)
		line += fmt.Sprintf("  %v left", left.Round(time.Second))
	}
	return line
}
