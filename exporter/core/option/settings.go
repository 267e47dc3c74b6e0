package option

import (
	"fmt"
	"iter"
	"reflect"
	"strings"
	"time"
)

// Settings returns the options that structs have, by key: those in force, for documents. Units are in the names: a duration
// is a number of seconds ("interval_seconds"), a rate one of bytes per second. A secret is no option; its file is.
func Settings(structs ...any) map[string]any {
	all := map[string]any{}
	for _, s := range structs {
		if v := reflect.Indirect(reflect.ValueOf(s)); v.IsValid() { // nil: no options
			addSettings(all, v)
		}
	}
	return all
}

// Fill sets structs to the values of others of the same types, such as those that flags have set; the rest of into keeps its values.
func Fill(values []Described, into ...any) {
	for _, to := range into {
		for _, from := range values {
			if reflect.TypeOf(from) == reflect.TypeOf(to) {
				reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
			}
		}
	}
}

func addSettings(all map[string]any, v reflect.Value) {
	for key, value := range Fields(v) {
		if value.Kind() == reflect.Pointer {
			if value = value.Elem(); !value.IsValid() {
				continue // nil: no value
			}
		}
		all[key+UnitOf(key, value.Type())] = setting(value)
	}
}

// Fields yields the options of a struct with their keys, those of inline structs among them. A field without a key is none.
func Fields(v reflect.Value) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for field, value := range v.Fields() {
			key, kind, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			switch {
			case kind == "inline":
				for key, value := range Fields(value) {
					if !yield(key, value) {
						return
					}
				}
			case kind == "" && key != "" && key != "-" && !yield(key, value):
				return
			}
		}
	}
}

// UnitOf is what the name of a setting needs besides its key: the unit of its type, if the key has none.
func UnitOf(key string, t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	unit := map[reflect.Type]string{
		reflect.TypeFor[time.Duration](): "_seconds", reflect.TypeFor[Rate](): "_bytes_per_second",
		reflect.TypeFor[PerDirection](): "_bytes_per_second", reflect.TypeFor[Bytes](): "_bytes",
	}[t]
	if strings.HasSuffix("_"+key, unit) {
		return ""
	}
	return unit
}

// setting is the value of an option as encoding/json encodes it.
func setting(v reflect.Value) any {
	switch one := v.Interface().(type) {
	case time.Duration:
		return one.Seconds()
	case Rate:
		return float64(one)
	case PerDirection:
		return map[string]any{"forward": float64(one.Forward), "reverse": float64(one.Reverse)}
	}
	if v.Kind() == reflect.Slice {
		all := make([]any, v.Len())
		for i := range all {
			all[i] = setting(v.Index(i))
		}
		return all
	}
	if v.Kind() != reflect.Struct {
		return v.Interface()
	}
	if text, ok := reflect.TypeAssert[fmt.Stringer](v); ok {
		return text.String()
	}
	return Settings(v.Interface())
}
