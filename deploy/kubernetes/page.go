package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The table of the page is between these lines.
const (
	tableBegin = "<!-- values: generated from values.yaml by make generate -->\n"
	tableEnd   = "<!-- end of values -->\n"
)

// writeTable writes the table of all values in a page.
func writeTable(values, page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(text, []byte(tableBegin))
	_, after, ends := bytes.Cut(rest, []byte(tableEnd))
	if !found || !ends {
		return fmt.Errorf("%s: the lines %q and %q are not in it", page, tableBegin, tableEnd)
	}
	t, err := table(values)
	if err != nil {
		return err
	}
	return os.WriteFile(page, slices.Concat(before, []byte(tableBegin+t+tableEnd), after), 0o644)
}

// table is a row for each value with a comment. A value without one is a section.
func table(values string) (string, error) {
	text, err := os.ReadFile(values)
	if err != nil {
		return "", err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return "", fmt.Errorf("%s: %w", values, err)
	}
	var b strings.Builder
	fmt.Fprint(&b, "| Value | Default | Meaning |\n|---|---|---|\n")
	err = rows(&b, "", document.Content[0])
	return b.String(), err
}

func rows(b *strings.Builder, prefix string, mapping *yaml.Node) error {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name := prefix + key.Value
		paragraphs := strings.Split(key.HeadComment, "\n\n")
		comment := strings.ReplaceAll(paragraphs[len(paragraphs)-1], "\n", " ")
		if comment == "" {
			if value.Kind != yaml.MappingNode || len(value.Content) == 0 {
				return fmt.Errorf("values.yaml: line %d: %s has no comment", key.Line, name)
			}
			if err := rows(b, name+".", value); err != nil {
				return err
			}
			continue
		}
		written, err := inline(value)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", name, written, strings.TrimPrefix(comment, "# "))
	}
	return nil
}

// inline is a value in one line.
func inline(value *yaml.Node) (string, error) {
	text, err := yaml.Marshal(flow(value))
	return strings.TrimSpace(string(text)), err
}

// flow is a copy of a value in the flow style, without comments.
func flow(value *yaml.Node) *yaml.Node {
	c := &yaml.Node{Kind: value.Kind, Tag: value.Tag, Value: value.Value, Style: value.Style}
	if c.Kind != yaml.ScalarNode {
		c.Style = yaml.FlowStyle
	}
	for _, child := range value.Content {
		c.Content = append(c.Content, flow(child))
	}
	return c
}
