// Package runbook has a page for each alert of deploy/prometheus/rules: the command to type, what its output means, and what
// to do. The pages are written in a small part of Markdown: headings, paragraphs, lists, indented code, `code`, **bold**
// and [text](address).
package runbook

import (
	"embed"
	"html"
	"html/template"
	"regexp"
	"strings"
)

//go:embed *.md
var files embed.FS

// Names are those of all alerts, sorted.
func Names() []string {
	entries, _ := files.ReadDir(".") // of an embedded directory: it cannot fail
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".md")
	}
	return names
}

// Text is the page of an alert in Markdown; it is empty for an unknown name.
func Text(name string) string {
	text, err := files.ReadFile(name + ".md")
	if err != nil {
		return ""
	}
	return string(text)
}

// Summary is what an alert means: the first paragraph of its page.
func Summary(name string) string {
	_, text, _ := strings.Cut(Text(name), "\n\n")
	text, _, _ = strings.Cut(text, "\n\n")
	return strings.ReplaceAll(text, "\n", " ")
}

// HTML renders a page. Names of alerts become links to their pages, relative to the directory of all pages.
func HTML(text string) template.HTML {
	var b strings.Builder
	for _, block := range regexp.MustCompile(`\n{2,}`).Split(strings.TrimSpace(text), -1) {
		render(&b, block)
	}
	return template.HTML(b.String()) //nolint:gosec // every text is escaped below
}

func render(b *strings.Builder, block string) {
	switch {
	case strings.HasPrefix(block, "    "):
		b.WriteString("<pre><code>" + html.EscapeString(strings.ReplaceAll(block[4:], "\n    ", "\n")) + "</code></pre>\n")
	case strings.HasPrefix(block, "- "):
		b.WriteString("<ul>\n")
		for item := range strings.SplitSeq(block[2:], "\n- ") {
			b.WriteString("<li>" + inline(item) + "</li>\n")
		}
		b.WriteString("</ul>\n")
	case strings.HasPrefix(block, "# "), strings.HasPrefix(block, "## "):
		level, title, _ := strings.Cut(block, " ")
		tag := map[string]string{"#": "h1", "##": "h2"}[level]
		b.WriteString("<" + tag + ">" + inline(title) + "</" + tag + ">\n")
	default:
		// A list directly after its paragraph.
		paragraph, list, found := strings.Cut(block, "\n- ")
		b.WriteString("<p>" + inline(paragraph) + "</p>\n")
		if found {
			render(b, "- "+list)
		}
	}
}

// inline renders the text of a block. Code is split off first: nothing in it has a meaning.
func inline(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		escaped := html.EscapeString(part)
		switch {
		case i%2 == 0:
			escaped = regexp.MustCompile(`\*\*([^*]+)\*\*`).ReplaceAllString(escaped, "<strong>$1</strong>")
			b.WriteString(regexp.MustCompile(`\[([^]]+)\]\(([^)]+)\)`).ReplaceAllString(escaped, `<a href="$2">$1</a>`))
		case Text(part) != "":
			b.WriteString(`<a href="` + escaped + `"><code>` + escaped + "</code></a>")
		default:
			b.WriteString("<code>" + escaped + "</code>")
		}
	}
	return b.String()
}
