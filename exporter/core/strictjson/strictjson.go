// Package strictjson decodes JSON that another program or a person wrote.
package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Decode decodes one JSON value: no unknown fields, nothing after it. Explain has made its errors.
func Decode(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return Explain(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// Explain returns the error of a value of the wrong type in terms of JSON, without the names of Go's types and fields; other errors
// as they are.
func Explain(err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	got, want := withArticle(e.Value), wanted(e.Type)
	if e.Field == "" {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	return fmt.Errorf("%s: got %s, want %s", e.Field, got, want)
}

// withArticle returns a kind of JSON value, or a number, with its article.
func withArticle(kind string) string {
	switch kind {
	case "object", "array":
		return "an " + kind
	case "bool":
		return "true or false"
	}
	if strings.HasPrefix(kind, "number ") {
		return "the " + kind
	}
	return "a " + kind
}

// wanted returns which JSON values a type of Go has.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "a string"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "a string (base64)"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return "an array"
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Map:
		return "an object"
	case reflect.Zero(t).CanFloat():
		return "a number"
	case t.Kind() == reflect.Uint64:
		return "a whole number, not negative"
	case t.Kind() == reflect.Int64 || t.Kind() == reflect.Int:
		return "a whole number"
	case reflect.Zero(t).CanUint():
		return fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<t.Bits()-1)
	case reflect.Zero(t).CanInt():
		return fmt.Sprintf("a whole number from %d to %d", int64(-1)<<(t.Bits()-1), int64(1)<<(t.Bits()-1)-1)
	}
	return "another type"
}
