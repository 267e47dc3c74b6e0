package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/core/errtext"
)

// A configuration may consist of several files: the key include names files, directories and patterns, relative to the
// directory of the file that has the key. Of all files, the lists of paths, outputs and meshes are joined in the order of
// reading, a file before those that it includes; the defaults of a type, and each other section, are in one file only.

// files reads a configuration of several files.
type files struct {
	left     int               // bytes that may be read
	visits   int               // values from aliases in all files; see maxVisits
	seen     map[string]string // what included a file, by its absolute name
	problems Problems
}

func newFiles(main string) *files {
	return &files{left: maxFileBytes, seen: map[string]string{absolute(main): ""}}
}

// parse decodes a file and those that it includes; nil: it is not YAML, empty, or no mapping.
func (f *files) parse(name string, content []byte, depth int) *Config {
	f.left -= len(content)
	root, problem := parse(name, content)
	switch {
	case problem != nil:
		f.fail(problem)
		return nil
	case root == nil && depth == 0:
		f.fail(&Problem{File: name, Text: "is empty; it needs paths to measure, a reflector, a load server or a clock"})
		return nil
	case root == nil && len(bytes.TrimSpace(content)) == 0:
		f.fail(&Problem{File: name, Text: "is empty; write its keys again, or a comment if it is empty on purpose"}) // a full disk, or an editor, may have truncated it
		return nil
	case root == nil:
		return nil // as a file of comments in a directory
	}
	c := &Config{File: name}
	d := &decoder{file: name, dir: filepath.Dir(name), visits: f.visits, into: []any{c}}
	d.value(root, "", reflect.ValueOf(c).Elem())
	f.visits = d.visits
	f.fail(d.problems...)
	if root.Kind != yaml.MappingNode {
		return nil // it has no sections to check
	}
	f.include(c, depth)
	return c
}

func (f *files) fail(found ...*Problem) {
	f.problems = append(f.problems, found[:min(len(found), maxProblems-len(f.problems))]...)
}

// include joins c with the files that it names.
func (f *files) include(c *Config, depth int) {
	var names Words
	if err := c.Include.Decode(&names); err != nil {
		f.fail(c.Include.Problems(err)...)
		return
	}
	for i, name := range names {
		key := fmt.Sprintf("[%d]", i)
		if !c.Include.Has(key) {
			key = "" // a single word
		}
		var all []string
		var wrong string
		if _, err := os.Stat(c.Include.Path(fixed(name))); errors.Is(err, fs.ErrNotExist) {
			wrong = c.Include.nowhere(fixed(name))
		} else {
			all, wrong = filesOf(c.Include.Path(name))
		}
		if wrong == "" && depth == maxIncludeDepth {
			wrong = fmt.Sprintf("this file is itself included, more than %d files deep", maxIncludeDepth-1)
		}
		for _, file := range all {
			if wrong == "" {
				wrong = f.one(c, file, c.Include.Problem(key, ""), depth)
			}
		}
		if wrong != "" {
			f.fail(c.Include.Problem(key, fmt.Sprintf("is %q; %s", name, wrong)))
		}
	}
}

// one joins c with one file; wrong is why the key that includes it is wrong.
func (f *files) one(c *Config, name string, at *Problem, depth int) (wrong string) {
	id := absolute(name)
	before, twice := f.seen[id]
	switch {
	case twice && before == "":
		return fmt.Sprintf("the file %s includes itself; name other files, or a directory without it", name)
	case twice:
		return fmt.Sprintf("the file %s is included already by %s; include it once", name, before)
	case len(f.seen) > maxIncluded:
		return fmt.Sprintf("these are more than %d files", maxIncluded)
	}
	f.seen[id] = fmt.Sprintf("%s:%d", at.File, at.Line)
	if err := regular(name); err != nil {
		return errtext.Words(err)
	}
	content, err := read(name, f.left)
	if err != nil {
		return errtext.Words(err)
	}
	if from := f.parse(name, content, depth+1); from != nil {
		f.join(c, from)
	}
	return ""
}

// join appends the lists of from to those of c, and moves its sections to c.
func (f *files) join(c, from *Config) {
	if c.Paths == nil {
		c.Paths = from.Paths
	} else {
		c.Paths = append(c.Paths, from.Paths...)
	}
	c.Outputs, c.Watchers = append(c.Outputs, from.Outputs...), append(c.Watchers, from.Watchers...)
	c.Meshes = append(c.Meshes, from.Meshes...)
	for _, kind := range slices.Sorted(maps.Keys(from.Defaults)) {
		if c.Defaults == nil {
			c.Defaults = map[string]Section{}
		}
		one := c.Defaults[kind]
		f.move(&one, from.Defaults[kind])
		c.Defaults[kind] = one
	}
	to, all := reflect.ValueOf(c).Elem(), reflect.ValueOf(from).Elem()
	for i := range to.NumField() {
		if s, ok := reflect.TypeAssert[*Section](to.Field(i).Addr()); ok && s != &c.Include {
			f.move(s, all.Field(i).Interface().(Section))
		}
	}
}

// move moves a section of an included file.
func (f *files) move(to *Section, from Section) {
	switch {
	case from.given && to.given:
		f.fail(from.Problem("", fmt.Sprintf("is given twice; the first is %s", to.Seen("", from))))
	case from.given:
		*to = from
	}
}

// filesOf are the files that a word of include names: a file, those of a directory, or those that match a pattern. wrong is why it is
// wrong.
func filesOf(name string) (all []string, wrong string) {
	if strings.ContainsAny(name, "*?[") {
		found, err := filepath.Glob(name)
		if _, missing := os.Stat(fixed(name)); missing != nil {
			return nil, missing.Error()
		}
		if err != nil {
			return nil, "it must be a file, a directory or a pattern, such as conf.d/*.yml"
		}
		return slices.DeleteFunc(found, func(one string) bool { return hidden(one) || isDir(one) }), ""
	}
	if !isDir(name) {
		return []string{name}, ""
	}
	entries, err := os.ReadDir(name) // in the order of names
	if err != nil {
		return nil, errtext.Words(err)
	}
	for _, e := range entries {
		one := filepath.Join(name, e.Name())
		if ext := filepath.Ext(one); (ext == ".yml" || ext == ".yaml") && !hidden(one) && !isDir(one) {
			all = append(all, one)
		}
	}
	return all, ""
}

// fixed is a name, or the directory above its first pattern.
func fixed(name string) string {
	for strings.ContainsAny(name, "*?[") {
		name = filepath.Dir(name)
	}
	return name
}

// hidden reports whether a file is one of an editor, or of a volume of Kubernetes.
func hidden(name string) bool { return strings.HasPrefix(filepath.Base(name), ".") }

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// absolute identifies a file, except for links to it.
func absolute(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}
