// Package runbook has a page for each alert of deploy/prometheus/rules: the command to type, what its output means, and what
// to do. The pages are written in Markdown.
package runbook

import (
	"bytes"
	"embed"
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
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

// HTML renders a page. Names of alerts in code become links to their pages, relative to the directory of all pages. HTML in a page
// is left out, and so is a link with an address that runs code.
func HTML(text string) template.HTML {
	var b bytes.Buffer
	markdown := goldmark.New(goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(links{}, 0))))
	if err := markdown.Convert([]byte(text), &b); err != nil {
		return template.HTML(template.HTMLEscapeString(text)) //nolint:gosec // the text is escaped
	}
	return template.HTML(b.String()) //nolint:gosec // goldmark escapes every text
}

// links makes links of the names of alerts.
type links struct{}

// Transform replaces each name of an alert in code by a link.
func (links) Transform(page *ast.Document, from text.Reader, _ parser.Context) {
	names := map[*ast.CodeSpan][]byte{}
	_ = ast.Walk(page, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if code, ok := n.(*ast.CodeSpan); ok && entering {
			if part, ok := code.FirstChild().(*ast.Text); ok && Text(string(part.Value(from.Source()))) != "" {
				names[code] = part.Value(from.Source())
			}
		}
		return ast.WalkContinue, nil
	})
	for code, name := range names {
		link := ast.NewLink()
		link.Destination = name
		code.Parent().ReplaceChild(code.Parent(), code, link)
		link.AppendChild(link, code)
	}
}
