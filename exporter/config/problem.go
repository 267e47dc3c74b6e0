package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Problem is one error in a file.
type Problem struct {
	File string
	// Line and Column count from 1; zero if unknown.
	Line, Column int
	// Key is the path of the key, such as "paths[0].probes[0].interval"; empty for the whole file.
	Key string
	// Text completes the sentence that starts with Key.
	Text string
}

// Error is "file:line:column: key text".
func (p *Problem) Error() string {
	at := p.File
	if p.Line > 0 {
		at += fmt.Sprintf(":%d", p.Line)
	}
	if p.Column > 0 {
		at += fmt.Sprintf(":%d", p.Column)
	}
	return at + ": " + strings.TrimPrefix(p.Key+" ", " ") + p.Text
}

// Problems are all errors in a file, in the order of its lines.
type Problems []*Problem

// Error has one problem per line.
func (ps Problems) Error() string {
	var lines []string
	for _, p := range ps {
		lines = append(lines, p.Error())
	}
	return strings.Join(lines, "\n")
}

// Sort sorts ps by file, line and column and removes duplicates, as of defaults that many probes have.
func (ps Problems) Sort() Problems {
	slices.SortStableFunc(ps, func(a, b *Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	seen := map[Problem]bool{}
	return slices.DeleteFunc(ps, func(p *Problem) bool {
		twice := seen[*p]
		seen[*p] = true
		return twice
	})
}

// maxProblems limits the reported problems.
const maxProblems = 50

// add adds errors of the owner of a section with their places.
func (ps *Problems) add(s Section, err error) {
	if found := s.Problems(err); len(*ps)+len(found) <= maxProblems {
		*ps = append(*ps, found...)
	}
}

func problemAt(file string, n *yaml.Node, key, format string, args ...any) *Problem {
	return &Problem{File: file, Line: n.Line, Column: n.Column, Key: key, Text: fmt.Sprintf(format, args...)}
}

// nearest returns the candidate that word is probably a misspelling of: at most two edits away, or the only one that begins
// with word and an underscore.
func nearest(word string, candidates []string) string {
	best, distance := "", 3
	for _, c := range candidates {
		if d := editDistance(word, c); d < distance && d < len(c) {
			best, distance = c, d
		}
	}
	if best == "" && word != "" {
		longer := slices.DeleteFunc(slices.Clone(candidates), func(c string) bool { return !strings.HasPrefix(c, word+"_") })
		if len(longer) == 1 {
			best = longer[0]
		}
	}
	return best
}

// editDistance is the Levenshtein distance.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
