package option

import (
	"encoding"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// Pattern is a type whose texts match a regular expression of ECMA 262. A number without quotes is accepted if the expression matches
// the text "1".
type Pattern interface {
	encoding.TextUnmarshaler
	Pattern() string
}

// Patterns of types of the standard library.
const (
	durationPattern = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+)$`
	prefixPattern   = `^[0-9A-Fa-f.:]+/[0-9]+$`
)

// Properties are the JSON Schemas (draft 2020-12) of the options of structs by key. An option of a group, such as sweep.step, is in the
// object of its group. types are the schemas of types that option does not know. JSON Schema has no bounds of texts: the description
// of a duration has them in words.
func Properties(types map[reflect.Type]map[string]any, structs ...Described) map[string]any {
	properties := map[string]any{}
	for _, s := range structs {
		for _, d := range All(s) {
			at, key := properties, d.Key
			for group, rest, inner := strings.Cut(key, "."); inner; group, rest, inner = strings.Cut(key, ".") {
				if at[group] == nil {
					one := Object(map[string]any{})
					one["description"] = d.Group(strings.TrimSuffix(d.Key, "."+rest))
					at[group] = one
				}
				at, key = at[group].(map[string]any)["properties"].(map[string]any), rest
			}
			at[key] = d.schema(types)
		}
	}
	return properties
}

// RequiredKeys are the keys of the options of structs that must have a value.
func RequiredKeys(structs ...Described) (keys []string) {
	for _, d := range All(structs...) {
		if d.IsRequired() {
			keys = append(keys, d.Key)
		}
	}
	return keys
}

// Object is the schema of an object with these properties and no others.
func Object(properties map[string]any, required ...string) map[string]any {
	all := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		all["required"] = required
	}
	return all
}

// schema is the JSON Schema of the option.
func (d Description) schema(types map[reflect.Type]map[string]any) map[string]any {
	all := d.ofType(types, d.field.Type())
	all["description"] = d.Explained()
	if v := plain(d.standard); v != nil && (d.unset == "" || !reflect.ValueOf(d.standard).IsZero()) {
		all["default"] = v
	}
	return all
}

func (d Description) ofType(types map[reflect.Type]map[string]any, t reflect.Type) map[string]any {
	if known, ok := types[t]; ok {
		return maps.Clone(known)
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return map[string]any{"type": []string{"string", "integer"}, "pattern": durationPattern, "minimum": 0, "maximum": 0}
	case reflect.TypeFor[netip.Prefix]():
		return map[string]any{"type": "string", "pattern": prefixPattern}
	}
	if text, ok := reflect.TypeAssert[Pattern](reflect.New(t)); ok {
		return d.ofText(text.Pattern(), t)
	}
	switch kind := t.Kind(); {
	case kind == reflect.Pointer:
		return d.ofType(types, t.Elem())
	case kind == reflect.Slice:
		return d.ofList(d.ofType(types, t.Elem()))
	case kind == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": d.ofType(types, t.Elem())}
	case kind == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case kind == reflect.Float64:
		return d.bounded(map[string]any{"type": "number"})
	case reflect.Zero(t).CanInt() || reflect.Zero(t).CanUint():
		return d.bounded(map[string]any{"type": "integer"})
	case kind == reflect.String && len(d.Words) > 0:
		return map[string]any{"type": "string", "enum": d.Words}
	case kind == reflect.String:
		return map[string]any{"type": "string"}
	}
	panic(fmt.Sprintf("option: the schema of %s, a %v, is unknown", d.Key, t))
}

// ofText is the schema of a type with a pattern. The bounds are of numbers only: JSON Schema does not apply them to texts.
func (d Description) ofText(pattern string, t reflect.Type) map[string]any {
	all := map[string]any{"type": "string", "pattern": pattern}
	if !regexp.MustCompile(pattern).MatchString("1") {
		return all
	}
	all["type"] = []string{"string", "number"}
	if reflect.Zero(t).CanInt() {
		all["type"] = []string{"string", "integer"}
	}
	return d.bounded(all)
}

func (d Description) ofList(item map[string]any) map[string]any {
	all := map[string]any{"type": "array", "items": item}
	if d.least > 0 {
		all["minItems"] = d.least
	}
	if d.most > 0 {
		all["maxItems"] = d.most
	}
	return all
}

// bounded adds the bounds of numbers, except one that permits all. A zero value with a meaning is permitted beside them.
func (d Description) bounded(all map[string]any) map[string]any {
	low, high := plainNumber(d.low), plainNumber(d.high)
	if low == nil {
		return all
	}
	if d.unset != "" && reflect.ValueOf(d.low).Comparable() && !reflect.ValueOf(d.low).IsZero() {
		low = 0
	}
	all["minimum"] = low
	if !unlimited(d.high) {
		all["maximum"] = high
	}
	return all
}

// plainNumber is a bound as JSON has it; nil: there is none.
func plainNumber(v any) any {
	if v == nil || !reflect.ValueOf(v).CanConvert(reflect.TypeFor[float64]()) {
		return nil
	}
	return v
}

// plain is a default as JSON has it; nil: there is none to show.
func plain(value any) any {
	v := reflect.ValueOf(value)
	switch {
	case !v.IsValid(), v.Kind() == reflect.String && v.Len() == 0, v.Kind() == reflect.Slice && v.IsNil(), v.Kind() == reflect.Map:
		return nil
	case v.Kind() == reflect.Slice:
		all := []any{}
		for i := range v.Len() {
			all = append(all, plain(v.Index(i).Interface()))
		}
		return all
	}
	switch value.(type) {
	case time.Duration, Bytes, fmt.Stringer:
		return String(value)
	}
	if v.Kind() == reflect.Struct {
		return nil
	}
	return value
}
