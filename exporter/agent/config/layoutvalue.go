package config

import (
	"regexp"
	"strings"
)

// value reads a value that begins at an offset of its line.
func (l *layout) value(line, indent, offset int, text string) {
	if text == "" || text[0] == '#' {
		l.opens = true
		return
	}
	switch text[0] {
	case '[', '{':
		l.brackets(line, indent, offset, text)
		return
	case '"', '\'':
		n := quoted(text)
		switch rest := strings.TrimLeft(text[max(n, 0):], " "); {
		case n < 0:
			l.fail(line, offset+1, "the quote %c is not closed; write it at the end of the value as well", text[0])
		case rest != "" && rest[0] != '#':
			l.fail(line, offset+n+1, "after the closing quote comes %q; put the whole value into quotes", l.shown(rest))
		}
		return
	case '@', '`', '%':
		l.fail(line, offset+1, "a value may not begin with %c; put it into quotes: \"%s\"", text[0], l.shown(text))
		return
	}
	plain := uncommented(text)
	if found := spacelessKey.FindStringSubmatch(plain); found != nil && l.opens {
		l.fail(line, offset+1, "a space is missing after the colon; write \"%s: %s\"", found[1], shownOf(found[1], found[2]))
		return
	}
	if i := strings.Index(plain+" ", ": "); i >= 0 {
		l.fail(line, offset+i+1, "the value has a further colon; put it into quotes: %q", l.shown(plain))
	}
}

// shown is a value for a message: those of the key of a secret, which a log must not have, are left out.
func (l *layout) shown(value string) string { return shownOf(l.last.name, value) }

func shownOf(key, value string) string {
	if secretKey.MatchString(key) {
		return "..."
	}
	return value
}

var secretKey = regexp.MustCompile(`(?i)password|secret|token|key`)

// uncommented is a plain value without a comment and the spaces at its end.
func uncommented(text string) string {
	if i := strings.Index(text, " #"); i >= 0 {
		text = text[:i]
	}
	return strings.TrimRight(text, " ")
}

// quoted is the length of the quoted text that s begins with; -1: it is not closed.
func quoted(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[0] == '"' && s[i] == '\\':
			i++
		case s[i] != s[0]:
		case s[0] == '\'' && i+1 < len(s) && s[i+1] == '\'':
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// brackets follows the brackets of a line, from an offset on.
func (l *layout) brackets(line, indent, offset int, text string) {
	for i := 0; i < len(text); i++ {
		n := len(l.flow)
		switch c := text[i]; {
		case c == '#' && (i == 0 || text[i-1] == ' '):
			return
		case (c == '"' || c == '\'') && begins(text[:i]):
			length := quoted(text[i:])
			if length < 0 {
				l.fail(line, offset+i+1, "the quote %c is not closed; write it at the end of the value as well", c)
				return
			}
			i += length - 1
		case (c == '[' || c == '{') && (n == 0 || begins(text[:i])):
			l.flow = append(l.flow, bracket{c, line, offset + i + 1, indent})
		case c == ']' || c == '}':
			open := l.flow[n-1]
			if closing(open.open) != c {
				l.fail(line, offset+i+1, "%q closes the bracket %q of line %d, column %d; write %q before it", c, open.open, open.line, open.column, closing(open.open))
				return
			}
			if l.flow = l.flow[:n-1]; n == 1 {
				l.after(line, offset, i+1, text)
				return
			}
		}
	}
}

// begins reports whether a value may begin after a part of a flow collection.
func begins(before string) bool {
	before = strings.TrimRight(before, " ")
	return before == "" || strings.ContainsAny(before[len(before)-1:], "[{,:")
}

// after checks what follows the last closing bracket.
func (l *layout) after(line, offset, n int, text string) {
	rest := strings.TrimLeft(text[n:], " ")
	if rest != "" && rest[0] != '#' {
		l.fail(line, offset+n+1, "after the closing bracket comes %q; put a value with brackets into quotes: %q", l.shown(rest), l.shown(uncommented(text)))
	}
}
