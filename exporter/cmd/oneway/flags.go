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
	"oneway.example/exporter/probe"
)

// flagName is the name of the flag of an option with a key such as "sweep.step".
func flagName(key string) string { return strings.NewReplacer("_", "-", ".", "-").Replace(key) }

// flagOf is the flag of the option with a key such as "packet_bytes[0]", as messages and help texts name it.
func flagOf(key string) string {
	if key == probe.PeerKey || key == "load_server" {
		return "HOST"
	}
	key, _, _ = strings.Cut(key, "[")
	return "--" + flagName(key)
}

// registerOptions adds flags for options to a command, except those of unused keys. The values of options are the defaults. agent has those
// of the agent: the help states those that differ.
func registerOptions(cmd *kingpin.CmdClause, options, agent option.Described, unused ...string) {
	others := option.All(agent)
	for i, d := range option.All(options) {
		if d.IsFileOnly() || slices.Contains(unused, d.Key) {
			continue
		}
		v := reflect.ValueOf(d.Pointer()).Elem()
		help := helpOf(d, v)
		if other := reflect.ValueOf(others[i].Pointer()).Elem(); !reflect.DeepEqual(v.Interface(), other.Interface()) {
			help += fmt.Sprintf(" The agent's default: %s.", option.String(other.Interface()))
		}
		clause := cmd.Flag(flagName(d.Key), help).PlaceHolder(placeholder(d, v)).HintOptions(d.Words...)
		if !v.IsZero() {
			clause.Default(texts(v)...)
		}
		if d.IsRequired() {
			clause.Required()
		}
		setValue(clause, d.Pointer(), v)
	}
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
		clause.SetValue(&textsFlag{list: v})
	}
}

// helpOf is the help of a flag whose value is v now.
func helpOf(d option.Description, v reflect.Value) string {
	help := d.Doc(flagOf)
	if r := d.Range(); r != "" {
		help += " " + r + "."
	}
	if v.Kind() == reflect.Slice {
		help += " Repeatable."
	}
	switch meaning := d.Meaning(flagOf); {
	case v.IsZero() && meaning != "":
		help += " Default: " + meaning + "."
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
	case t == reflect.TypeFor[option.Bytes]() && (v.IsZero() || v.Kind() == reflect.Slice):
		return "BYTES"
	case !v.IsZero():
		return ""
	case t == reflect.TypeFor[option.Rate]():
		return "RATE"
	case t == reflect.TypeFor[time.Duration]() && d.Meaning(flagOf) != "":
		return "DURATION"
	case v.CanInt() || v.CanUint():
		return "0"
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
		return nil, usageError{fmt.Errorf("%s %s", clockFlag(wrong.Key), wrong.Named(clockFlag))}
	}
	return m, err
}

// clockFlag is the flag of an option of a clock source.
func clockFlag(key string) string { return "--clock-" + flagName(key) }

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
