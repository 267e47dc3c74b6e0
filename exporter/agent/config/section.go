package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/option"
)

// Section is a part of a file that only its owner interprets: the value of a key, or the keys of a probe except name and
// type. The zero value belongs to no file.
type Section struct {
	at        *yaml.Node // the value, or the mapping that lacks it
	given     bool
	taken     []string // keys of the mapping outside the section
	key       string   // path of the value
	file, dir string
	defaults  *Section // has the values of keys that the section lacks; nil: none
}

// Given reports whether the section is in the file.
func (s Section) Given() bool { return s.given }

// Has reports whether the section has a key, such as "rate_limit.burst".
func (s Section) Has(key string) bool {
	s = s.owner(key)
	_, found := s.find(key)
	return found
}

// Decode decodes the section into the value that into points at, which keeps its fields without a key. Errors are of type
// Problems.
func (s Section) Decode(into any) error { return s.DecodeAll(into) }

// DecodeAll is Decode into several structs, which together define the keys of the section. No key may be in two structs.
func (s Section) DecodeAll(into ...any) error {
	if !s.given {
		return nil
	}
	var inherited Problems
	if s.defaults != nil {
		inherited = s.Problems(s.defaults.DecodeAll(into...))
	}
	d := &decoder{file: s.file, dir: s.dir, problems: inherited, section: s.key, into: into}
	var targets []reflect.Value
	for _, one := range into {
		targets = append(targets, reflect.ValueOf(one).Elem())
	}
	if targets[0].Kind() == reflect.Struct {
		d.mapping(s.at, s.key, s.taken, targets...)
	} else {
		d.value(s.at, s.key, targets[0])
		d.locate(s.key, targets[0])
	}
	if len(d.problems) > 0 {
		return d.problems.Sort()
	}
	return nil
}

// Problem is an error in the value of a key, such as "codecs[1]"; "" is the section itself.
func (s Section) Problem(key, text string) *Problem {
	s = s.owner(key)
	n, _ := s.find(key)
	return problemAt(s.file, n, join(s.key, key), "%s", text)
}

// Seen is the place of a key as a message about another section names it.
func (s Section) Seen(key string, from Section) string {
	at := s.Problem(key, "")
	if at.File != from.file {
		return fmt.Sprintf("%s in %s:%d", s.key, at.File, at.Line)
	}
	return fmt.Sprintf("%s in line %d", s.key, at.Line)
}

// Duplicate is the error of a value that another section, the first, has too. all is the key's plural.
func (s Section) Duplicate(key, all, value string, first Section) error {
	return option.Errorf(key, "is %q, which is also the %s of %s; %s must differ", value, key, first.Seen(key, s), all)
}

// Problems are the errors of the owner of a section with their places: an *option.Error by its Key in the section,
// Problems unchanged, joined errors one by one, and any other error as an error of the section.
func (s Section) Problems(err error) Problems {
	if err == nil {
		return nil
	}
	// Only errors joined at the top; a wrapping error is one error.
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all Problems
		for _, one := range joined.Unwrap() {
			all = append(all, s.Problems(one)...)
		}
		return all
	}
	if found, ok := errors.AsType[Problems](err); ok {
		return found
	}
	wrong, ok := errors.AsType[*option.Error](err)
	if !ok {
		wrong = &option.Error{Problem: "cannot be used: " + errtext.Words(err)}
	}
	s = s.owner(cmp.Or(wrong.At, wrong.Key))
	n, _ := s.find(cmp.Or(wrong.At, wrong.Key))
	key := join(s.key, wrong.Key)
	return Problems{problemAt(s.file, n, key, "%s", cmp.Or(s.absent(n, key), wrong.Problem))}
}

// absent is the error of a key of a file that does not exist; empty: it exists, or the key is not one of a file.
func (s Section) absent(n *yaml.Node, key string) string {
	if !isFileKey(key) || n.Kind != yaml.ScalarNode || n.Value == "" {
		return ""
	}
	tried := s.Path(n.Value)
	if _, err := os.Stat(tried); !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return fmt.Sprintf("is %q; %s", n.Value, s.nowhere(n.Value))
}

// nowhere says that a file or directory does not exist, with its absolute path.
func (s Section) nowhere(name string) string {
	tried, err := filepath.Abs(s.Path(name))
	if err != nil {
		tried = s.Path(name)
	}
	if filepath.IsAbs(name) {
		return "it does not exist"
	}
	return fmt.Sprintf("%s does not exist (relative names begin at the directory of %s)", tried, filepath.Base(s.file))
}

// Text is the text of a key; empty: the key is missing, or not a single value.
func (s Section) Text(key string) string {
	s = s.owner(key)
	if n, found := s.find(key); found && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// Path resolves a file name against the directory of the configuration. Empty stays empty.
func (s Section) Path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.dir, name)
}

// find returns the node of a key, or its nearest existing parent.
func (s Section) find(key string) (at *yaml.Node, found bool) {
	at = s.at
	if !s.given {
		return at, false
	}
	for _, step := range strings.FieldsFunc(key, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		next := child(at, step)
		if next == nil {
			return at, false
		}
		at = next
	}
	return at, true
}

// child is the value of a key of a mapping, or an item of a list; nil if missing.
func child(n *yaml.Node, step string) *yaml.Node {
	switch n.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(n.Content) {
			return resolved(n.Content[i])
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 { // merged keys are searched below
			if n.Content[i].Value == step {
				return resolved(n.Content[i+1])
			}
		}
		for _, p := range inner(n) {
			if p.name() == step {
				return resolved(p.value)
			}
		}
	default:
	}
	return nil
}

func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// inner returns the pairs of a mapping that was decoded without problems.
func inner(n *yaml.Node) []pair {
	pairs, _ := (&decoder{}).pairs(n, "")
	return pairs
}

// Fingerprint is equal for two probes if and only if their options mean the same: comments, order, quotes and aliases are
// ignored, and the content of files that the options name is included, so that a new key is a change.
func (s Section) Fingerprint() string {
	h := sha256.New()
	d := &digest{w: h, left: maxDigest}
	from := map[string]Section{}
	all := slices.DeleteFunc(inner(s.at), func(p pair) bool { return slices.Contains(s.taken, p.name()) })
	if s.defaults != nil {
		for _, p := range inner(s.defaults.at) {
			all, from[p.name()] = append(all, p), *s.defaults
		}
	}
	slices.SortFunc(all, byName)
	for _, p := range all {
		of, inherited := from[p.name()]
		if !inherited {
			of = s
		}
		d.section = of
		d.pairs([]pair{p})
	}
	return hex.EncodeToString(h.Sum(nil))
}

func byName(a, b pair) int { return strings.Compare(a.name(), b.name()) }

// digest writes options in a canonical form.
type digest struct {
	w       io.Writer
	section Section
	left    int
}

func (d *digest) pairs(all []pair) {
	slices.SortFunc(all, byName)
	for _, p := range all {
		fmt.Fprintf(d.w, "%q:", p.name())
		d.value(p.value)
		if isFileKey(p.name()) && p.value.Kind == yaml.ScalarNode {
			content, err := read(d.section.Path(p.value.Value), maxFileBytes)
			fmt.Fprintf(d.w, "%x %t", sha256.Sum256(content), err == nil)
		}
	}
}

func (d *digest) value(n *yaml.Node) {
	n = resolved(n)
	d.left--
	switch {
	case d.left < 0:
		fmt.Fprintf(d.w, "%d:%d;", n.Line, n.Column)
	case n.Kind == yaml.ScalarNode:
		fmt.Fprintf(d.w, "%s %q;", n.ShortTag(), n.Value)
	case n.Kind == yaml.SequenceNode:
		fmt.Fprintf(d.w, "[%d", len(n.Content))
		for _, c := range n.Content {
			d.value(c)
		}
	default:
		all := inner(n)
		fmt.Fprintf(d.w, "{%d", len(all))
		d.pairs(all)
	}
}
