package option

import (
	"fmt"
	"slices"
	"strings"
)

// shortWord is the length in bytes of the longest word that has at most one edit: two make another short word of many.
const shortWord = 4

// Nearest returns the candidate that word is probably a misspelling of: at most two edits away, one if word is short, or the only
// one that begins with word and an underscore; empty: none.
func Nearest(word string, candidates []string) string {
	best, least := "", 3
	if len(word) <= shortWord {
		least = 2
	}
	for _, c := range candidates {
		if max(len(word)-len(c), len(c)-len(word)) >= least {
			continue // the least distance of these lengths; a word may be very long
		}
		if d := distance(word, c); d < least && d < len(c) {
			best, least = c, d
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

// Suggestion asks whether the nearest candidate is meant, as the end of an error; empty: no candidate is near.
func Suggestion(word string, candidates []string) string {
	meant := Nearest(word, candidates)
	if meant == "" {
		return ""
	}
	return DidYouMean(meant)
}

// DidYouMean is "did you mean" with the candidate.
func DidYouMean(meant string) string { return fmt.Sprintf("did you mean %q?", meant) }

// distance is the least number of bytes to insert, delete or replace, and of neighbors to exchange, that makes b of a (optimal
// string alignment).
func distance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, above, row = above, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(above[j]+cost, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
