package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/core/hourrow"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/tests/influx"
)

// epoch is time 0 of the cases of promtool, in InfluxDB.
var epoch = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// twinCase is a case of promtool.
type twinCase struct {
	Name   string
	Series []struct{ Series, Values string } `yaml:"input_series"`
	Alerts []struct {
		Name string         `yaml:"alertname"`
		Time model.Duration `yaml:"eval_time"`
		Want []struct {
			Labels      map[string]string `yaml:"exp_labels"`
			Annotations map[string]string `yaml:"exp_annotations"`
		} `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

// provisioned is an alert in the file of Grafana.
type provisioned struct {
	Title, Condition    string
	For                 model.Duration
	Labels, Annotations map[string]string
	Data                []struct {
		RefID         string `yaml:"refId"`
		DatasourceUID string `yaml:"datasourceUid"`
		Model         struct {
			Type, Query, Expression, Reducer string
			ResultFormat                     string `yaml:"resultFormat"`
			Conditions                       []struct {
				Evaluator struct {
					Type   string
					Params []float64
				}
			}
		}
	}
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestGrafanaAlertsFireAsTheirTwins: the alerts of deploy/grafana over a real InfluxDB 1.8.10 fire and are silent in the cases of promtool, whose
// series become points, with the same labels and texts.
func TestGrafanaAlertsFireAsTheirTwins(t *testing.T) {
	var file struct {
		Groups []struct{ Rules []provisioned }
	}
	readYAML(t, "../../deploy/grafana/alerting/oneway-influxdb.yml", &file)
	alerts := map[string]*provisioned{}
	for i := range file.Groups[0].Rules {
		alerts[file.Groups[0].Rules[i].Title] = &file.Groups[0].Rules[i]
	}
	var twins, planned struct{ Tests []twinCase }
	readYAML(t, "../rules/trends.yml", &twins)
	readYAML(t, "../rules/trends_maintenance.yml", &planned)
	server := newInflux(t)
	fired, silent := map[string]int{}, map[string]int{}
	for _, c := range slices.Concat(twins.Tests, planned.Tests) {
		t.Run(c.Name, func(t *testing.T) {
			server.Query("oneway", "DROP SERIES FROM /.*/")
			server.Write(t, "long", c.rows(t))
			server.Write(t, "raw", c.raw(t))
			for _, a := range c.Alerts {
				if a.Name == rules.RetentionShort.Name {
					continue // not over InfluxDB: see rules.GrafanaAlerts
				}
				alert := alerts[a.Name]
				if alert == nil {
					t.Fatalf("no alert %s", a.Name)
				}
				var want []string
				for _, w := range a.Want {
					if !strings.Contains(w.Annotations["description"], "it exports none") { // InfluxQL cannot tell: see rules.GrafanaAlerts
						want = append(want, shown(w.Labels, w.Annotations))
					}
				}
				got := alert.fires(t, server, epoch.Add(time.Duration(a.Time)))
				slices.Sort(want)
				slices.Sort(got)
				if !slices.EqualFunc(got, want, alike) {
					t.Errorf("%s at %v:\n%s\nwant\n%s", a.Name, a.Time, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				if fired[a.Name] += len(want); len(want) == 0 {
					silent[a.Name]++
				}
			}
		})
	}
	for name := range alerts {
		if fired[name] == 0 || silent[name] == 0 {
			t.Errorf("%s fires %d times, and is silent in %d cases; want both", name, fired[name], silent[name])
		}
	}
}

// shown is an alert without what one of the stores has alone: the job, the rank, and InfluxDB in place of Prometheus.
func shown(l, annotations map[string]string) string {
	l = maps.Clone(l)
	if l["instance"] != "" {
		l["host"] = l["instance"]
	}
	for _, name := range []string{"job", "instance", "quantile_rank", "day_type", "local_hour"} {
		delete(l, name)
	}
	text := strings.NewReplacer("or InfluxDB was off, or the continuous queries did not run", "or Prometheus was off, or the rules were not evaluated",
		"in an hour of the last 7 days than in the same hour of", "in some hours of the last 7 days than in the same hours of").Replace(annotations["description"])
	text = hourRE.ReplaceAllString(text, "$1.") // Grafana has one alert an hour: the value of the hour is the alert's
	return fmt.Sprint(l, " ", annotations["summary"], " | ", text, " | ", annotations["runbook_url"])
}

// hourRE is the last hour of OnewayBusyHourDegraded with its value.
var hourRE = regexp.MustCompile(`(from \d+:00) \([^)]*\)\.$`)

var numbersRE = regexp.MustCompile(`-?\d+\.\d+`)

// alike reports whether two texts are equal, but for numbers that differ by at most 1 %: a range of Prometheus 2 has one hour more.
func alike(a, b string) bool {
	of := func(text string) []string { return numbersRE.FindAllString(text, -1) }
	if numbersRE.ReplaceAllString(a, "") != numbersRE.ReplaceAllString(b, "") || len(of(a)) != len(of(b)) {
		return false
	}
	for i := range of(a) {
		x, _ := strconv.ParseFloat(of(a)[i], 64)
		y, _ := strconv.ParseFloat(of(b)[i], 64)
		if math.Abs(x-y) > 0.01*math.Abs(y) {
			return false
		}
	}
	return true
}

// fires are the alerts that fire at a time: the condition holds then, and held before the waiting time.
func (a *provisioned) fires(t *testing.T, server *influx.Server, at time.Time) (all []string) {
	before, _ := a.evaluate(t, server, at.Add(-time.Duration(a.For)))
	now, values := a.evaluate(t, server, at)
	for _, n := range now {
		held := slices.ContainsFunc(before, func(b number) bool { return b.v > 0 && maps.Equal(b.labels, n.labels) })
		if n.v == 0 || !held {
			continue
		}
		l := maps.Clone(n.labels)
		maps.Copy(l, a.Labels)
		annotations := map[string]string{}
		for name, text := range a.Annotations {
			annotations[name] = expand(t, text, n.labels, values)
		}
		all = append(all, shown(l, annotations))
	}
	return all
}

// evaluate evaluates all nodes, and returns the one of the condition.
func (a *provisioned) evaluate(t *testing.T, server *influx.Server, at time.Time) (condition []number, values map[string][]number) {
	t.Helper()
	values = map[string][]number{}
	for _, node := range a.Data {
		m := &node.Model
		switch {
		case node.DatasourceUID != "__expr__":
			if m.ResultFormat != "time_series" {
				t.Errorf("%s has format %q", node.RefID, m.ResultFormat)
			}
			values[node.RefID] = numbersOf(t, server, strings.ReplaceAll(m.Query, "now()", "'"+at.Format(time.RFC3339)+"'"))
		case m.Type == "reduce" && m.Reducer == "last":
			values[node.RefID] = values[m.Expression]
		case m.Type == "math":
			result, err := evaluate(m.Expression, values)
			if err != nil {
				t.Fatal(err)
			}
			values[node.RefID] = result
		case m.Type == "threshold" && m.Conditions[0].Evaluator.Type == "gt":
			values[node.RefID] = changed(values[m.Expression], func(v float64) float64 { return truth(v > m.Conditions[0].Evaluator.Params[0]) })
		default:
			t.Fatalf("unknown node %+v", node)
		}
	}
	return values[a.Condition], values
}

// numbersOf are the last values of the series of a statement, with their tags.
func numbersOf(t *testing.T, server *influx.Server, statement string) (all []number) {
	t.Helper()
	r, err := http.PostForm(server.URL+"/query", url.Values{"db": {"oneway"}, "q": {statement}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	var reply struct {
		Results []struct {
			Error  string
			Series []struct {
				Tags    map[string]string
				Columns []string
				Values  [][]any
			}
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &reply)
	}
	if err != nil || len(reply.Results) != 1 || reply.Results[0].Error != "" {
		t.Fatalf("%s\n%s %v", statement, text, err)
	}
	for _, s := range reply.Results[0].Series {
		if len(s.Columns) != 2 {
			t.Fatalf("%s has the columns %v, want one and the time", statement, s.Columns)
		}
		for _, row := range slices.Backward(s.Values) {
			if v, known := row[1].(float64); known {
				all = append(all, number{s.Tags, v})
				break
			}
		}
	}
	return all
}

// expand expands a template with the functions that Grafana has from Prometheus.
func expand(t *testing.T, text string, l map[string]string, values map[string][]number) string {
	t.Helper()
	of := map[string]struct{ Value float64 }{}
	for name, all := range values {
		for _, n := range all {
			if contains(l, n.labels) {
				of[name] = struct{ Value float64 }{n.v}
			}
		}
	}
	text = strings.ReplaceAll(text, "${ONEWAY_AGENT_URL}", "http://"+l["host"])
	e := template.NewTemplateExpander(context.Background(), "{{$labels := .Labels}}{{$values := .Values}}"+text, "annotation", map[string]any{"Labels": l, "Values": of},
		0, nil, &url.URL{}, nil)
	out, err := e.Expand()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// visit calls f with the samples of the series of a case.
func (c *twinCase) visit(t *testing.T, f func(l map[string]string, at time.Time, v float64)) {
	t.Helper()
	p := parser.NewParser(parser.Options{})
	for _, s := range c.Series {
		l, values, err := p.ParseSeriesDesc(s.Series + " " + s.Values)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if !v.Omitted && !value.IsStaleNaN(v.Value) {
				f(l.Map(), epoch.Add(time.Duration(i)*time.Hour), v.Value)
			}
		}
	}
}

// rows are the rows of hours of the long-term series of a case. Buckets that the case does not have are filled as the interpolation of a quantile
// takes them to be.
func (c *twinCase) rows(t *testing.T) string {
	fields := map[string]map[string]float64{} // by tags and time
	buckets := map[string]map[float64]float64{}
	c.visit(t, func(l map[string]string, at time.Time, v float64) {
		name := l[model.MetricNameLabel]
		key := fmt.Sprintf("oneway_hour,day_type=%s,direction=%s,host=%s,local_hour=%s,path=%s,probe=%s,zone=%s %d",
			l["day_type"], l["direction"], l["instance"], l["hour"], l["path"], l["probe"], l["zone"], at.Add(-time.Hour).UnixNano())
		field := map[string]string{rules.LongIncrease(metric.PacketsSent): "packets_sent", rules.LongBound.Name: "delay_error_bound_seconds", rules.LongBuckets(metric.Delay): "le"}[name]
		switch field {
		case "":
			return
		case "le":
			le, err := strconv.ParseFloat(l["le"], 64)
			if err != nil {
				t.Fatal(err)
			}
			if buckets[key] == nil {
				buckets[key] = map[float64]float64{}
			}
			buckets[key][le] = v
		default:
			if fields[key] == nil {
				fields[key] = map[string]float64{}
			}
			fields[key][field] = v
		}
	})
	for key, some := range buckets {
		if fields[key] == nil {
			fields[key] = map[string]float64{}
		}
		fields[key][hourrow.Delays] = some[math.Inf(1)]
		for _, b := range metric.Delay.Buckets {
			fields[key][hourrow.Bucket(hourrow.Delays, b)] = interpolated(some, b)
		}
	}
	var b strings.Builder
	for key, some := range fields {
		tags, at, _ := strings.Cut(key, " ")
		var list []string
		for _, name := range slices.Sorted(maps.Keys(some)) {
			value := strconv.FormatFloat(some[name], 'f', -1, 64)
			if !strings.HasSuffix(name, "_seconds") {
				value = fmt.Sprintf("%.0fi", some[name])
			}
			list = append(list, name+"="+value)
		}
		fmt.Fprintf(&b, "%s %s %s\n", tags, strings.Join(list, ","), at)
	}
	return b.String()
}

// interpolated is the number of values up to a bound, as histogram_quantile takes them: evenly in their bucket.
func interpolated(buckets map[float64]float64, bound float64) float64 {
	lower, below := 0.0, 0.0
	for _, le := range slices.Sorted(maps.Keys(buckets)) {
		switch {
		case le == bound:
			return buckets[le]
		case le > bound && math.IsInf(le, 1):
			return below
		case le > bound:
			return math.Round(below + (buckets[le]-below)*(bound-lower)/(le-lower))
		}
		lower, below = le, buckets[le]
	}
	return below
}

// raw are the points of series of a case: of what an agent exports itself. Its paths reply while they send.
func (c *twinCase) raw(t *testing.T) string {
	var b strings.Builder
	c.visit(t, func(l map[string]string, at time.Time, v float64) {
		path := fmt.Sprintf("host=%s,path=%s,probe=%s", l["instance"], l["path"], l["probe"])
		switch ns := at.UnixNano(); l[model.MetricNameLabel] {
		case metric.ProbeUp.Name:
			fmt.Fprintf(&b, "oneway_probe,%s probe_up=%v %d\n", path, v, ns)
		case metric.PathMaintenance.Name:
			fmt.Fprintf(&b, "oneway_probe,%s path_maintenance_end_timestamp_seconds=%v %d\n", path, v+float64(epoch.Unix()), ns)
		case metric.AgentMaintenance.Name:
			fmt.Fprintf(&b, "oneway_agent,host=%s agent_maintenance_end_timestamp_seconds=%v %d\n", l["instance"], v+float64(epoch.Unix()), ns)
		case metric.PacketsSent.Name:
			fmt.Fprintf(&b, "oneway_packets,direction=%s,%s packets_sent_total=%.0fi %d\n", l["direction"], path, v, ns)
			fmt.Fprintf(&b, "oneway_probe,%s probe_last_success_timestamp_seconds=%d %d\n", path, at.Unix(), ns)
		case metric.UTCOffset.Name:
			fmt.Fprintf(&b, "oneway_agent_calendar,host=%s,zone=%s utc_offset_seconds=%v %d\n", l["instance"], l["zone"], v, ns)
		case metric.HolidaysEnd.Name:
			fmt.Fprintf(&b, "oneway_agent,host=%s holidays_end_timestamp_seconds=%.0f %d\n", l["instance"], v+float64(epoch.Unix()), ns)
		}
	})
	return b.String()
}
