package link

import "cmp"

// FilledDoc tells, for documents of options, which link Filled returns where no option names one.
const FilledDoc = "the first link of the path, or one with the path's name"

// Filled returns the link that a load test fills: the one that its option link names, else FilledDoc. first is the path's first link;
// empty: the path names no links.
func Filled(option, first, path string) string { return cmp.Or(option, first, path) }
