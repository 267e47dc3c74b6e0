package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/unit"
)

// Forms of a line, after its indentation and its dashes.
var (
	keyForm      = regexp.MustCompile(`^("[^"]*"|'[^']*'|[A-Za-z0-9_.<$/][A-Za-z0-9_.<$/-]*) *:(?: +|$)`)
	dashlessForm = regexp.MustCompile(`^-([A-Za-z_<]+): (.*)$`)
	spacelessKey = regexp.MustCompile(`^([a-z_]+):([^ /].*)$`)
	wordForm     = regexp.MustCompile(`^([a-z_]+)(?: *=)?(?: +(.*))?$`)
	openQuote    = regexp.MustCompile(`(?:[:,-] +|[\[{] *)("[^"]*|'[^']*)$`)
	openBracket  = regexp.MustCompile(`(?:[:-] +)([\[{])[^\]}]*$`)
	secretKey    = regexp.MustCompile(`(?i)password|secret|token|key`)
)

// syntaxProblem says what to change in a file that is not YAML. The parser names the place where it gave up, and where the
// construct begins that it read.
func syntaxProblem(name, content string, err error) *Problem {
	e, located := errors.AsType[*yaml.LoadError](err)
	x := &explainer{LoadError: e, lines: strings.Split(strings.TrimPrefix(content, "\uFEFF")+"\n", "\n")}
	if !located || e.Mark.Line < 1 || max(e.Mark.Line, e.ContextMark.Line) > len(x.lines) {
		if p := unreadable(content); p != nil {
			p.File = name
			return p
		}
		return &Problem{File: name, Text: "this is not YAML: " + errtext.Words(err)}
	}
	p := x.explain()
	if p == nil {
		p = x.at(e.Mark.Line, 0, "at or after this line it is not YAML: %s", e.Message)
	}
	p.File = name
	return p
}

// unreadable is the problem of the first character that no file in UTF-8 has: the parser does not say where it is. Nil: there is none.
func unreadable(content string) *Problem {
	for i, r := range content {
		text := ""
		switch _, width := utf8.DecodeRuneInString(content[i:]); {
		case r == utf8.RuneError && width == 1:
			text = fmt.Sprintf("the byte %#02x is not UTF-8; the file may be in Latin-1: save it as UTF-8", content[i])
		case r < ' ' && !strings.ContainsRune("\t\r\n", r):
			text = fmt.Sprintf("the control character %#02x is not allowed; remove it", r)
		default:
			continue
		}
		before := content[:i]
		return &Problem{Line: strings.Count(before, "\n") + 1, Column: utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1, Text: text}
	}
	return nil
}

// explainer finds the mistake near the place of an error.
type explainer struct {
	*yaml.LoadError
	lines []string
}

func (*explainer) at(line, column int, format string, args ...any) *Problem {
	return &Problem{Line: line, Column: column, Text: fmt.Sprintf(format, args...)}
}

// explain returns nil for an error without a known remedy.
func (x *explainer) explain() *Problem {
	line, column, here := x.Mark.Line, x.Mark.Column, x.textAt(x.Mark.Line, x.Mark.Column)
	blank := strings.TrimLeft(x.lines[line-1], " ")
	start, key, rest := x.tokens(line)
	quote, bracket := x.quoteBefore(), x.bracketBefore()
	switch {
	case strings.HasPrefix(x.Message, "unknown anchor '"):
		return x.at(line, column, "the anchor &%s of the alias *%[1]s is missing before it; quote a value that begins with *", strings.Split(x.Message, "'")[1])
	case x.ContextMsg == "while scanning a quoted scalar":
		return x.unclosedQuote(x.ContextMark.Line, x.ContextMark.Column)
	case quote != nil:
		return quote
	case strings.HasPrefix(blank, "\t"):
		return x.at(line, len(x.lines[line-1])-len(blank)+1, "the indentation has a tab; indent with spaces")
	case here != "" && strings.Contains("@`%", here[:1]):
		return x.at(line, column, "a value may not begin with %c; put it into quotes: \"%s\"", here[0], shown(key, uncommented(here)))
	case strings.HasPrefix(x.ContextMsg, "while parsing a flow") && (line > x.ContextMark.Line || here != "" && strings.Contains("]}", here[:1])):
		return cmp.Or(x.unclosedBracket(x.ContextMark.Line, x.ContextMark.Column), bracket)
	case x.Message == "could not find expected ':'":
		return x.slip(x.ContextMark.Line)
	case bracket != nil:
		return bracket
	case column > len(x.lines[line-1])-len(rest)+1:
		return x.inValue(key, rest, here)
	case strings.HasPrefix(x.Message, "mapping values"), strings.HasPrefix(x.Message, "did not find expected"):
		return cmp.Or(x.slip(line), x.slip(x.previous(line)), x.indentation(start))
	}
	return nil
}

// textAt is the text of a line from a column on.
func (x *explainer) textAt(line, column int) string {
	text := []rune(strings.TrimRight(x.lines[line-1], " \t\r"))
	return string(text[min(max(column-1, 0), len(text)):])
}

// previous is the last line with a text before another one; 0 for the first.
func (x *explainer) previous(line int) int {
	for line--; line > 0 && strings.TrimSpace(uncommented(x.lines[line-1])) == ""; {
		line--
	}
	return line
}

// token is a dash or a key at the beginning of a line.
type token struct {
	line, column int
	name         string
	dash         bool
}

// tokens returns the dashes and the key of a line, the key's name, empty without a key, and what follows them.
func (x *explainer) tokens(line int) (found []token, key, rest string) {
	text := strings.TrimRight(x.lines[line-1], "\r")
	rest = strings.TrimLeft(text, " ")
	for rest == "-" || strings.HasPrefix(rest, "- ") {
		found = append(found, token{line, len(text) - len(rest) + 1, "the dash", true})
		rest = strings.TrimLeft(rest[1:], " ")
	}
	if begin := keyForm.FindStringSubmatch(rest); begin != nil {
		key = strings.Trim(begin[1], `"'`)
		found = append(found, token{line, len(text) - len(rest) + 1, key, false})
		rest = rest[len(begin[0]):]
	}
	return found, key, rest
}

// slip finds a missing space or colon in a line; nil if there is none.
func (x *explainer) slip(line int) *Problem {
	if line < 1 || line > len(x.lines) {
		return nil
	}
	_, key, rest := x.tokens(line)
	if key != "" {
		return nil
	}
	rest = strings.TrimRight(rest, " \t\r")
	column := strings.Index(x.lines[line-1], rest) + 1
	problem := func(form *regexp.Regexp, what, dash string) *Problem {
		found := form.FindStringSubmatch(rest)
		if found == nil {
			return nil
		}
		return x.at(line, column, "a %s; write \"%s\"", what, strings.TrimSpace(dash+found[1]+": "+shown(found[1], found[2])))
	}
	p := cmp.Or(problem(dashlessForm, "space is missing after the dash", "- "), problem(spacelessKey, "space is missing after the colon", ""))
	if strings.HasPrefix(x.ContextMsg, "while parsing a block") {
		return p
	}
	return cmp.Or(p, problem(wordForm, "colon is missing after the key", ""))
}

// bracketBefore finds a bracket that is open at the end of the last line before the error.
func (x *explainer) bracketBefore() *Problem {
	if line := x.previous(x.Mark.Line); line > 0 {
		return x.unclosedBracket(line, opening(openBracket, x.lines[line-1]))
	}
	return nil
}

func (x *explainer) unclosedBracket(line, column int) *Problem {
	open := x.textAt(line, column)
	open = open[:min(1, len(open))]
	closing := map[string]string{"[": "]", "{": "}"}[open]
	if column == 0 || closing == "" {
		return nil
	}
	return x.at(line, column, "the bracket '%s' is not closed; write '%s' at its end", open, closing)
}

// quoteBefore finds a quote that a later line closes by chance, such as by the opening quote of another value.
func (x *explainer) quoteBefore() *Problem {
	for line := 1; line < x.Mark.Line; line++ {
		column := opening(openQuote, x.lines[line-1])
		if column == 0 {
			continue
		}
		quote, end := x.textAt(line, column)[:1], line+1
		for end < x.Mark.Line && !strings.Contains(x.lines[end-1], quote) {
			end++
		}
		_, after, _ := strings.Cut(x.lines[end-1], quote)
		if after = uncommented(after); after != "" && !strings.Contains(",]}", after[:1]) {
			return x.unclosedQuote(line, column)
		}
	}
	return nil
}

func (x *explainer) unclosedQuote(line, column int) *Problem {
	return x.at(line, column, "the quote %.1s is not closed; write it at the end of the value as well", x.textAt(line, column))
}

// inValue explains an error in the value that follows the keys of a line.
func (x *explainer) inValue(key, value, here string) *Problem {
	line, column := x.Mark.Line, x.Mark.Column
	if strings.HasPrefix(x.Message, "mapping values") {
		further := x.at(line, column, "the value has a further colon; put it into quotes: %q", shown(key, uncommented(value)))
		if key == "" {
			return cmp.Or(x.slip(x.previous(line)), further)
		}
		return further
	}
	head, _ := strings.CutSuffix(strings.TrimRight(value, " \t\r"), here)
	head = strings.TrimRight(head, " ")
	if head == "" || !strings.Contains(`"']}`, head[len(head)-1:]) {
		return nil
	}
	return x.at(line, column, "after the closing %s comes %q; put the whole value into quotes", head[len(head)-1:], shown(key, here))
}

// indentation explains a line that begins in a column where no block continues or may begin.
func (x *explainer) indentation(begins []token) *Problem {
	if len(begins) == 0 {
		return nil
	}
	one, inner := begins[0], token{}
	for line := x.previous(one.line); line > 0; line = x.previous(line) {
		tokens, _, _ := x.tokens(line)
		for _, t := range slices.Backward(tokens) {
			switch {
			case inner.line > 0 && t.column > inner.column && t.column > one.column:
			case t.column > one.column:
				inner = t
			default:
				return x.misplaced(one, inner, t)
			}
		}
	}
	if inner.line == 0 {
		return nil
	}
	return x.at(inner.line, 1, "%s is indented by %s, and %s in line %d by %s; keys of the file itself begin in the first column",
		inner.name, inner.indent(), one.name, one.line, one.indent())
}

// misplaced explains the column of a token by the columns of two blocks above it: outer begins in its column or before it, inner, if
// there is one, after it.
func (x *explainer) misplaced(one, inner, outer token) *Problem {
	switch {
	case outer.column == one.column && one.dash:
		return x.at(one.line, one.column, "a dash is in the column of the key %s; indent it below its key", outer.name)
	case outer.column == one.column:
		return x.at(one.line, one.column, "%s is in the column of the dash in line %d; indent it by %s, as the key after the dash",
			one.name, outer.line, token{column: outer.column + 2}.indent())
	case inner.line > 0:
		return x.at(one.line, one.column, "%s is indented by %s, %s in line %d by %s, and %s in line %d by %s; indent it as one of them",
			one.name, one.indent(), inner.name, inner.line, inner.indent(), outer.name, outer.line, outer.indent())
	}
	return x.at(one.line, one.column, "%s is indented by %s, more than %s in line %d, which has a value; indent it by %s",
		one.name, one.indent(), outer.name, outer.line, outer.indent())
}

func (t token) indent() string {
	return unit.Counted(t.column-1, "space", "spaces")
}

// shown is the value of a key for a message: a log must not have secrets.
func shown(key, value string) string {
	if secretKey.MatchString(key) {
		return "..."
	}
	return value
}

// opening is the column of what a form finds in a line; 0 if it finds nothing.
func opening(form *regexp.Regexp, line string) int {
	found := form.FindStringSubmatchIndex(uncommented(line))
	if found == nil {
		return 0
	}
	return utf8.RuneCountInString(line[:found[2]]) + 1
}

// uncommented is a plain value without a comment and the spaces at its end.
func uncommented(text string) string {
	text, _, _ = strings.Cut(" "+text, " #")
	return strings.TrimRight(strings.TrimPrefix(text, " "), " \t\r")
}
