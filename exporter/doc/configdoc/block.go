package main

import (
	"slices"
	"strings"

	"oneway.example/exporter/core/option"
)

// width is the longest line of a comment.
const width = 120

// block is a part of the configuration.
type block struct{ lines []string }

func (b *block) line(indent int, text string) {
	b.lines = append(b.lines, strings.Repeat(" ", indent)+text)
}

// comment writes words in lines that begin with #.
func (b *block) comment(indent int, text string) {
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width-indent {
			b.line(indent, line)
			line = "#"
		}
		line += " " + word
	}
	b.line(indent, line)
}

// options writes the options of structs with their defaults or examples, commented out unless active lists their keys or they are needed; a
// conditional one in words. A group, such as sweep in sweep.step, is a line of its own.
func (b *block) options(indent int, active []string, structs ...option.Described) {
	b.descriptions(indent, active, all(structs))
}

// descriptions writes these options.
func (b *block) descriptions(indent int, active []string, options []option.Description) {
	var open []string
	for _, d := range options {
		path := strings.Split(d.Key, ".")
		groups := path[:len(path)-1]
		for i, group := range groups {
			if i >= len(open) || !slices.Equal(open[:i+1], groups[:i+1]) {
				b.comment(indent+2*i, d.Group(strings.Join(groups[:i+1], ".")))
				b.line(indent+2*i, mark(d.IsNeeded())+group+":")
			}
		}
		open = groups
		if d.IsConditional() {
			b.comment(indent+2*len(groups), d.Key+": "+d.Explained()+" Default: "+d.Shown()+".")
			continue
		}
		b.comment(indent+2*len(groups), d.Explained())
		active := mark(d.IsNeeded() || slices.Contains(active, d.Key))
		b.line(indent+2*len(groups), strings.TrimSuffix(active+path[len(path)-1]+": "+shown(d), " "))
	}
}

// mark is what precedes a setting: # if it is not active.
func mark(active bool) string {
	if active {
		return ""
	}
	return "#"
}

// asItem makes the options an item of a list, whose dash is two columns before them at the first key that is not commented out.
func (b *block) asItem() *block {
	for i, line := range b.lines {
		text := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(text)-2]
		if text[0] != '#' {
			b.lines[i] = indent + "- " + text
			break
		}
		b.lines[i] = indent + text
	}
	return b
}

func all(structs []option.Described) (all []option.Description) {
	for _, s := range structs {
		all = append(all, option.All(s)...)
	}
	return all
}

// shown is the value of an option in the file.
func shown(d option.Description) string {
	if value := d.Shown(); value != "" || d.IsSection() {
		return value
	}
	return `""`
}

// hidden is the block with all lines commented out, from a column on.
func (b *block) hidden(column int) string {
	for i, line := range b.lines {
		if !strings.HasPrefix(line[column:], "# ") {
			b.lines[i] = line[:column] + "#" + line[column:]
		}
	}
	return b.String()
}

// String is the text.
func (b *block) String() string { return strings.Join(b.lines, "\n") + "\n" }
