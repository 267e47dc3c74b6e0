//go:build !slim

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // --timezone works on a host without zone files

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/atomicfile"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/localzone"
	"oneway.example/exporter/estimate/history"
	"oneway.example/exporter/serve/historyreport"
	"oneway.example/exporter/serve/slareport"
)

// historyFlags select histories and their analysis; `oneway trends` and `oneway compare` have them.
type historyFlags struct {
	measure, from, to, zone        string
	margin, loss                   float64
	seed                           uint64
	json                           jsonFlag
	server                         prometheusFlags
	influx, database, token, basic string
	csv, timeColumn, valueColumn   string
	metrics                        string
	measured                       historyreport.Measure
	begin, end                     time.Time
	location                       *time.Location
	live                           *reading // nil: no line
	place, why                     string   // where the store has the samples, if it has several places, and why there
}

// Defaults of flags; margins are in percent.
const (
	defaultMargin   = 10.0
	defaultLoss     = 0.1
	defaultDatabase = "oneway"
	defaultTime     = "time"
	defaultValue    = "value"
)

// defaultDays is the time before --to without --from.
const defaultDays = 90

func (f *historyFlags) register(cmd *kingpin.CmdClause) {
	names := historyreport.MeasureNames()
	cmd.Flag("measure", "What is read: "+strings.Join(names, ", ")+".").Default(names[0]).EnumVar(&f.measure, names...)
	cmd.Flag("from", fmt.Sprintf("Begin: a date in --timezone, or a time of RFC 3339; default: %d days before --to.", defaultDays)).PlaceHolder("2026-01-01").StringVar(&f.from)
	cmd.Flag("to", "End, not included: a date in --timezone, or a time of RFC 3339; default: now.").PlaceHolder("2027-01-01").StringVar(&f.to)
	cmd.Flag("timezone", "Time zone of dates, and of hours that the store does not know, such as Europe/Berlin; default: the zone of this host.").PlaceHolder("ZONE").StringVar(&f.zone)
	cmd.Flag("margin", "Difference in percent of the median that does not matter.").Default(fmt.Sprint(defaultMargin)).Float64Var(&f.margin)
	cmd.Flag("loss-margin", "Difference of loss in percent of the packets that does not matter.").Default(fmt.Sprint(defaultLoss)).Float64Var(&f.loss)
	cmd.Flag("seed", "Seed of the random draws of days.").Default("1").Uint64Var(&f.seed)
	f.server.register(cmd, "")
	cmd.Flag("influxdb.url", "Address of InfluxDB (1.8, or 2 and 3 with InfluxQL), in place of Prometheus: rows of hours, else points.").PlaceHolder("http://127.0.0.1:8086").StringVar(&f.influx)
	cmd.Flag("influxdb.database", "Database of the rows and points.").Default(defaultDatabase).StringVar(&f.database)
	cmd.Flag("influxdb.token-file", "File with a token for InfluxDB.").PlaceHolder("FILE").StringVar(&f.token)
	cmd.Flag("influxdb.basic-auth-file", "File with user:password for InfluxDB.").PlaceHolder("FILE").StringVar(&f.basic)
	cmd.Flag("csv", "File with the columns time, value and, if known, error_bound, hour and day_type; others are labels. - is standard input.").PlaceHolder("FILE").StringVar(&f.csv)
	cmd.Flag("csv.time", "Name of the column with the time.").Default(defaultTime).StringVar(&f.timeColumn)
	cmd.Flag("csv.value", "Name of the column with the value.").Default(defaultValue).StringVar(&f.valueColumn)
	cmd.Flag("metrics", "Write the verdicts as series to this file as well, for the textfile collector of node_exporter: the dashboards show them.").PlaceHolder("FILE.prom").StringVar(&f.metrics)
	f.json.register(cmd, "Print a JSON document.")
}

// expose writes series to the file of --metrics, if there is one: all of them or, if reading failed, nothing.
func (f *historyFlags) expose(err error, series func() ([]byte, error)) error {
	if f.metrics == "" || err != nil {
		return err
	}
	text, err := series()
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(f.metrics, text, 0o644); err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	return nil
}

// check parses the flags that are text. An error is a usageError.
func (f *historyFlags) check(now time.Time) (err error) {
	if err = f.parse(now); err != nil {
		return usageError{err}
	}
	return nil
}

func (f *historyFlags) parse(now time.Time) (err error) {
	f.location = time.Local
	if f.zone != "" {
		if f.location, err = time.LoadLocation(f.zone); err != nil || f.zone == "Local" { // which is the zone of this host, without its name
			return fmt.Errorf("--timezone is %q; it must be a name such as Europe/Berlin or UTC", f.zone)
		}
	}
	if f.metrics != "" && !strings.HasSuffix(f.metrics, ".prom") {
		return fmt.Errorf("--metrics is %q; its name must end with .prom, since the textfile collector reads no others", f.metrics)
	}
	f.measured, _ = historyreport.MeasureByName(f.measure) // the parser accepts no other name
	f.begin, f.end, err = f.period("--from", "--to", f.from, f.to, now)
	if err != nil {
		return err
	}
	if !(f.margin > 0 && f.margin <= 100) {
		return fmt.Errorf("--margin is %v; it must be above 0 and at most 100 percent", f.margin)
	}
	if !(f.loss > 0 && f.loss <= 100) {
		return fmt.Errorf("--loss-margin is %v; it must be above 0 and at most 100 percent", f.loss)
	}
	if f.csv != "" && f.measured.Share() {
		return errors.New("--measure=loss needs the packets of each hour, from Prometheus or InfluxDB; a CSV file has one value a row")
	}
	return nil
}

// period parses two flags.
func (f *historyFlags) period(fromFlag, toFlag, fromText, toText string, now time.Time) (from, to time.Time, err error) {
	to = now.In(f.location)
	if toText != "" {
		if to, err = slareport.ParseTime(toText, f.location); err != nil {
			return from, to, fmt.Errorf("%s %w", toFlag, err)
		}
	}
	from = to.AddDate(0, 0, -defaultDays)
	if fromText != "" {
		if from, err = slareport.ParseTime(fromText, f.location); err != nil {
			return from, to, fmt.Errorf("%s %w", fromFlag, err)
		}
	}
	if !from.Before(to) {
		return from, to, fmt.Errorf("%s is %s; it must be before %s, %s", fromFlag, from.Format(time.RFC3339), toFlag, to.Format(time.RFC3339))
	}
	return from, to, nil
}

// unused is an error of a flag that has no effect for the store or for what is read.
func (f *historyFlags) unused() error {
	given := func(value, byDefault string) bool { return value != "" && value != byDefault }
	if f.measured.Share() && f.margin != defaultMargin {
		return usageError{errors.New("--margin is given with --measure=loss, whose margin is --loss-margin")}
	}
	for _, c := range []struct {
		unused      bool
		flag, needs string
	}{
		{!f.measured.Share() && f.loss != defaultLoss, "loss-margin", "--measure=loss"},
		{f.influx == "" && given(f.database, defaultDatabase), "influxdb.database", "--influxdb.url"},
		{f.influx == "" && f.token != "", "influxdb.token-file", "--influxdb.url"},
		{f.influx == "" && f.basic != "", "influxdb.basic-auth-file", "--influxdb.url"},
		{f.csv == "" && given(f.timeColumn, defaultTime), "csv.time", "--csv"},
		{f.csv == "" && given(f.valueColumn, defaultValue), "csv.value", "--csv"},
		{f.csv+f.influx != "" && f.server.basic != "", "prometheus.basic-auth-file", "--prometheus.url"},
		{f.csv+f.influx != "" && f.server.bearer != "", "prometheus.bearer-file", "--prometheus.url"},
	} {
		if c.unused {
			return usageError{fmt.Errorf("--%s is given without %s", c.flag, c.needs)}
		}
	}
	return nil
}

// selected are the labels of --labels, and of flags that are a label.
func selected(text string, flags map[string]string) (labels map[string]string, err error) {
	labels = map[string]string{}
	if text != "" {
		if labels, err = historyreport.ParseLabels(text); err != nil {
			return nil, usageError{fmt.Errorf("--labels: %w", err)}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		value := flags[name]
		if have := labels[name]; value != "" && have != "" {
			return nil, usageError{fmt.Errorf("--%s and %s=%s in --labels exclude each other", name, name, have)}
		}
		if value != "" {
			labels[name] = value
		}
	}
	return labels, nil
}

// source is the store that the flags select.
func (f *historyFlags) source() (historyreport.Source, error) {
	if err := f.unused(); err != nil {
		return nil, err
	}
	switch {
	case f.csv != "" && (f.influx != "" || f.server.url != ""), f.influx != "" && f.server.url != "":
		return nil, usageError{errors.New("--prometheus.url, --influxdb.url and --csv exclude each other")}
	case f.csv != "":
		return historyreport.CSV{File: f.csv, Time: f.timeColumn, Value: f.valueColumn}, nil
	case f.influx != "":
		return f.points()
	}
	server := f.server
	if server.url == "" {
		server.url = localPrometheus
	}
	s, err := server.connect()
	return historyreport.Prometheus{Server: s}, err
}

// points is InfluxDB with its credentials.
func (f *historyFlags) points() (historyreport.Source, error) {
	if at, err := url.Parse(f.influx); err != nil || at.Host == "" {
		return nil, usageError{fmt.Errorf("--influxdb.url is %q; it must begin with http:// or https://, such as http://127.0.0.1:8086", f.influx)}
	}
	if f.token != "" && f.basic != "" {
		return nil, usageError{errors.New("--influxdb.token-file and --influxdb.basic-auth-file exclude each other")}
	}
	d := historyreport.InfluxDB{URL: f.influx, Database: f.database}
	if file := f.token + f.basic; file != "" {
		text, err := keyfile.Read(file)
		if err != nil {
			return nil, fmt.Errorf("credentials of InfluxDB: %w", err)
		}
		secret := strings.TrimSpace(string(text))
		if d.Authorization = "Token " + secret; f.basic != "" {
			d.Authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(secret))
		}
	}
	return d, nil
}

func (f *historyFlags) query(labels map[string]string) historyreport.Query {
	return historyreport.Query{Measure: f.measured, Labels: labels, From: f.begin, To: f.end, Zone: f.location, Progress: f.step("reading the store")}
}

// read reads histories. All that are compared must be of one place: another one has other errors.
func (f *historyFlags) read(ctx context.Context, source historyreport.Source, q historyreport.Query) ([]historyreport.Series, error) {
	all, err := source.Read(ctx, q)
	for _, s := range all {
		if f.place != "" && s.From != f.place {
			return nil, fmt.Errorf("these cannot be compared: one history is from the %s, the other from the %s; choose times that one of them has", f.place, s.From)
		}
		f.place, f.why = s.From, s.Why
	}
	return all, err
}

// readFrom is where the samples are from, and why; empty: the store has one place.
func (f *historyFlags) readFrom() string {
	if f.why == "" {
		return f.place
	}
	return f.place + ": " + f.why
}

// printFrom says where the samples are from.
func (f *historyFlags) printFrom(out io.Writer) error {
	if f.place == "" {
		return nil
	}
	return printWrapped(out, "From InfluxDB, "+f.readFrom()+".", false, widthOf(out))
}

// step is the state of a part of the work for the line of a terminal.
func (f *historyFlags) step(phase string) func(done, all int) {
	if f.live == nil {
		return func(int, int) {}
	}
	return f.live.step(phase)
}

func (f *historyFlags) options() historyreport.Options {
	return historyreport.Options{
		Options: history.Options{Margin: f.margin / 100, Seed: f.seed},
		Loss:    f.loss / 100, End: f.end, Zone: f.location,
	}
}

// zoneName is the name of the zone of times in the text.
func (f *historyFlags) zoneName() string {
	if f.zone != "" {
		return f.zone
	}
	return localzone.Host().ID()
}

// zones says which local time the hours of the day have: recorded hours, and runs in InfluxDB, have the one of their agent.
func (f *historyFlags) zones() string {
	if f.csv == "" && (f.influx == "" || f.measured.OfRuns() || strings.HasPrefix(f.place, "the rows of hours")) {
		return "times in " + f.zoneName() + "; hours, kinds of days and months in the local time of each agent"
	}
	return "times and hours in " + f.zoneName()
}

// settings are the settings of the document.
func (f *historyFlags) settings() document.Settings {
	return document.Settings{
		"measure": f.measure, "from": f.begin.UTC(), "to": f.end.UTC(), "timezone": f.zoneName(),
		"margin_ratio": f.margin / 100, "loss_margin_ratio": f.loss / 100, "seed": f.seed, "draws": history.DefaultDraws,
	}
}

// addGiven adds the settings that were given.
func addGiven(s document.Settings, flags map[string]string) {
	for name, value := range flags {
		if value != "" {
			s[name] = value
		}
	}
}

// historyOutcome is outcomeOf, with a reason for what the store does not have.
func historyOutcome(ctx context.Context, err error) document.Outcome {
	o := outcomeOf(ctx, err)
	if _, found := errors.AsType[*historyreport.NotFoundError](err); found && ctx.Err() == nil {
		o.Reason = reasonNotFound
	}
	return o
}
