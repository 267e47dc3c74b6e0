package config

import (
	"encoding"
	"errors"
	"math"
	"net/netip"
	"reflect"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// describe says what a node is, for a message.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if n.ShortTag() == "!!str" {
			return strconv.Quote(n.Value)
		}
		return n.Value
	case yaml.DocumentNode, yaml.AliasNode: // resolved before
	}
	return "something else"
}

// text gives a scalar of any type to a type that reads text.
func (d *decoder) text(n *yaml.Node, key string, into encoding.TextUnmarshaler) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, key, "is %s; it must be a single value", describe(n))
		return
	}
	if err := into.UnmarshalText([]byte(n.Value)); err != nil {
		d.fail(n, key, "is %s; %v", describe(n), expected(into, err))
	}
}

// expected says what the text of a type of the standard library looks like, which
// its errors do not.
func expected(into encoding.TextUnmarshaler, err error) error {
	switch into.(type) {
	case *netip.Prefix:
		return errors.New("it must be a network with a prefix length, such as 192.0.2.0/24 or 2001:db8::/32")
	case *netip.Addr:
		return errors.New("it must be an address, such as 192.0.2.1 or 2001:db8::1")
	}
	return err
}

// duration reads "1m30s". A number without a unit is refused, but for 0.
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
			d.fail(n, key, "is %s; it must be a number", describe(n))
			return
		}
		v.SetFloat(f)
	default:
		d.fail(n, key, "cannot be set: the program has no way to read a %s", v.Type())
	}
}

func (d *decoder) string(n *yaml.Node, key string, v reflect.Value) {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.fail(n, key, "is %s; it must be text", describe(n))
	case n.ShortTag() != "!!str":
		// 010 and 8, or 1.0 and 1: what was meant is the author's to say.
		d.fail(n, key, "is %s; it must be text: write %q, with the quotes", n.Value, n.Value)
	default:
		v.SetString(n.Value)
	}
}

func (d *decoder) integer(n *yaml.Node, key string, v reflect.Value) {
	if n.ShortTag() != "!!int" {
		d.fail(n, key, "is %s; it must be a whole number", describe(n))
		return
	}
	fresh := reflect.New(v.Type())
	if n.Decode(fresh.Interface()) != nil {
		d.fail(n, key, "is %s; that is out of the range of what it counts", n.Value)
		return
	}
	v.Set(fresh.Elem())
}
