package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Options are the keys of a probe that only the probe understands.
type Options struct {
	at        *yaml.Node // the probe's mapping, for messages
	pairs     []pair
	key       string // path of the mapping
	file, dir string
}

// Decode fills the struct that into points at, whose fields keep their values
// where there is no key. An error is of type Problems.
func (o Options) Decode(into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("config: %s: options are decoded into a struct, not into %T", o.key, into)
	}
	d := &decoder{file: o.file, dir: o.dir}
	fields, _ := fieldsOf(v.Elem())
	for _, p := range o.pairs {
		field, known := fields[p.name()]
		if !known {
			d.unknown(p, o.key, fields)
			continue
		}
		d.value(p.value, join(o.key, p.name()), field)
		d.locate(p, field)
	}
	if len(d.problems) > 0 {
		return d.problems.Sort()
	}
	return nil
}

// Problem is what a probe finds wrong with one of its options. key is the
// option's path within the probe, such as "codecs[1]".
func (o Options) Problem(key, text string) *Problem {
	return problemAt(o.file, o.find(key), join(o.key, key), "%s", text)
}

// find returns the node of a key, or the nearest one around it.
func (o Options) find(key string) *yaml.Node {
	name, rest, _ := strings.Cut(key, ".")
	name, index, indexed := strings.Cut(name, "[")
	for _, p := range o.pairs {
		if p.name() != name {
			continue
		}
		n := p.value
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		var i int
		if _, err := fmt.Sscanf(index, "%d]", &i); indexed && err == nil && n.Kind == yaml.SequenceNode && i < len(n.Content) {
			return n.Content[i]
		}
		if rest != "" && n.Kind == yaml.MappingNode {
			return (Options{at: n, pairs: (&decoder{}).inner(n)}).find(rest)
		}
		return n
	}
	for i := 0; o.at != nil && i+1 < len(o.at.Content); i += 2 {
		if o.at.Content[i].Value == name { // name or type: no option, but in the same mapping
			return o.at.Content[i+1]
		}
	}
	return o.at
}

func (d *decoder) inner(n *yaml.Node) []pair {
	pairs, _ := d.pairs(n, "")
	return pairs
}

// Fingerprint is the same for two probes if and only if their options mean the
// same: comments, order, quotes and aliases do not count, but the content of the
// files that they name does, so that a new key is a change.
func (o Options) Fingerprint() string {
	h := sha256.New()
	d := &digest{w: h, dir: o.dir, left: maxDigest}
	for _, p := range sorted(o.pairs) {
		d.pair(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func sorted(pairs []pair) []pair {
	pairs = slices.Clone(pairs)
	slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(a.name(), b.name()) })
	return pairs
}

// maxDigest is more values than the options of a probe have; what aliases to
// aliases add beyond is told apart by its place in the file only.
const maxDigest = 10_000

// digest writes options in one way of all those in which they can be written.
type digest struct {
	w    io.Writer
	dir  string
	left int
}

func (d *digest) pair(p pair) {
	fmt.Fprintf(d.w, "%q:", p.name())
	d.value(p.value)
	if isFileKey(p.name()) && p.value.Kind == yaml.ScalarNode {
		name := p.value.Value
		if !filepath.IsAbs(name) {
			name = filepath.Join(d.dir, name)
		}
		content, err := os.ReadFile(name)
		fmt.Fprintf(d.w, "%x %t", sha256.Sum256(content), err == nil)
	}
}

func (d *digest) value(n *yaml.Node) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
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
		pairs := sorted((&decoder{}).inner(n))
		fmt.Fprintf(d.w, "{%d", len(pairs))
		for _, p := range pairs {
			d.pair(p)
		}
	}
}
