package config

import (
	"encoding"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxVisits bounds the values in a file, aliases counted each time they are
// used: few lines of aliases to aliases can stand for billions.
const maxVisits = 1_000_000

// decoder fills Go values from YAML nodes. yaml.v3's own decoder does not say
// which key an error is about, reads "5" as five nanoseconds, and takes a
// missing value for a default.
type decoder struct {
	file     string
	dir      string // where relative files are
	problems Problems
	visits   int
	merging  int // how deep in merge keys
}

func (d *decoder) fail(n *yaml.Node, key, format string, args ...any) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, problemAt(d.file, n, key, format, args...))
	}
}

// resolve follows an alias. It returns false when the file has grown too large.
func (d *decoder) resolve(n *yaml.Node, key string) (*yaml.Node, bool) {
	d.visits++
	if d.visits == maxVisits {
		d.fail(n, key, "makes the file larger than %d values; are aliases used in aliases?", maxVisits)
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n, d.visits < maxVisits
}

var (
	durationType    = reflect.TypeFor[time.Duration]()
	optionsType     = reflect.TypeFor[Options]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// value decodes n, which stands at the path key, into v.
func (d *decoder) value(n *yaml.Node, key string, v reflect.Value) {
	n, ok := d.resolve(n, key)
	if !ok {
		return
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		d.fail(n, key, "is empty; give it a value or leave the key out")
		return
	}
	switch {
	case v.Kind() == reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		d.value(n, key, fresh.Elem())
		v.Set(fresh)
	case v.Addr().Type().Implements(textUnmarshaler):
		d.text(n, key, v.Addr().Interface().(encoding.TextUnmarshaler))
	case v.Type() == durationType:
		d.duration(n, key, v)
	case v.Kind() == reflect.Struct:
		d.mapping(n, key, v)
	case v.Kind() == reflect.Slice:
		d.list(n, key, v)
	default:
		d.scalar(n, key, v)
	}
}

func (d *decoder) list(n *yaml.Node, key string, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, key, "is %s; it must be a list", describe(n))
		return
	}
	items := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.value(item, fmt.Sprintf("%s[%d]", key, i), items.Index(i))
	}
	v.Set(items)
}

// mapping decodes into a struct, by the names of its yaml tags.
func (d *decoder) mapping(n *yaml.Node, key string, v reflect.Value) {
	pairs, ok := d.pairs(n, key)
	if !ok {
		return
	}
	fields, rest := fieldsOf(v)
	options := Options{at: n, key: key, file: d.file, dir: d.dir}
	for _, p := range pairs {
		field, known := fields[p.name()]
		switch {
		case known:
			d.value(p.value, join(key, p.name()), field)
			d.locate(p, field)
		case rest.IsValid():
			options.pairs = append(options.pairs, p)
		default:
			d.unknown(p, key, fields)
		}
	}
	if rest.IsValid() {
		rest.Set(reflect.ValueOf(options))
	}
}

// locate makes the path of a file absolute, or relative to the working directory.
func (d *decoder) locate(p pair, field reflect.Value) {
	if field.Kind() != reflect.String || !isFileKey(p.name()) {
		return
	}
	if name := field.String(); name != "" && !filepath.IsAbs(name) {
		field.SetString(filepath.Join(d.dir, name))
	}
}

func isFileKey(name string) bool { return strings.HasSuffix(name, "_file") }

func (d *decoder) unknown(p pair, key string, fields map[string]reflect.Value) {
	names := sortedKeys(fields)
	if near := nearest(p.name(), names); near != "" {
		d.fail(p.keyNode, join(key, p.name()), "is unknown; did you mean %q?", near)
		return
	}
	d.fail(p.keyNode, join(key, p.name()), "is unknown; the keys here are %s", strings.Join(names, ", "))
}

// fieldsOf lists the fields of a struct by their names in YAML, and the one that
// takes the rest.
func fieldsOf(v reflect.Value) (fields map[string]reflect.Value, rest reflect.Value) {
	fields = map[string]reflect.Value{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case f.Type == optionsType:
			rest = v.Field(i)
		case name == "":
			fields[strings.ToLower(f.Name)] = v.Field(i)
		default:
			fields[name] = v.Field(i)
		}
	}
	return fields, rest
}

func join(key, name string) string {
	if key == "" || name == "" {
		return key + name
	}
	return key + "." + name
}
