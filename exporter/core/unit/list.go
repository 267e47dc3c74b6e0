package unit

import "strings"

// List is "a, b or c" for the conjunction "or"; a single word stands alone.
func List(conjunction string, words ...string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + conjunction + " " + words[last]
}
