package influx

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/point"
	"oneway.example/tests/await"
)

var (
	update = flag.Bool("update", false, "rewrite the lists of measurements in deploy/influxdb")
	listRE = regexp.MustCompile(`/\^oneway_\(run_\)\?\([a-z0-9_|]+\)\$/`)
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(deploy + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDownsamplingHasEveryMeasurement: it lists the measurements of series, without buckets, and Flux leaves out text.
func TestDownsamplingHasEveryMeasurement(t *testing.T) {
	var names, texts []string
	for _, m := range point.Series(families.All()) {
		if !slices.ContainsFunc(m.Columns, func(c point.Column) bool { return c.Part == point.Bucket }) {
			names = append(names, strings.TrimPrefix(m.Name, point.Prefix))
		}
		for _, c := range m.Columns {
			if c.Part == point.Fact {
				texts = append(texts, c.Key)
			}
		}
	}
	slices.Sort(texts)
	list := "/^oneway_(run_)?(" + strings.Join(names, "|") + ")$/"
	for _, file := range []string{"influxdb1.iql", "downsample.flux"} {
		was := read(t, file)
		is := listRE.ReplaceAllLiteralString(was, list)
		if *update {
			if err := os.WriteFile(deploy+file, []byte(is), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if is != was || !strings.Contains(was, list) {
			t.Errorf("%s does not have all measurements; -args -update rewrites it: %s", file, list)
		}
	}
	if want := "/^(" + strings.Join(append([]string{point.RunField}, slices.Compact(texts)...), "|") + ")$/"; !strings.Contains(read(t, "downsample.flux"), want) {
		t.Errorf("downsample.flux does not leave out %s", want)
	}
	in := regexp.MustCompile(strings.Trim(list, "/"))
	for _, m := range point.RawMeasurements(families.Tables()) {
		if in.MatchString(m.Name) {
			t.Errorf("raw samples %s are downsampled", m.Name)
		}
	}
}

// hourQuery is the continuous query of a measurement of rows of hours.
func hourQuery(t point.HourTable) string {
	var fields []string
	for i := range t.Columns {
		c := &t.Columns[i]
		fields = append(fields, fmt.Sprintf("%s(%q) AS %q", c.Operation(), c.Key, c.Key))
	}
	return fmt.Sprintf("CREATE CONTINUOUS QUERY %[1]q ON \"oneway\" RESAMPLE EVERY 15m FOR 6h BEGIN SELECT %[2]s INTO \"oneway\".\"long\".%[1]q FROM \"oneway\".\"raw\".%[1]q GROUP BY time(15m), * fill(none) END",
		t.Name, strings.Join(fields, ", "))
}

// TestRowsOfHoursAreKept: a query of version 1.8 has each field with its operation, and the task of version 2 each measurement.
func TestRowsOfHoursAreKept(t *testing.T) {
	was := read(t, "influxdb1.iql")
	is := was
	for _, table := range point.HourTables() {
		want := hourQuery(table)
		is = regexp.MustCompile(`(?m)^CREATE CONTINUOUS QUERY "`+table.Name+`" .*$`).ReplaceAllLiteralString(is, want)
		if !*update && !strings.Contains(was, want+"\n") {
			t.Errorf("influxdb1.iql does not have this query; -args -update rewrites it: %s", want)
		}
		if re := regexp.MustCompile(`^oneway_hour(_round_trip|_voice)?$`); !re.MatchString(table.Name) || !strings.Contains(read(t, "hours.flux"), re.String()) {
			t.Errorf("hours.flux does not have %s", table.Name)
		}
	}
	if *update {
		if err := os.WriteFile(deploy+"influxdb1.iql", []byte(is), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestScriptCreatesTheDatabaseOf18(t *testing.T) {
	s := New(t, true)
	s.Start()
	s.Query("", `CREATE USER admin WITH PASSWORD 'se"cret' WITH ALL PRIVILEGES`)
	if out, err := exec.Command(deploy+"create.sh", "1", s.URL).CombinedOutput(); err == nil {
		t.Errorf("without a password it succeeds: %s", out)
	}
	if out, err := exec.Command(deploy+"create.sh", "1", s.URL+"/write").CombinedOutput(); err == nil || !strings.Contains(string(out), "404 page not found") {
		t.Errorf("with another path: %v, %s", err, out)
	}
	s.User, s.Password = "admin", `se"cret`
	for range 2 { // it may be repeated
		Create(t, s, "INFLUX_USERNAME=admin", `INFLUX_PASSWORD=se\"cret`)
	}
	policies := fmt.Sprint(s.Query("oneway", "SHOW RETENTION POLICIES ON oneway"))
	for _, want := range []string{"[raw 720h0m0s 24h0m0s 1 true]", "[long 17472h0m0s 672h0m0s 1 false]"} {
		if !strings.Contains(policies, want) {
			t.Errorf("retention policies %s, want %s", policies, want)
		}
	}
	var queries []any
	for _, row := range s.Query("", "SHOW CONTINUOUS QUERIES") {
		queries = append(queries, row[0])
	}
	if want := []any{"oneway_5m", "oneway_hour", "oneway_hour_round_trip", "oneway_hour_voice"}; !slices.Equal(queries, want) {
		t.Errorf("continuous queries %v, want %v", queries, want)
	}
}

// hour has points of the last hour, of each kind.
func hour(_ instant.Time, emit func(*point.Point)) error {
	now := instant.FromTime(time.Now().Truncate(5 * time.Minute))
	for i := range 60 {
		at := now - instant.Time(time.Duration(i+1)*time.Minute)
		tags := []point.Tag{{Key: "direction", Value: "forward"}, {Key: "path", Value: "a"}, {Key: "probe", Value: "stamp"}}
		for _, p := range []point.Point{
			{Measurement: "oneway_delay", Tags: tags, Fields: point.Float(nil, "delay_min_seconds", float64(i%5)), At: at},
			{Measurement: "oneway_packets", Tags: tags, Fields: point.Int(nil, "packets_sent_total", int64(1000-i)), At: at},
			{Measurement: "oneway_path", Tags: tags[1:], Fields: []point.Field{{Key: "peer", Value: point.Text("h")}}, At: at},
			{Measurement: "oneway_run_packet", Tags: tags, Fields: point.Int(nil, "seq", int64(i)), At: at},
		} {
			emit(&p)
		}
	}
	return nil
}

// TestDownsamplingOf18 runs the statement of the continuous query for the last hour, and the pipeline of the task of version 2
// without its to(), which the Flux of InfluxDB 1.8 does not have.
func TestDownsamplingOf18(t *testing.T) {
	s := New(t, false)
	s.Start()
	Create(t, s)
	out, stop := deliverSeries(t, fmt.Sprintf("url: %q, version: 1, database: oneway, retention_policy: raw", s.URL), "", hour)
	await.That(t, "the points arrive", func() bool { return out.Status().Written >= 240 && out.Status().Waiting == 0 })
	stop()
	_, statement, _ := strings.Cut(read(t, "influxdb1.iql"), " BEGIN ")
	statement, _, _ = strings.Cut(statement, " END\n")
	s.Query("oneway", strings.Replace(statement, " GROUP BY", " WHERE time > now() - 2h AND time < now() GROUP BY", 1))
	delays := s.Query("oneway", `SELECT mean_delay_min_seconds, max_delay_min_seconds FROM long.oneway_delay WHERE path = 'a' AND direction = 'forward'`)
	if len(delays) != 12 || delays[0][1] != 2.0 || delays[0][2] != 4.0 {
		t.Fatalf("delay: %v", delays)
	}
	if rows := s.Query("oneway", `SELECT last_packets_sent_total FROM long.oneway_packets`); len(rows) != 12 || rows[11][1] != 1000.0 {
		t.Errorf("packets: %v", rows)
	}
	if rows := s.Query("oneway", `SELECT * FROM long.oneway_run_packet`); rows != nil {
		t.Errorf("packets of runs are downsampled: %v", rows)
	}
	flux := regexp.MustCompile(`(?m)^option .*$`).ReplaceAllString(read(t, "downsample.flux"), "")
	flux = strings.Replace(flux, `bucket: "oneway"`, `bucket: "oneway/raw"`, 1)
	flux = strings.Replace(flux, "start: -1h", "start: -2h", 1)
	n := 0
	flux = regexp.MustCompile(`to\(bucket: "oneway_long"\)`).ReplaceAllStringFunc(flux, func(string) string { n++; return fmt.Sprintf("yield(name: %q)", fmt.Sprint("part", n)) })
	csv := s.Flux(flux)
	begin := time.Unix(0, int64(delays[0][0].(float64))).Round(time.Minute).UTC().Format(time.RFC3339)
	// Flux does not keep the order of columns.
	atBegin := func(row string) bool {
		return strings.Contains(row, ","+begin+",") && strings.Contains(row, ",mean_delay_min_seconds,")
	}
	if !slices.ContainsFunc(strings.Split(csv, "\n"), atBegin) {
		t.Errorf("Flux has no mean at %s, the time of the first one of InfluxQL\n%.2000s", begin, csv)
	}
	for field, want := range map[string]int{"mean_delay_min_seconds": 12, "max_delay_min_seconds": 12, "last_packets_sent_total": 12, "peer": 0, "seq": 0} {
		if got := strings.Count(csv, ","+field+","); got < want || got > want+1 || want == 0 && got > 0 {
			t.Errorf("Flux: %d rows of %s, want %d\n%.2000s", got, field, want, csv)
		}
	}
}
