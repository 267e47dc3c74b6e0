package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// widthOf is the number of columns to write for: those of the terminal, else those of the environment variable COLUMNS. Zero: no
// limit, so that in a file or pipe a row or a note is one line.
func widthOf(out io.Writer) int {
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
		return 80
	}
	w, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil {
		return 0
	}
	return max(0, w)
}

// Sizes of a table, in characters.
const (
	margin    = 2 // before each row of most tables
	gutter    = 2 // between columns
	leastCell = 8 // of a column that is made narrower
)

// table is a heading and aligned rows. One that is too wide for the terminal is turned, a record per column, if it has names of
// its columns; the cells of another are wrapped.
type table struct {
	out   io.Writer
	text  strings.Builder
	width int // zero: no limit
	rows  [][]string
	named bool // the first row has the names of the columns
	right bool // align cells at the right, but those of the first column
	// margin is the number of spaces before each row.
	margin int
}

func newTable(out io.Writer, heading string, args ...any) *table {
	t := &table{out: out, width: widthOf(out), margin: margin}
	for line := range strings.Lines(fmt.Sprintf(heading, args...)) {
		t.text.WriteString(strings.Join(wrap(strings.TrimSuffix(line, "\n"), t.width), "\n") + "\n")
	}
	return t
}

// names is the row with the names of the columns.
func (t *table) names(cells ...string) {
	t.row(cells...)
	t.named = true
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// count adds a row with a count above zero.
func (t *table) count(name string, n uint64) {
	if n > 0 {
		t.row(name, strconv.FormatUint(n, 10))
	}
}

// end writes the table and an empty line.
func (t *table) end() error {
	t.lay()
	t.text.WriteString("\n")
	return t.flush()
}

// flush writes what is laid out.
func (t *table) flush() error {
	_, err := io.WriteString(t.out, t.text.String())
	return err
}

// lay lays the rows out by the width.
func (t *table) lay() {
	widths := widthsOf(t.rows)
	switch {
	case t.width == 0 || t.total(widths) <= t.width:
		t.write(t.rows, widths)
	case t.named:
		t.turn()
	default:
		t.shrink(t.rows)
	}
}

func widthsOf(rows [][]string) (widths []int) {
	for _, r := range rows {
		for i, cell := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

func (t *table) total(widths []int) int {
	sum := t.margin - gutter
	for _, w := range widths {
		sum += gutter + w
	}
	return sum
}

// write writes rows as they are.
func (t *table) write(rows [][]string, widths []int) {
	for _, r := range rows {
		line := make([]string, len(r))
		for i, cell := range r {
			fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if line[i] = cell + fill; t.right && i > 0 {
				line[i] = fill + cell
			}
		}
		text := strings.Repeat(" ", t.margin) + strings.Join(line, strings.Repeat(" ", gutter))
		t.text.WriteString(strings.TrimRight(text, " ") + "\n")
	}
}

// turn writes the records as columns, as many beside each other as fit.
func (t *table) turn() {
	for from := 1; from < len(t.rows); {
		var part [][]string
		next := from
		for to := from + 1; to <= len(t.rows); to++ {
			turned := turned(t.rows[0], t.rows[from:to])
			if to > from+1 && t.total(widthsOf(turned)) > t.width {
				break
			}
			part, next = turned, to
		}
		if from > 1 {
			t.text.WriteString("\n")
		}
		t.shrink(part)
		from = next
	}
}

// turned makes a row of each column with a value.
func turned(names []string, records [][]string) (rows [][]string) {
	for i, name := range names {
		row, empty := []string{name}, true
		for _, r := range records {
			cell := ""
			if i < len(r) {
				cell = r[i]
			}
			row, empty = append(row, cell), empty && cell == ""
		}
		if !empty {
			rows = append(rows, row)
		}
	}
	return rows
}

// shrink makes the widest columns narrower until the rows fit, and wraps their cells.
func (t *table) shrink(rows [][]string) {
	widths := widthsOf(rows)
	for t.total(widths) > t.width {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= leastCell {
			break
		}
		widths[widest]--
	}
	for _, r := range rows {
		cells, height := make([][]string, len(r)), 1
		for i, cell := range r {
			cells[i] = wrap(cell, widths[i])
			height = max(height, len(cells[i]))
		}
		lines := make([][]string, height)
		for y := range lines {
			lines[y] = make([]string, len(r))
			for i := range r {
				if y < len(cells[i]) {
					lines[y][i] = cells[i][y]
				}
			}
		}
		t.write(lines, widths)
	}
}

// wrap breaks a text into lines of a width: behind a comma or semicolon if it can, else at a space, else anywhere. Zero: no limit.
func wrap(text string, width int) (lines []string) {
	for r := []rune(text); ; {
		if width == 0 || len(r) <= width {
			return append(lines, string(r))
		}
		end, best := width, 0
		for i := 1; i <= width; i++ {
			if r[i] != ' ' {
				continue
			}
			rank := 1
			if strings.ContainsRune(",;", r[i-1]) && i > width/2 {
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

// printLines writes notes; the further lines of a long one are indented.
func printLines(out io.Writer, notes []string) error {
	const mark = "note: "
	for _, n := range notes {
		if err := printText(out, widthOf(out), mark+n, len(mark)); err != nil {
			return err
		}
	}
	return nil
}

// printText writes a text within a width; further lines are indented. Zero: no limit.
func printText(out io.Writer, width int, text string, indent int) error {
	var all strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		first := wrap(line, width)[0]
		all.WriteString(first + "\n")
		if rest := strings.TrimLeft(strings.TrimPrefix(line, first), " "); rest != "" {
			for _, further := range wrap(rest, max(leastCell, width-indent)) {
				all.WriteString(strings.Repeat(" ", indent) + further + "\n")
			}
		}
	}
	_, err := io.WriteString(out, all.String())
	return err
}
