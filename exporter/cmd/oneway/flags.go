package main

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
)

// flagName is the name of the flag of an option with a key such as "sweep.step".
func flagName(key string) string { return strings.NewReplacer("_", "-", ".", "-").Replace(key) }

// flagOf is the flag of the option with a key such as "packet_bytes[0]", as messages and help texts name it.
func flagOf(key string) string {
	if key == probe.PeerKey {
		return "HOST"
	}
	key, _, _ = strings.Cut(key, "[")
	return "--" + flagName(key)
}

// registerOptions adds flags for options to a command, except for unused keys. flag names the flag of a key. The values of options are the
// defaults. agent has the defaults of the agent: the help states those that differ. After parsing, given reports whether the command line has the flag of a key.
func registerOptions(cmd *kingpin.CmdClause, flag func(key string) string, options, agent option.Described, unused ...string) (given func(key string) bool) {
	others, set := option.All(agent), map[string]*bool{}
	for i, d := range option.All(options) {
		if d.IsFileOnly() || slices.Contains(unused, d.Key) {
			continue
		}
		v := reflect.ValueOf(d.Pointer()).Elem()
		more := ""
		if other := reflect.ValueOf(others[i].Pointer()).Elem(); !reflect.DeepEqual(v.Interface(), other.Interface()) {
			more = fmt.Sprintf(" The agent's default: %s.", option.String(other.Interface()))
		}
		set[d.Key] = new(bool)
		clause := registerOption(cmd, d, flag, more).IsSetByUser(set[d.Key])
		if d.IsRequired() {
			clause.Required()
		}
	}
	return func(key string) bool { return set[key] != nil && *set[key] }
}

// registerOption adds the flag of an option, whose value is the default. flag is the flag of a key; more follows the help.
func registerOption(cmd *kingpin.CmdClause, d option.Description, flag func(key string) string, more string) *kingpin.FlagClause {
	v := reflect.ValueOf(d.Pointer()).Elem()
	clause := cmd.Flag(strings.TrimPrefix(flag(d.Key), "--"), helpOf(d, v, flag)+more).PlaceHolder(placeholder(d, v)).HintOptions(d.Words...)
	if !v.IsZero() {
		clause.Default(texts(v)...)
	}
	setValue(clause, d.Pointer(), v)
	return clause
}

// setValue makes a flag set the option that p points at; v is its field.
func setValue(clause *kingpin.FlagClause, p any, v reflect.Value) {
	switch p := p.(type) {
	case *string:
		clause.StringVar(p)
	case *bool:
		clause.BoolVar(p)
	case *int:
		clause.IntVar(p)
	case *uint64:
		clause.Uint64Var(p)
	case *float64:
		clause.Float64Var(p)
	case *time.Duration:
		clause.DurationVar(p)
	case *[]int:
		*p = nil // kingpin appends to it, also the default
		clause.IntsVar(p)
	case *[]string:
		clause.StringsVar(p)
	case encoding.TextUnmarshaler:
		clause.SetValue(textFlag{p})
	default:
		if v.Kind() == reflect.Pointer {
			v.Set(reflect.New(v.Type().Elem()))
			setValue(clause, v.Interface(), v.Elem())
			return
		}
		clause.SetValue(&textsFlag{list: v})
	}
}

// helpOf is the help of a flag whose value is v now. flag is the flag of a key.
func helpOf(d option.Description, v reflect.Value, flag func(key string) string) string {
	help := d.Doc(flag)
	if r := d.Range(); r != "" {
		help += " " + r + "."
	}
	if v.Kind() == reflect.Slice {
		help += " Repeatable."
	}
	switch meaning := d.FlagMeaning(flag); {
	case v.IsZero() && meaning != "":
		help += " Default: " + meaning + "."
	case meaning != "" && d.Zero() != "":
		help += " " + d.Zero() + ": " + meaning + "."
	case v.Kind() == reflect.Slice && v.Len() > 0:
		help += " Default: " + strings.Join(texts(v), ", ") + "."
	}
	return help
}

// placeholder is the value in the help of a flag; empty: the default, or the name.
func placeholder(d option.Description, v reflect.Value) string {
	t := v.Type()
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch {
	case d.Placeholder() != "":
		return d.Placeholder()
	case strings.HasSuffix(d.Key, "_file"):
		return "FILE"
	case strings.HasSuffix(d.Key, "bytes") && (v.Kind() == reflect.Slice && t.Kind() != reflect.Int || v.IsZero() && d.Meaning(flagOf) != ""):
		return "BYTES"
	case !v.IsZero():
		return ""
	case t == reflect.TypeFor[option.Rate]():
		return "RATE"
	case t == reflect.TypeFor[time.Duration]() && d.Meaning(flagOf) != "":
		return "DURATION"
	case (v.CanInt() || v.CanUint()) && d.Meaning(flagOf) != "":
		return "N"
	case v.CanInt() || v.CanUint():
		return d.Zero()
	case t.Kind() == reflect.String:
		name := flagName(d.Key)
		return strings.ToUpper(name[strings.LastIndexByte(name, '-')+1:])
	}
	return ""
}

// texts are the flag values that result in v.
func texts(v reflect.Value) []string {
	if v.Kind() != reflect.Slice {
		return []string{option.String(v.Interface())}
	}
	return option.Strings(v.Interface())
}

// textFlag is a flag whose type parses its own text, such as a rate.
type textFlag struct{ value encoding.TextUnmarshaler }

// Set parses the text of the flag, such as "5Mbit".
func (f textFlag) Set(text string) error { return f.value.UnmarshalText([]byte(text)) }

// String is a text that Set accepts.
func (f textFlag) String() string { return fmt.Sprint(f.value) }

// textsFlag is a repeatable flag of a list whose elements parse their own text.
type textsFlag struct {
	list reflect.Value
	set  bool
}

// Set appends an element; the first replaces the default.
func (f *textsFlag) Set(text string) error {
	if !f.set {
		f.list.SetZero()
		f.set = true
	}
	one := reflect.New(f.list.Type().Elem())
	if err := one.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
		return err
	}
	f.list.Set(reflect.Append(f.list, one.Elem()))
	return nil
}

// String is the list.
func (f *textsFlag) String() string { return strings.Join(texts(f.list), ", ") }

// IsCumulative lets kingpin accept the flag more than once.
func (*textsFlag) IsCumulative() bool { return true }
