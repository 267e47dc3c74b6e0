package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadtest"
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
		l.width = widthOf(out)
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
	_ = printText(l.out, l.width, fmt.Sprintf(format, args...), 0) // progress is no result
}

// announceEnd says that the results follow when ctx ends, which may take seconds. The returned function ends that.
func (l *liveLine) announceEnd(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		l.say("Stopping: waiting a few seconds for outstanding packets; partial results follow, if there are any. Ctrl-C again ends at once.")
	})
}

// printSummary writes the summary of a run with a column per direction.
func printSummary(out io.Writer, o *loadtest.Outcome) error {
	state := string(o.Result)
	if o.Result != loadtest.Completed {
		state += ": the results are partial"
	}
	t := newTable(out, "%s to %s, %s: %s, %s forward, %s reverse\n\n", o.Kind, o.Remote, o.ID, state,
		unit.Bytes.Format(float64(o.ForwardBytes)), unit.Bytes.Format(float64(o.ReverseBytes)))
	var names []string
	cells := map[[2]string]string{}
	for _, s := range o.Summary {
		if !slices.Contains(names, s.Quantity) {
			names = append(names, s.Quantity)
		}
		cells[[2]string{s.Quantity, s.Direction}] = s.Text()
	}
	t.row("", sample.Forward.String(), sample.Reverse.String())
	for _, n := range names {
		if all, ok := cells[[2]string{n, ""}]; ok {
			t.row(n, all)
			continue
		}
		row := []string{n}
		for _, d := range sample.Directions() {
			cell, ok := cells[[2]string{n, d.String()}]
			if !ok && o.Result != loadtest.Completed && slices.Contains(o.Directions, d) {
				cell = "not measured"
			}
			row = append(row, cell)
		}
		t.row(row...)
	}
	if len(names) == 0 {
		t.rows = nil
	}
	return t.end()
}

// mostBar and leastBar are the lengths of the bar, in characters; without space for the least one there is none.
const (
	mostBar  = 24
	leastBar = 6
)

// progressLine is "[######      ]  43 %  forward: load, 12.3 MB  35s left", with a bar that leaves space for the rest.
func progressLine(p loadtest.Progress, since time.Duration, width int) string {
	p.Share = min(max(p.Share, 0), 1)
	line := fmt.Sprintf("%5s  %s", unit.Percent(p.Share), p.Phase)
	if p.Bytes > 0 {
		line += fmt.Sprintf(", %s", unit.Bytes.Format(float64(p.Bytes)))
	}
	if p.Share > 0.02 && p.Share < 1 { // earlier estimates are too imprecise
		left := time.Duration(float64(since) * (1 - p.Share) / p.Share)
		line += fmt.Sprintf("  %v left", left.Round(time.Second))
	}
	cells := min(mostBar, width-1-len("[] ")-utf8.RuneCountInString(line))
	if cells < leastBar {
		return line
	}
	done := int(p.Share * float64(cells))
	return fmt.Sprintf("[%s%s] %s", strings.Repeat("#", done), strings.Repeat(" ", cells-done), line)
}
