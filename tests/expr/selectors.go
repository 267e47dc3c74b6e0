package expr

import (
	"regexp"
	"strings"
)

// Selector is one vector selector of a oneway series in an expression.
type Selector struct {
	Name string
	// Matchers are the matched labels and the values as written.
	Matchers []Matcher
	// Offset: the selector has an offset.
	Offset bool
}

// Matcher is one label matcher, such as {direction, =, forward}.
type Matcher struct{ Label, Op, Value string }

var (
	// A name, and optionally braces that contain no brace outside a string.
	selectorRE = regexp.MustCompile(`\b((?:oneway[_:]|path_hour:)[a-zA-Z0-9_:]*)(\{(?:[^{}"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')*\})?(\s*\[[^\]]*\])?(\s+offset\b)?`)
	matcherRE  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')`)
)

// Selectors are those of series named oneway_*, oneway:* or path_hour:* in a query, or in any text with queries. It
// scans for names and their matchers and does not parse; promtool checks whether the rest is PromQL.
func Selectors(query string) []Selector {
	var out []Selector
	for _, m := range selectorRE.FindAllStringSubmatch(query, -1) {
		s := Selector{Name: strings.TrimRight(m[1], ":"), Offset: m[4] != ""}
		for _, l := range matcherRE.FindAllStringSubmatch(m[2], -1) {
			s.Matchers = append(s.Matchers, Matcher{Label: l[1], Op: l[2], Value: l[3] + l[4]})
		}
		out = append(out, s)
	}
	return out
}

// Family is a histogram's name without the suffix of its classic series.
func Family(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && !strings.Contains(name, ":") {
			return base
		}
	}
	return name
}
