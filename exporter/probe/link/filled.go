package link

import "cmp"

// Texts of Filled for documents of options: NamelessDoc is the link of a path that names none, FilledDoc the link where no option names
// one.
const (
	NamelessDoc = "one with the path's name"
	FilledDoc   = "the first link of the path, or " + NamelessDoc
)

// Filled returns the link that a load test fills: the one that its option link names, else FilledDoc. first is the path's first link;
// empty: the path names no links.
func Filled(option, first, path string) string { return cmp.Or(option, first, path) }
