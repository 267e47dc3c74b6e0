package config

import (
	"fmt"
	"regexp"
	"strings"
)

// slip is a mistake of layout or syntax in a file that is not YAML.
type slip struct {
	line, column int // from 1; 0: unknown
	text         string
}

// findSlip returns the first mistake in a file that yaml.v3 has refused; nil: none of those known here. The parser names the
// line at which it gave up, or at which the outermost construct begins, which may be far away.
func findSlip(content string) *slip {
	l := &layout{}
	number := 0
	for text := range strings.Lines(strings.TrimPrefix(content, "\uFEFF")) {
		number++
		if l.read(number, strings.TrimRight(text, " \t\r\n")); l.found != nil {
			return l.found
		}
	}
	if n := len(l.flow); n > 0 {
		return l.flow[n-1].unclosed()
	}
	return nil
}

// layout follows the blocks of a file, line by line.
type layout struct {
	blocks []block
	flow   []bracket // open brackets
	opens  bool      // the last key has no value: its block may follow
	last   block     // the key or dash that was read last
	scalar int       // the indentation of a key with a block scalar (| or >), whose lines are skipped; 0: none, else one more
	found  *slip
}

// block is a mapping or a list, by its first line.
type block struct {
	indent int
	list   bool
	line   int
	name   string // the first key, or "-"
}

// bracket is an open bracket of a flow collection.
type bracket struct {
	open         byte
	line, column int
	indent       int // of its line
}

func (b bracket) unclosed() *slip {
	return &slip{b.line, b.column, fmt.Sprintf("the bracket %q is not closed; write %q at its end", b.open, closing(b.open))}
}

func closing(open byte) byte {
	if open == '[' {
		return ']'
	}
	return '}'
}

func (l *layout) fail(line, column int, format string, args ...any) {
	if l.found == nil {
		l.found = &slip{line, column, fmt.Sprintf(format, args...)}
	}
}

// Forms of a line, after its indentation and its dash.
var (
	keyForm      = regexp.MustCompile(`^("[^"]*"|'[^']*'|[A-Za-z0-9_.<$/-]+) *:(?: +|$)`)
	spacelessKey = regexp.MustCompile(`^([a-z_]+):([^ /].*)$`)
	wordForm     = regexp.MustCompile(`^([a-z_]+)(?: *=)?(?: +(.*))?$`)
	dashlessForm = regexp.MustCompile(`^-([A-Za-z_]+: .*)$`)
	anchorForm   = regexp.MustCompile(`^[&!][^ ]* *`)
)

// read reads a line without its end.
func (l *layout) read(line int, text string) {
	body := strings.TrimLeft(text, " ")
	indent := len(text) - len(body)
	switch {
	case body == "" || body[0] == '#' || l.scalar > 0 && indent >= l.scalar:
		return
	case strings.TrimLeft(body, "\t") == "" || strings.HasPrefix(strings.TrimLeft(body, "\t"), "#"):
		return
	case body[0] == '\t':
		l.fail(line, indent+1, "the indentation has a tab; indent with spaces")
		return
	case len(l.flow) > 0:
		l.inFlow(line, indent, body)
		return
	case body == "---" || body == "..." || body[0] == '%' && indent == 0:
		return
	}
	l.scalar = 0
	for l.found == nil {
		rest, item := strings.CutPrefix(body, "- ")
		if !item && body != "-" {
			break
		}
		l.place(line, block{indent, true, line, "-"})
		if body == "-" {
			l.opens = true
			return
		}
		body = strings.TrimLeft(rest, " ")
		indent = len(text) - len(body)
		l.opens = true // a mapping may begin after the dash
		if anchor := anchorForm.FindString(body); anchor != "" {
			body = body[len(anchor):]
		}
		if !keyForm.MatchString(body) {
			if !spacelessKey.MatchString(body) {
				l.opens = false
			}
			l.value(line, indent, len(text)-len(body), body)
			return
		}
	}
	if l.found == nil {
		l.key(line, indent, text, body)
	}
}

// inFlow reads a line between brackets. A key or a dash that is not indented below the bracket's line ends it in the mind of
// the writer.
func (l *layout) inFlow(line, indent int, body string) {
	b := l.flow[len(l.flow)-1]
	if strings.HasPrefix(body, "- ") || indent <= b.indent && keyForm.MatchString(body) {
		l.found = b.unclosed()
		return
	}
	l.brackets(line, indent, indent, body)
}

// key reads "key: value".
func (l *layout) key(line, indent int, text, body string) {
	if body[0] == '{' || body[0] == '[' {
		l.value(line, indent, indent, body)
		return
	}
	found := keyForm.FindStringSubmatch(body)
	if found == nil || dashlessForm.MatchString(body) {
		l.noKey(line, indent, body)
		return
	}
	if l.place(line, block{indent, false, line, found[1]}); l.found != nil {
		return
	}
	value := body[len(found[0]):]
	value = value[len(anchorForm.FindString(value)):]
	if value == "" || value[0] == '#' {
		l.opens = true
		return
	}
	l.opens = false
	if value[0] == '|' || value[0] == '>' {
		l.scalar = indent + 1
		return
	}
	l.value(line, indent, len(text)-len(value), value)
}

// noKey reports what stands where a key is expected.
func (l *layout) noKey(line, indent int, body string) {
	if found := dashlessForm.FindStringSubmatch(body); found != nil {
		l.fail(line, indent+1, "a space is missing after the dash; write \"- %s\"", found[1])
		return
	}
	if found := spacelessKey.FindStringSubmatch(body); found != nil {
		l.fail(line, indent+1, "a space is missing after the colon; write \"%s: %s\"", found[1], shownOf(found[1], found[2]))
		return
	}
	n := len(l.blocks)
	if found := wordForm.FindStringSubmatch(body); found != nil && (n == 0 || l.blocks[n-1].indent >= indent) {
		l.fail(line, indent+1, "a colon is missing after the key; write %q", strings.TrimSpace(found[1]+": "+shownOf(found[1], found[2])))
	}
}

// place puts a key or a dash into its block, and reports an indentation that none has.
func (l *layout) place(line int, b block) {
	var below *block // the innermost block that ends here
	for n := len(l.blocks); n > 0 && l.blocks[n-1].indent > b.indent; n = len(l.blocks) {
		if below == nil || l.blocks[n-1].indent != below.indent {
			below = &block{}
			*below = l.blocks[n-1]
		}
		l.blocks = l.blocks[:n-1]
	}
	n := len(l.blocks)
	opened := l.opens
	last := l.last
	l.last = b
	switch {
	case n == 0 && below != nil:
		l.fail(below.line, 1, "%s is indented by %s, and %s in line %d by %s; keys of the file itself begin in the first column",
			named(*below), spaces(below.indent), named(b), line, spaces(b.indent))
	case n == 0:
	case l.blocks[n-1].indent == b.indent:
		l.beside(line, b, l.blocks[n-1], opened)
		return
	case below != nil:
		l.fail(line, b.indent+1, "%s is indented by %s, %s in line %d by %s, and %s in line %d by %s; indent it as one of them",
			named(b), spaces(b.indent), named(*below), below.line, spaces(below.indent), named(l.blocks[n-1]), l.blocks[n-1].line, spaces(l.blocks[n-1].indent))
	case !opened:
		l.fail(line, b.indent+1, "%s is indented by %s, more than %s in line %d, which has a value; indent it by %s",
			named(b), spaces(b.indent), named(last), last.line, spaces(last.indent))
	}
	l.blocks = append(l.blocks, b)
	l.opens = false
}

// beside puts a key or a dash beside another one of the same indentation.
func (l *layout) beside(line int, b, other block, opened bool) {
	switch {
	case b.list == other.list:
	case b.list && opened: // a list may stand below its key
		l.blocks = append(l.blocks, b)
	case b.list:
		l.fail(line, b.indent+1, "a dash is in the column of the key %s; indent it below its key", other.name)
	case len(l.blocks) > 1 && l.blocks[len(l.blocks)-2].indent == b.indent: // the list stood below its key
		l.blocks = l.blocks[:len(l.blocks)-1]
	default:
		l.fail(line, b.indent+1, "%s is in the column of the dash in line %d; indent it by %s, as the key after the dash",
			named(b), other.line, spaces(b.indent+2))
	}
	l.opens = false
}

func named(b block) string {
	if b.list {
		return "the dash"
	}
	return strings.Trim(b.name, `"'`)
}

func spaces(n int) string {
	if n == 1 {
		return "1 space"
	}
	return fmt.Sprintf("%d spaces", n)
}
