package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/option"
)

// decoder fills Go values from YAML nodes. The decoder of the YAML library does not report the key of an error, reads "5" as five
// nanoseconds, and accepts a missing value as the default.
type decoder struct {
	file     string
	dir      string // base of relative file names
	problems Problems
	visits   int // values from aliases
	aliased  int // depth of aliases; 0: the value is in its place
	merging  int // depth of merge keys

	merged map[*yaml.Node]bool // what the outermost mapping has merged in completely

	section string // the key of what is decoded
	into    []any  // the structs that it is decoded into, whose descriptions messages use
}

func (d *decoder) fail(n *yaml.Node, key, format string, args ...any) {
	d.report(n, key, "", format, args...)
}

// report is fail for an unknown key that probably is the key meant.
func (d *decoder) report(n *yaml.Node, key, meant, format string, args ...any) {
	if len(d.problems) < maxProblems {
		one := problemAt(d.file, n, key, format, args...)
		one.meant = meant
		d.problems = append(d.problems, one)
	}
}

// resolve follows an alias, and calls read with the value unless aliases made maxVisits values before.
func (d *decoder) resolve(n *yaml.Node, key string, read func(*yaml.Node)) {
	alias := n.Kind == yaml.AliasNode
	if alias {
		d.aliased++
		defer func() { d.aliased-- }()
	}
	if d.aliased > 0 {
		if d.visits++; d.visits == maxVisits {
			d.fail(n, key, "makes more than %d values of aliases; check for aliases in aliases", maxVisits)
		}
	}
	if d.visits < maxVisits || d.aliased == 0 {
		read(resolved(n))
	}
}

var (
	durationType    = reflect.TypeFor[time.Duration]()
	sectionType     = reflect.TypeFor[Section]()
	wordsType       = reflect.TypeFor[Words]()
	sectionsType    = reflect.TypeFor[Sections]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// value decodes n, whose path is key, into v.
func (d *decoder) value(n *yaml.Node, key string, v reflect.Value) {
	d.resolve(n, key, func(n *yaml.Node) { d.resolvedValue(n, key, v) })
}

// resolvedValue decodes what is no alias.
func (d *decoder) resolvedValue(n *yaml.Node, key string, v reflect.Value) {
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
	case v.Type() == sectionType:
		v.Set(reflect.ValueOf(Section{at: n, given: true, key: key, file: d.file, dir: d.dir}))
	case v.Kind() == reflect.Struct:
		d.mapping(n, key, nil, v)
	case v.Type() == wordsType && n.Kind == yaml.ScalarNode, v.Type() == sectionsType && n.Kind == yaml.MappingNode:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		d.value(n, key, v.Index(0))
	case v.Kind() == reflect.Slice:
		d.list(n, key, v)
	case v.Kind() == reflect.Map:
		d.dictionary(n, key, v)
	default:
		d.scalar(n, key, v)
	}
}

func (d *decoder) list(n *yaml.Node, key string, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		want := "a list"
		if v.Type() == wordsType {
			want = "text or a list of texts"
		}
		d.fail(n, key, "is %s; it must be %s%s", describeUnquoted(n, key), want, d.listExample(key, v))
		return
	}
	items := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.value(item, fmt.Sprintf("%s[%d]", key, i), items.Index(i))
	}
	v.Set(items)
}

// dictionary decodes a mapping whose keys the user chooses.
func (d *decoder) dictionary(n *yaml.Node, key string, v reflect.Value) {
	pairs, _ := d.pairs(n, key)
	all := reflect.MakeMapWithSize(v.Type(), len(pairs))
	for _, p := range pairs {
		one := reflect.New(v.Type().Elem()).Elem()
		d.value(p.value, join(key, p.name()), one)
		all.SetMapIndex(reflect.ValueOf(p.name()), one)
	}
	v.Set(all)
}

// mapping decodes into structs, by the names of their yaml tags. It ignores the keys in taken, which others have decoded.
func (d *decoder) mapping(n *yaml.Node, key string, taken []string, into ...reflect.Value) {
	pairs, ok := d.pairs(n, key)
	if !ok {
		return
	}
	fields, place, rest := fieldsOf(into)
	for name, f := range fields {
		if f.Type() == sectionType && !f.Interface().(Section).given { // in case the key is missing
			f.Set(reflect.ValueOf(Section{at: n, key: join(key, name), file: d.file, dir: d.dir}))
		}
	}
	if place.IsValid() {
		place.Set(reflect.ValueOf(Section{at: n, given: true, taken: sortedKeys(fields), key: key, file: d.file, dir: d.dir}))
	}
	var unknown []pair
	for _, p := range pairs {
		field, known := fields[p.name()]
		switch {
		case known:
			d.value(p.value, join(key, p.name()), field)
			d.locate(p.name(), field)
		case !rest && !slices.Contains(taken, p.name()):
			unknown = append(unknown, p)
		}
	}
	if len(unknown) > 0 {
		d.unknown(unknown, key, slices.Concat(sortedKeys(fields), taken), pairs)
	}
}

// locate resolves a file name against the directory of the configuration.
func (d *decoder) locate(key string, field reflect.Value) {
	if field.Kind() == reflect.String && isFileKey(key) {
		field.SetString(Section{dir: d.dir}.Path(field.String()))
	}
}

func isFileKey(name string) bool { return strings.HasSuffix(name, "_file") }

// unknown reports keys that are none of names. A key that the mapping has already, in given, is not what another one means.
func (d *decoder) unknown(unknown []pair, key string, names []string, given []pair) {
	slices.Sort(names)
	has := map[string]bool{}
	for _, p := range given {
		has[p.name()] = true
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return has[name] })
	for _, p := range unknown[:min(len(unknown), maxProblems)] {
		if meant := option.Nearest(p.name(), missing); meant != "" {
			d.report(p.keyNode, join(key, p.name()), join(key, meant), "is unknown; %s", option.DidYouMean(meant))
			continue
		}
		d.fail(p.keyNode, join(key, p.name()), "is unknown; the keys here are %s", strings.Join(names, ", "))
	}
}

// fieldsOf lists the fields of structs by their names in YAML; a field without a tag has none. place is the field for the
// whole mapping; rest reports whether keys of other names are allowed.
func fieldsOf(structs []reflect.Value) (fields map[string]reflect.Value, place reflect.Value, rest bool) {
	fields = map[string]reflect.Value{}
	for _, v := range structs {
		maps.Insert(fields, option.Fields(v))
		for field, value := range v.Fields() {
			if _, kind, _ := strings.Cut(field.Tag.Get("yaml"), ","); kind == "place" || kind == "rest" {
				place, rest = value, kind == "rest"
			}
		}
	}
	return fields, place, rest
}

// Keys are the keys that Section.DecodeAll accepts for the struct that into points at.
func Keys(into any) []string {
	fields, _, _ := fieldsOf([]reflect.Value{reflect.ValueOf(into).Elem()})
	return sortedKeys(fields)
}

// cut is the begin of a text of the file, for a message.
func cut(text string) string {
	if len(text) <= maxShownName {
		return text
	}
	return strings.ToValidUTF8(text[:maxShownName], "") + "..."
}

func join(key, name string) string {
	name = cut(name)
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		name = strconv.Quote(name) // a terminal and a log get none of its control characters
	}
	if key == "" || name == "" || name[0] == '[' {
		return key + name
	}
	return key + "." + name
}

// pair is a key of a mapping and its value.
type pair struct{ keyNode, value *yaml.Node }

func (p pair) name() string { return p.keyNode.Value }

// pairs lists the keys of a mapping, followed by those that it merges in (<<) and does not have itself.
func (d *decoder) pairs(n *yaml.Node, key string) ([]pair, bool) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, key, "is %s; it must be a mapping%s", describeUnquoted(n, key), d.example(key))
		return nil, false
	}
	var all []pair
	var merged []*yaml.Node
	own := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		switch {
		case k.ShortTag() == "!!merge":
			merged = append(merged, value)
		case k.Kind != yaml.ScalarNode:
			d.fail(k, key, "has %s as a key; keys must be words", describe(k))
		case own[k.Value] != nil:
			d.fail(k, join(key, k.Value), "is given twice; the first is in line %d", own[k.Value].Line)
		default:
			own[k.Value] = k
			all = append(all, pair{k, value})
		}
	}
	if len(merged) == 0 {
		return all, true
	}
	if d.merging == 0 {
		d.merged = map[*yaml.Node]bool{}
	}
	for _, m := range merged {
		all = d.merge(all, own, m, key)
	}
	return all, true
}

// merge appends the pairs of a mapping, or of each of a list of mappings. A node that was merged before has no further keys: aliases
// may name it any number of times.
func (d *decoder) merge(all []pair, own map[string]*yaml.Node, from *yaml.Node, key string) []pair {
	mappings := []*yaml.Node{from}
	if list := resolved(from); list.Kind == yaml.SequenceNode && !d.merged[list] {
		d.merged[list] = true
		mappings = list.Content
	}
	for _, m := range mappings {
		if resolved(m).Kind == yaml.MappingNode && d.merged[resolved(m)] {
			continue
		}
		if d.merging == maxMerging {
			d.fail(m, key, "merges mappings in mappings, more than %d deep", maxMerging)
			break
		}
		all = d.mergeOne(all, own, m, key)
	}
	return all
}

func (d *decoder) mergeOne(all []pair, own map[string]*yaml.Node, from *yaml.Node, key string) []pair {
	d.merging++
	defer func() { d.merging-- }()
	d.resolve(from, key, func(from *yaml.Node) {
		pairs, _ := d.pairs(from, join(key, "<<"))
		for _, p := range pairs {
			if own[p.name()] == nil {
				own[p.name()] = p.keyNode
				all = append(all, p)
			}
		}
		d.merged[from] = true
	})
	return all
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// describe describes a node for a message.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if n.ShortTag() == "!!str" {
			return strconv.Quote(cut(n.Value))
		}
		return cut(n.Value)
	case yaml.DocumentNode, yaml.AliasNode, yaml.StreamNode: // never here: resolve follows aliases
	}
	return "something else"
}

// longestWord is the longest text of a whole file that an error quotes. Tokens and keys are longer.
const longestWord = 15

// describeUnquoted is describe, but does not quote a file that has nothing but a long text: it may be a token or a key, and errors are logged.
func describeUnquoted(n *yaml.Node, key string) string {
	if key == "" && n.Kind == yaml.ScalarNode && len(n.Value) > longestWord {
		return "text, as of a token or a key"
	}
	return describe(n)
}

// text decodes a scalar into a type with UnmarshalText.
func (d *decoder) text(n *yaml.Node, key string, into encoding.TextUnmarshaler) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, key, "is %s; it must be a single value", describe(n))
		return
	}
	if err := unmarshal(into, n.Value); err != nil {
		d.fail(n, key, "is %s; %v", describe(n), err)
	}
}

// unmarshal states the expectation for types of the standard library, whose errors do not.
func unmarshal(into encoding.TextUnmarshaler, text string) (err error) {
	if network, ok := into.(*netip.Prefix); ok {
		*network, err = hostport.Network(text)
		return err
	}
	err = into.UnmarshalText([]byte(text))
	if _, ok := into.(*netip.Addr); ok && err != nil {
		return errors.New("it must be an address, such as 192.0.2.1 or 2001:db8::1")
	}
	return err
}

// duration reads "1m30s". A number without a unit is an error, except 0.
func (d *decoder) duration(n *yaml.Node, key string, v reflect.Value) {
	duration, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		d.fail(n, key, "is %s; it must be a duration with a unit, such as 20ms, 10s or 1h30m", describe(n))
		return
	}
	v.SetInt(int64(duration))
}

// scalar decodes a string, boolean or number.
func (d *decoder) scalar(n *yaml.Node, key string, v reflect.Value) {
	tag := n.ShortTag()
	switch {
	case v.Kind() == reflect.String:
		d.string(n, key, v)
	case v.Kind() == reflect.Bool:
		var b bool
		if tag != "!!bool" || n.Decode(&b) != nil {
			d.fail(n, key, "is %s; it must be true or false", describe(n))
			return
		}
		v.SetBool(b)
	case v.CanInt() || v.CanUint():
		d.integer(n, key, v)
	case v.CanFloat():
		var f float64
		if (tag != "!!int" && tag != "!!float") || n.Decode(&f) != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			d.fail(n, key, "is %s; it must be a number%s", describe(n), d.rangeOf(key))
			return
		}
		v.SetFloat(f)
	default:
		d.fail(n, key, "cannot be decoded into a %s; the type is not supported", v.Type())
	}
}

func (d *decoder) string(n *yaml.Node, key string, v reflect.Value) {
	switch {
	case n.Kind == yaml.SequenceNode && len(n.Content) == 1 && hostport.IsAddress(n.Content[0].Value): // brackets of an IPv6 address
		d.fail(n, key, "is a list; it must be text: write \"[%s]\", with the quotes", n.Content[0].Value)
	case n.Kind != yaml.ScalarNode:
		d.fail(n, key, "is %s; it must be text", describe(n))
	case n.ShortTag() != "!!str":
		// Unquoted 010 could mean 8, and 1.0 could mean 1.
		d.fail(n, key, "is %s; it must be text: write %q, with the quotes", cut(n.Value), cut(n.Value))
	default:
		v.SetString(n.Value)
	}
}

func (d *decoder) integer(n *yaml.Node, key string, v reflect.Value) {
	if n.ShortTag() != "!!int" {
		d.fail(n, key, "is %s; %s", describe(n), cmp.Or(option.CodePointMeant(n.Value), "it must be a whole number"+d.rangeOf(key)))
		return
	}
	fresh := reflect.New(v.Type())
	if n.Decode(fresh.Interface()) != nil {
		d.fail(n, key, "is %s; it is out of range", cut(n.Value))
		return
	}
	v.Set(fresh.Elem())
}
