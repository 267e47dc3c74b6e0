package loadtest

import (
	"fmt"
	"reflect"
	"strings"

	"oneway.example/exporter/report"
)

// configuredOf are the options of a struct that are set, as the configuration names them: key.key for those of a section.
func configuredOf(options any) []report.Line {
	return appendConfigured(nil, "", reflect.ValueOf(options))
}

func appendConfigured(all []report.Line, prefix string, of reflect.Value) []report.Line {
	for i := range of.NumField() {
		field, v := of.Type().Field(i), of.Field(i)
		key, flags, tagged := strings.Cut(field.Tag.Get("yaml"), ",")
		if !field.IsExported() || v.IsZero() || key == "" && !tagged {
			continue
		}
		_, worded := reflect.TypeAssert[fmt.Stringer](v)
		switch {
		case flags == "inline":
			all = appendConfigured(all, prefix, v)
		case v.Kind() == reflect.Struct && !worded:
			all = appendConfigured(all, prefix+key+".", v)
		default:
			all = append(all, report.Line{Quantity: prefix + key, Value: configured(v)})
		}
	}
	return all
}

func configured(v reflect.Value) string {
	if v.Kind() != reflect.Slice {
		return fmt.Sprint(v.Interface())
	}
	var words []string
	for i := range v.Len() {
		words = append(words, configured(v.Index(i)))
	}
	return strings.Join(words, ", ")
}
