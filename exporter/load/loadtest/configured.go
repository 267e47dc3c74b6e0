package loadtest

import (
	"fmt"
	"reflect"
	"strings"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/report"
)

// configuredOf are the options of a struct that are set, as the configuration names them: key.key for those of a section.
func configuredOf(options any) []report.Line {
	return appendConfigured(nil, "", reflect.ValueOf(options))
}

func appendConfigured(all []report.Line, prefix string, of reflect.Value) []report.Line {
	for key, v := range option.Fields(of) {
		_, worded := reflect.TypeAssert[fmt.Stringer](v)
		switch {
		case v.IsZero():
		case v.Kind() == reflect.Struct && !worded:
			all = appendConfigured(all, prefix+key+".", v)
		default:
			all = append(all, report.Line{Quantity: prefix + key, Value: configured(v)})
		}
	}
	return all
}

func configured(v reflect.Value) string {
	if amount, ok := reflect.TypeAssert[option.Bytes](v); ok {
		return unit.Bytes.Format(float64(amount))
	}
	if v.Kind() != reflect.Slice {
		return fmt.Sprint(v.Interface())
	}
	var words []string
	for i := range v.Len() {
		words = append(words, configured(v.Index(i)))
	}
	return strings.Join(words, ", ")
}
