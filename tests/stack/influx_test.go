package stack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/point"
	"oneway.example/tests/await"
	"oneway.example/tests/expr"
	"oneway.example/tests/influx"
)

// Databases of InfluxDB: the agent's output writes to one, Telegraf to the other.
const (
	agentDB    = "oneway"
	telegrafDB = "telegraf"
)

// influxOutput is the output of agent a.
const influxOutput = `outputs:
  - {type: influxdb, url: "http://influxdb:8086", version: 1, database: ` + agentDB + `, interval: 10s}
`

// telegrafFiles are Telegraf's configuration on host b: it reads agent a, and measures b's clock itself. The points of a have
// its name: with that of Telegraf's host, both clocks were one series.
var telegrafFiles = map[string]string{
	"/stack/telegraf.conf": `[agent]
  interval = "10s"
  flush_interval = "1s"
[[inputs.execd]]
  command = ["/stack/oneway-telegraf", "-config", "/stack/oneway-telegraf.conf", "-poll_interval_disabled"]
  signal = "none"
  restart_delay = "1s"
  [inputs.execd.tags]
    host = "a"
[[inputs.execd]]
  command = ["/stack/oneway-clock-telegraf", "-config", "/stack/oneway-clock-telegraf.conf", "-poll_interval_disabled"]
  signal = "none"
  restart_delay = "1s"
[[outputs.file]]
  files = ["` + lines + `"]
  data_format = "influx"
[[outputs.influxdb]]
  urls = ["http://influxdb:8086"]
  database = "` + telegrafDB + `"
`,
	"/stack/oneway-telegraf.conf": "[[inputs.oneway]]\nurl = \"http://a:9862\"\n",
	"/stack/oneway-clock-telegraf.conf": `[[inputs.oneway_clock]]
  interval = "5s"
  [inputs.oneway_clock.clock]
    source = "chrony"
    [inputs.oneway_clock.clock.gpsd]
      address = "127.0.0.1:2947"
      device = "/dev/gnss0"
    [inputs.oneway_clock.clock.pps]
      device = "/dev/pps0"
`,
}

// lines is the file with Telegraf's line protocol.
const lines = "/tmp/telegraf.lp"

// startInflux starts InfluxDB with both databases.
func (s *stack) startInflux(t *testing.T) {
	t.Helper()
	s.influx = spec{name: "influxdb", image: "influxdb", programs: []string{"build/influxdb-" + influx.Version + "/influxd"}, networks: []string{s.monitoring}, ports: []string{"8086/tcp"}}.start(t)
	s.influx.serves(t, "8086", "/ping")
	for _, name := range []string{agentDB, telegrafDB} {
		s.influxQL(t, "", "CREATE DATABASE "+name)
	}
}

// table is a series of a result.
type table struct {
	Tags    map[string]string
	Columns []string
	Values  [][]any
}

// influxQL sends a statement; times are in ms.
func (s *stack) influxQL(t *testing.T, database, statement string) []table {
	t.Helper()
	response, err := http.PostForm(s.influx.url(t, "8086")+"/query?epoch=ms&db="+database, url.Values{"q": {statement}})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var reply struct {
		Error   string
		Results []struct {
			Error  string
			Series []table
		}
	}
	decoder := json.NewDecoder(response.Body)
	if err := decoder.Decode(&reply); err != nil {
		t.Fatalf("%s: %s: %v", statement, response.Status, err)
	}
	if reply.Error != "" || len(reply.Results) != 1 || reply.Results[0].Error != "" {
		t.Fatalf("%s: %+v", statement, reply)
	}
	return reply.Results[0].Series
}

// column are the numbers of the second column of all series.
func column(tables []table) (all []float64) {
	for _, one := range tables {
		for _, row := range one.Values {
			if n, ok := row[1].(float64); ok {
				all = append(all, n)
			}
		}
	}
	return all
}

// field is where the line protocol has a value: its measurement, its field, and a condition on its tags.
func (v value) field(t *testing.T) (measurement, key, condition string) {
	t.Helper()
	for _, m := range point.Series(families.All()) {
		for _, c := range m.Columns {
			if c.Desc == nil || c.Desc.Name != v.family || c.Part != point.Number {
				continue
			}
			key, conditions := c.Key, []string(nil)
			for _, l := range v.labels {
				if l[0] == metric.QuantileL {
					key = point.Ranked(c.Key, l[1])
					continue
				}
				conditions = append(conditions, fmt.Sprintf("%q = '%s'", l[0], l[1]))
			}
			return m.Name, key, strings.Join(conditions, " AND ")
		}
	}
	t.Fatalf("no measurement has %s", v.family)
	return "", "", ""
}

// inInflux compares what both databases have of a run with its report: the values of the run in the output's, and those of the
// series after its end in each.
func (s *stack) inInflux(t *testing.T, run header, values []value, end time.Time) {
	t.Helper()
	for _, v := range values {
		measurement, key, condition := v.field(t)
		after := fmt.Sprintf("SELECT %q FROM %q WHERE %s AND time >= %dms AND time < %dms", key, measurement, condition, end.UnixMilli(), end.Add(90*time.Second).UnixMilli())
		wanted := map[string]string{agentDB: after, telegrafDB: after}
		if !v.count && v.family != metric.RunLast.Name {
			wanted["run of "+agentDB] = fmt.Sprintf("SELECT %q FROM %q WHERE %s AND %q = '%s'", key, point.OfRun(measurement), condition, point.RunField, run.ID)
		}
		for from, statement := range wanted {
			var got []float64
			database := strings.TrimPrefix(from, "run of ")
			if !await.Within(settle, func() bool {
				got = column(s.influxQL(t, database, statement))
				return slices.ContainsFunc(got, v.matches)
			}) {
				t.Errorf("%s, run %s: %s: %v, want %v", from, run.ID, statement, got, v.want)
			}
		}
	}
	t.Logf("InfluxDB has the %d values of run %s of %s, by the agent and by Telegraf", len(values), run.ID, run.Probe)
}

// rawRuns are the load tests whose samples the pages with raw points show. Of the others, the reasons.
var (
	rawRuns   = map[string]string{"raw_packets.json": "saturation", "raw_tcp.json": "tcp", "raw_trains.json": "train", "raw_size_sweep.json": "size_sweep"}
	otherRuns = map[string]string{"Steps of the rate sweep": "sweep", "Cells of the buffer sweep": "tcp_sweep"}
)

// rawPanels runs every InfluxQL statement of the dashboards.
func (s *stack) rawPanels(t *testing.T) {
	all, err := expr.Statements(root)
	if err != nil {
		t.Fatal(err)
	}
	returned := 0
	for _, one := range all {
		file, _, _ := strings.Cut(one.Source, ":")
		probe := rawRuns[file]
		for panel, other := range otherRuns {
			if strings.Contains(one.Source, panel) {
				probe = other
			}
		}
		values := map[string]string{"path": pathLoad, "probe": probe, "direction": "forward"}
		switch {
		case file == "raw_incident.json":
			report := s.newest(t, "", pathA)
			if report == nil {
				t.Logf("%s is empty: the blow-up has no incident report", one.Source)
				continue
			}
			values["path"], values["probe"], values["report"] = pathA, "stamp", report.ID
		case probe == "":
			values["path"], values["probe"] = pathA, "stamp"
		case smoke() && s.newest(t, probe, pathLoad) == nil:
			t.Logf("%s is empty: the smoke test has no run of %s", one.Source, probe)
			continue
		default:
			values["run"] = s.ran(t, probe).ID
		}
		if s.returns(t, one, values) {
			returned++
		}
	}
	t.Logf("%d of %d InfluxQL statements have a result", returned, len(all))
}

// mayBeEmpty are statements whose rows a healthy link may not have.
var mayBeEmpty = map[string]string{"Lost packets": "no packet was lost", " B": "no packet was lost", " D": "no packet was lost"}

// returns reports whether a statement has a result; a failure unless that may be.
func (s *stack) returns(t *testing.T, one expr.Statement, values map[string]string) bool {
	t.Helper()
	text, err := one.Fill(values, time.Now().Add(-time.Hour), time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if await.Within(30*time.Second, func() bool {
		got := s.influxQL(t, agentDB, text)
		return len(got) > 0 && len(got[0].Values) > 0
	}) {
		return true
	}
	for part, reason := range mayBeEmpty {
		if strings.Contains(one.Source, part) {
			t.Logf("%s is empty: %s", one.Source, reason)
			return false
		}
	}
	t.Errorf("%s: nothing from %s", one.Source, text)
	return false
}
