package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/core/unit"
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

	meant string // the key that an unknown key probably is; empty: none
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

// Error has one problem per line, the first of them if there are very many.
func (ps Problems) Error() string {
	var lines []string
	for _, p := range ps[:min(len(ps), maxShown)] {
		lines = append(lines, p.Error())
	}
	if more := len(ps) - maxShown; more > 0 {
		lines = append(lines, "and "+unit.Counted(more, "more error", "more errors"))
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

// With adds the errors of checks to those of decoding. A key that could not be decoded has another value than in the file, so
// that what checks find of it, of its parts, or of what it is a part of is left out.
func (ps Problems) With(checks Problems) Problems {
	all := slices.Clone(ps)
	for _, c := range checks {
		if !slices.ContainsFunc(ps, func(p *Problem) bool {
			if p.File != c.File && !strings.Contains(c.Key, ",") {
				return false // the same key in another file
			}
			return within(c.Key, p.Key) || within(p.Key, c.Key) || p.meant != "" && within(c.Key, p.meant)
		}) {
			all = append(all, c)
		}
	}
	return all
}

// within reports whether a key is another one or a part of it; a comma is in the key of an error of several sections.
func within(key, whole string) bool {
	rest, ok := strings.CutPrefix(key, whole)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], ".[,"))
}

// add adds errors of the owner of a section with their places.
func (ps *Problems) add(s Section, err error) { *ps = append(*ps, s.Problems(err)...) }

func problemAt(file string, n *yaml.Node, key, format string, args ...any) *Problem {
	return &Problem{File: file, Line: n.Line, Column: n.Column, Key: key, Text: fmt.Sprintf(format, args...)}
}
