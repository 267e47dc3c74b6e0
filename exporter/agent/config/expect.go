package config

import (
	"reflect"
	"strings"

	"oneway.example/exporter/core/option"
)

// maxShownParts is the number of the options of a group that an example shows.
const maxShownParts = 2

// descriptions are of the structs that describe their options.
func (d *decoder) descriptions() (all []option.Description) {
	for _, s := range d.into {
		if described, ok := s.(option.Described); ok {
			all = append(all, option.All(described)...)
		}
	}
	return all
}

// example completes "it must be a mapping" with an example of the key by the descriptions of options; empty: none has one.
func (d *decoder) example(key string) string {
	if key == "" {
		return "" // the whole file
	}
	prefix, most, item := "", 1, strings.HasSuffix(key, "]") // one option of a section, and those that an item of a list must have
	if key = d.relative(key); key != "" {
		prefix, most = key+".", maxShownParts
	}
	var parts []string
	for _, one := range d.descriptions() {
		shown := one.Shown()
		name, inner := strings.CutPrefix(one.Key, prefix)
		switch {
		case shown == "" || shown == "[]":
		case one.Key == key:
			return ", such as " + shown
		case inner && !strings.Contains(name, ".") && (len(parts) < most || item && one.IsRequired()):
			parts = append(parts, name+": "+shown)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ", such as {" + strings.Join(parts, ", ") + "}"
}

// listExample is example for a list of v's type, whose items may describe their own options.
func (d *decoder) listExample(key string, v reflect.Value) string {
	text := d.example(key)
	if item := key + "[0]"; text == "" {
		items := &decoder{section: item, into: []any{reflect.New(v.Type().Elem()).Interface()}}
		text = items.example(item)
	}
	if shown, ok := strings.CutPrefix(text, ", such as "); ok && !strings.HasPrefix(shown, "[") {
		return ", such as [" + shown + "]"
	}
	return text
}

// rangeOf completes "it must be a whole number" with the permitted range by the description of the key; empty: there is none.
func (d *decoder) rangeOf(key string) string {
	key, _, _ = strings.Cut(d.relative(key), "[")
	for _, one := range d.descriptions() {
		if r := one.Range(); one.Key == key && r != "" {
			return ", " + strings.ToLower(r[:1]) + r[1:]
		}
	}
	return ""
}

// relative is a key without the path of the section.
func (d *decoder) relative(key string) string {
	return strings.TrimPrefix(strings.TrimPrefix(key, d.section), ".")
}
