// Package commands runs the commands of the documentation, of the runbooks, and of the READMEs beside what they describe.
package commands

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// A Command is one of a page: a line of an indented block or of a block `sh`, with the lines that continue it.
type Command struct {
	// Line is its first line in the page, from 1.
	Line int
	// Text is what a reader types, without the prompt of a host ("a$ ") and without the comment at its end.
	Text string
}

// Extract returns the commands of a page. All other blocks of a page are fenced: ```yaml, ```promql, or ``` alone for output.
func Extract(page []byte) (out []Command) {
	_ = ast.Walk(goldmark.DefaultParser().Parse(text.NewReader(page)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if fenced, ok := n.(*ast.FencedCodeBlock); ok && string(fenced.Language(page)) != "sh" || !entering || n.Type() != ast.TypeBlock {
			return ast.WalkContinue, nil
		}
		switch n.(type) {
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			out = append(out, fromBlock(page, n.Lines())...)
		}
		return ast.WalkContinue, nil
	})
	return out
}

func fromBlock(page []byte, lines *text.Segments) (out []Command) {
	var until string // the end of a here-document
	goesOn := false
	for i := range lines.Len() {
		segment := lines.At(i)
		line := strings.TrimRight(string(segment.Value(page)), "\n")
		if until != "" || goesOn {
			last := &out[len(out)-1]
			last.Text += "\n" + line
			if until == strings.TrimSpace(line) {
				until = ""
			}
			goesOn = strings.HasSuffix(line, `\`)
			continue
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if prompt, command, ok := strings.Cut(line, "$ "); ok && len(prompt) == 1 {
			line = command
		}
		if command, _, ok := strings.Cut(line, "  # "); ok {
			line = strings.TrimRight(command, " ")
		}
		goesOn = strings.HasSuffix(line, `\`)
		if _, word, ok := strings.Cut(line, "<<'"); ok {
			until, _, _ = strings.Cut(word, "'")
		}
		out = append(out, Command{Line: 1 + bytes.Count(page[:segment.Start], []byte("\n")), Text: line})
	}
	return out
}
