package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"

	"oneway.example/exporter/core/rules"
	"oneway.example/tests/await"
	"oneway.example/tests/expr"
	"oneway.example/tests/freeport"
)

// least is the number of expressions that have a result with the input. The others need a week, or a fault.
const least = 700

// tolerance is the largest relative difference of two values.
const tolerance = 0.01

// TestExpressionsHaveTheValuesOfPrometheus evaluates every expression of the rules and dashboards for VictoriaMetrics in a real one and in
// the engine of Prometheus, with the same input, at the same time.
func TestExpressionsHaveTheValuesOfPrometheus(t *testing.T) {
	programs := built(t)
	reference := newReference(t, input())
	record(t, reference)
	server := start(t, programs)
	server.load(t, reference.all)

	expressions, err := expr.Expressions(overlay(t))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, e := range expressions {
		want := reference.query(t, e.Query, end)
		got, err := server.query(e.Query, end)
		if err != nil {
			t.Errorf("%s: %v", e.Source, err)
			continue
		}
		what, differs := compare(got, want)
		counts[what]++
		if differs != "" {
			why := known(e)
			t.Logf("%s: %s (%s)", e.Source, differs, why)
			if why == "" {
				t.Errorf("%s: %s: VictoriaMetrics and Prometheus: %s\n%s", e.Source, what, differs, e.Query)
			}
		}
	}
	if counts["equal"] < least {
		t.Errorf("%d expressions have equal results, want at least %d: the input lacks series", counts["equal"], least)
	}
	t.Logf("%d expressions of the rules and dashboards: %v", len(expressions), counts)
}

// TestVMAlertTakesTheRules checks the rule files as vmalert reads them.
func TestVMAlertTakesTheRules(t *testing.T) {
	program := filepath.Join(built(t), "vmalert")
	if out, err := exec.Command(program, "-dryRun", "-rule="+rulesDirectory+"/*.yml").CombinedOutput(); err != nil {
		t.Fatalf("vmalert -dryRun: %v\n%s", err, out)
	}
}

// known is the reason why an expression differs; empty: it must not.
func known(e expr.Expr) string {
	if strings.HasSuffix(e.Source, ": annotation Load tests") {
		return "changes() of VictoriaMetrics counts the change from the value before the range"
	}
	return ""
}

// built is the directory of the programs that build.sh builds.
func built(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("./build.sh").Output()
	if err != nil {
		t.Fatalf("build.sh: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// overlay is a tree like a checkout, whose rules and dashboards are of this directory, where it has them.
func overlay(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, one := range []struct{ from, to string }{
		{rulesDirectory, "deploy/prometheus/rules"},
		{dashboardsOfGrafana, "grafana-dashboards/dashboards"},
		{dashboardsDirectory, "grafana-dashboards/dashboards"},
	} {
		if err := os.MkdirAll(filepath.Join(root, one.to), 0o700); err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(filepath.Join(one.from, "*"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s has no files: %v", one.from, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, one.to, filepath.Base(name)), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// result is the value of each series, by its labels without the name.
type result map[string]float64

// key is the labels without the name, and numbers in them, as the value of a quantile, with six digits.
func key(l map[string]string) string {
	delete(l, model.MetricNameLabel)
	for name, value := range l {
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			l[name] = strconv.FormatFloat(v, 'g', 6, 64)
		}
	}
	return labels.FromMap(l).String()
}

// compare says how two results differ, and in words the first difference. VictoriaMetrics returns no NaN, which in a table is an empty cell.
func compare(got, want result) (what, differs string) {
	maps.DeleteFunc(want, func(_ string, v float64) bool { return math.IsNaN(v) })
	for k, w := range want {
		g, ok := got[k]
		switch {
		case !ok:
			return "missing", fmt.Sprintf("%s is missing, want %v", k, w)
		case g == w || math.Abs(g-w) <= tolerance*math.Abs(w):
		default:
			what, differs = "other values", fmt.Sprintf("%s is %v, want %v", k, g, w)
		}
	}
	for k, g := range got {
		if _, ok := want[k]; !ok {
			return "more", fmt.Sprintf("%s is %v, want none", k, g)
		}
	}
	switch {
	case what != "":
		return what, differs
	case len(want) == 0:
		return "both empty", ""
	}
	return "equal", ""
}

// reference is the engine of Prometheus over the input.
type reference struct {
	all    []*series
	db     *tsdb.DB
	engine *promql.Engine
}

func newReference(t *testing.T, all []*series) *reference {
	t.Helper()
	o := tsdb.DefaultOptions()
	o.MinBlockDuration, o.MaxBlockDuration = (30 * 24 * time.Hour).Milliseconds(), (30 * 24 * time.Hour).Milliseconds()
	o.RetentionDuration = 0
	db, err := tsdb.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	r := &reference{db: db, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1 << 30, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, Parser: parser.NewParser(parser.Options{}),
	})}
	r.add(t, all)
	return r
}

func (r *reference) add(t *testing.T, all []*series) {
	t.Helper()
	a := r.db.Appender(context.Background())
	for _, s := range all {
		for _, one := range s.samples {
			if _, err := a.Append(0, s.labels, one.t, one.v); err != nil {
				t.Fatalf("%v: %v", s.labels, err)
			}
		}
	}
	if err := a.Commit(); err != nil {
		t.Fatal(err)
	}
	r.all = append(r.all, all...)
}

func (r *reference) query(t *testing.T, text string, at time.Time) result {
	t.Helper()
	q, err := r.engine.NewInstantQuery(context.Background(), r.db, nil, text, at)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	v := q.Exec(context.Background())
	if v.Err != nil {
		t.Fatalf("%s: %v", text, v.Err)
	}
	out := result{}
	switch v := v.Value.(type) {
	case promql.Vector:
		for _, one := range v {
			out[key(one.Metric.Map())] = one.F
		}
	case promql.Scalar:
		out["{}"] = v.V
	}
	return out
}

// record evaluates the recording rules over the whole time of the input, each where the ones that it reads are recorded.
func record(t *testing.T, r *reference) {
	t.Helper()
	files := rules.Files()
	w, err := rewriter(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := rewriteRules(w, &f); err != nil {
			t.Fatal(err)
		}
		for _, g := range f.Groups {
			recordGroup(t, r, g)
		}
	}
}

func recordGroup(t *testing.T, r *reference, g rules.Group) {
	t.Helper()
	for _, one := range g.Rules {
		if one.Alert != nil {
			continue
		}
		q, err := r.engine.NewRangeQuery(context.Background(), r.db, nil, one.Expr, end.Add(-duration), end, g.Interval)
		if err != nil {
			t.Fatal(err)
		}
		v := q.Exec(context.Background())
		if v.Err != nil {
			t.Fatalf("rule %s: %v", one.Name, v.Err)
		}
		matrix, err := v.Matrix()
		if err != nil {
			t.Fatalf("rule %s: %v", one.Name, err)
		}
		byLabels := map[string]*series{}
		for _, m := range matrix {
			b := labels.NewBuilder(m.Metric).Set(model.MetricNameLabel, one.Name)
			for _, l := range one.Labels {
				b.Set(l.Name, l.Value)
			}
			l := b.Labels()
			s := byLabels[l.String()]
			if s == nil {
				s = &series{labels: l}
				byLabels[l.String()] = s
			}
			for _, p := range m.Floats {
				s.samples = append(s.samples, sample{p.T, p.F})
			}
		}
		var all []*series
		for _, s := range byLabels {
			slices.SortFunc(s.samples, func(a, b sample) int { return int(a.t - b.t) })
			all = append(all, s)
		}
		r.add(t, all)
		q.Close()
	}
}

// store is a VictoriaMetrics.
type store struct{ address string }

func start(t *testing.T, programs string, flags ...string) store {
	t.Helper()
	address := freeport.Address(t)
	var output await.Text
	flags = append(flags, "-storageDataPath="+t.TempDir(), "-httpListenAddr="+address, "-retentionPeriod=100y", "-loggerLevel=WARN")
	cmd := exec.Command(filepath.Join(programs, "victoria-metrics"), flags...)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(output.String())
		}
	})
	s := store{"http://" + address}
	await.That(t, "VictoriaMetrics is ready", func() bool {
		r, err := http.Get(s.address + "/health")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	return s
}

// load sends series by remote write, as Prometheus does.
func (s store) load(t *testing.T, all []*series) {
	t.Helper()
	for some := range slices.Chunk(all, 200) {
		var request prompb.WriteRequest
		for _, one := range some {
			sent := prompb.TimeSeries{Labels: prompb.FromLabels(one.labels, nil)}
			for _, p := range one.samples {
				sent.Samples = append(sent.Samples, prompb.Sample{Timestamp: p.t, Value: p.v})
			}
			request.Timeseries = append(request.Timeseries, sent)
		}
		body, err := request.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		s.post(t, "/api/v1/write", snappy.Encode(nil, body))
	}
	s.post(t, "/internal/force_flush", nil)
}

func (s store) post(t *testing.T, path string, body []byte) {
	t.Helper()
	r, err := http.Post(s.address+path, "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); r.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s: %s", path, r.Status)
	}
}

// query is the result of an instant query.
func (s store) query(text string, at time.Time) (result, error) {
	r, err := http.PostForm(s.address+"/api/v1/query", url.Values{"query": {text}, "time": {strconv.FormatInt(at.Unix(), 10)}, "nocache": {"1"}})
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var response struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&response); err != nil {
		return nil, err
	}
	if response.Status != "success" {
		return nil, fmt.Errorf("query %s: %s", text, response.Error)
	}
	out := result{}
	for _, one := range response.Data.Result {
		text, _ := one.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("query %s: value %v: %w", text, one.Value, err)
		}
		out[key(one.Metric)] = v
	}
	return out, nil
}
