package main

import (
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/clocks/chrony"
	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
)

// optionFlag is the command-line flag of an option of a probe. Its name is the key, with hyphens.
type optionFlag struct {
	// key is the key of the option in the configuration, such as sweep.step.
	key  string
	help string
	// shown is the placeholder of the value; empty: the default, or the name.
	shown string
	// values are those that a shell completes; nil: others than these.
	values []string
}

func (f optionFlag) flag() string {
	return strings.NewReplacer("_", "-", ".", "-").Replace(f.key)
}

// flagOf is the flag of the option with a key such as "packet_bytes[0]".
func flagOf(key string) string {
	option, _, _ := strings.Cut(key, "[")
	return "--" + optionFlag{key: option}.flag()
}

// registerOptions adds flags for options of a probe to a command. options points at a struct with yaml tags; its values
// are the defaults. agent points at the defaults of the agent: the help states those that differ.
func registerOptions(cmd *kingpin.CmdClause, options, agent any, flags []optionFlag) {
	fields, others := optionFields(options), optionFields(agent)
	for _, f := range flags {
		v, help := fields[f.key], f.help
		if other := others[f.key]; !reflect.DeepEqual(v.Interface(), other.Interface()) {
			help = fmt.Sprintf("%s The agent's default: %v.", help, other)
		}
		if v.Kind() == reflect.Slice && v.Len() > 0 {
			help += " Default: " + strings.Join(texts(v), ", ") + "."
		}
		clause := cmd.Flag(f.flag(), help).PlaceHolder(f.placeholder(v)).HintOptions(f.values...)
		if !v.IsZero() {
			clause.Default(texts(v)...)
		}
		switch p := v.Addr().Interface().(type) {
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
			clause.SetValue(&textsFlag{list: v})
		}
	}
}

// placeholder is the value in the help of a flag; empty: the default, or the name.
func (f optionFlag) placeholder(v reflect.Value) string {
	if f.shown == "" && v.CanInt() && v.IsZero() {
		return "0"
	}
	return f.shown
}

// optionFields returns the fields of a struct of options by key.
func optionFields(options any) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	var add func(v reflect.Value, prefix string)
	add = func(v reflect.Value, prefix string) {
		for i := range v.NumField() {
			key, tagged := v.Type().Field(i).Tag.Lookup("yaml")
			switch f := v.Field(i); {
			case !tagged:
			case key == ",inline":
				add(f, prefix)
			case f.Kind() == reflect.Struct:
				add(f, prefix+key+".")
			default:
				fields[prefix+key] = f
			}
		}
	}
	add(reflect.ValueOf(options).Elem(), "")
	return fields
}

// texts are the flag values that result in v.
func texts(v reflect.Value) (all []string) {
	if v.Kind() != reflect.Slice {
		return []string{fmt.Sprint(v)}
	}
	for i := range v.Len() {
		all = append(all, fmt.Sprint(v.Index(i)))
	}
	return all
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

// clockFlags select the source of the clock's quality for a command without a configuration file.
type clockFlags struct {
	source, address string
	bound           time.Duration
}

func (f *clockFlags) register(cmd *kingpin.CmdClause) {
	cmd.Flag("clock", "Source of the error bound of this host's clock: chrony (chronyd), static (see --clock-bound), none.").
		Default(clocks.Names()[0]).EnumVar(&f.source, clocks.Names()...)
	cmd.Flag("clock-address", "Socket of chronyd: unix:///path or udp://address:port; empty: its default sockets.").StringVar(&f.address)
	cmd.Flag("clock-bound", "With --clock=static: error bound of the clock.").Default("1ms").DurationVar(&f.bound)
}

func (f *clockFlags) monitor(sink metric.Sink, log *slog.Logger) (clock.Monitor, error) {
	all := clocks.All()
	source := all[max(0, slices.Index(clocks.Names(), f.source))]
	switch s := source.(type) {
	case *chrony.Source:
		s.Address = f.address
	case *static.Source:
		if f.bound <= 0 {
			return nil, usageError{fmt.Errorf("--clock-bound is %v; it must be above zero", f.bound)}
		}
		s.Bound = &f.bound
	}
	m, err := source.New(clock.Env{Sink: sink, Log: log})
	if wrong, ok := errors.AsType[*option.Error](err); ok {
		return nil, usageError{fmt.Errorf("--clock-%s %s", wrong.Key, wrong.Problem)}
	}
	return m, err
}

// awaitStep is the polling interval of await.
const awaitStep = 20 * time.Millisecond

// await waits for the first reply of the clock daemon, so that the first packets of a short run have an error bound;
// after most the run starts without one.
func (*clockFlags) await(m clock.Monitor, most time.Duration) {
	ticker := time.NewTicker(awaitStep)
	defer ticker.Stop()
	for deadline := time.Now().Add(most); time.Now().Before(deadline) && m.Quality(instant.Now()).State == clock.Silent; {
		<-ticker.C
	}
}
