// Package opening sends a server the queries that Grafana sends to show a page, and measures the time until all have a result.
package opening

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// parallel is the number of connections that a browser opens to a server (HTTP/1.1), each with one query at a time.
const parallel = 6

// Page is a dashboard with values of its variables, and the time that it shows.
type Page struct {
	// Dashboard is the text of its JSON.
	Dashboard []byte
	// Variables are values by name. A variable without one is "All": it matches everything.
	Variables map[string]string
	From, To  time.Time
}

// points is the width of a panel in pixels: Grafana asks for as many points at most.
const points = 800

// Query is one query of a panel.
type Query struct {
	Panel, Expr string
	Instant     bool
	Step        time.Duration
	From, To    time.Time
}

// Result is the time that a query took, and what it returned.
type Result struct {
	Query
	Took   time.Duration
	Series int
}

// Queries are the queries of all panels and annotations.
func (p Page) Queries() ([]Query, error) {
	var board struct {
		Panels      []panel
		Annotations struct {
			List []struct{ Name, Expr string }
		}
	}
	if err := json.Unmarshal(p.Dashboard, &board); err != nil {
		return nil, fmt.Errorf("opening: %w", err)
	}
	var all []Query
	for _, one := range flat(board.Panels) {
		from := p.From
		if days, ok := strings.CutSuffix(one.TimeFrom, "d"); ok {
			n, err := strconv.Atoi(days)
			if err != nil {
				return nil, fmt.Errorf("opening: panel %s: time %q", one.Title, one.TimeFrom)
			}
			from = p.To.AddDate(0, 0, -n)
		}
		most := one.MaxDataPoints
		if most == 0 {
			most = points
		}
		step := p.To.Sub(from) / time.Duration(most)
		if least, err := time.ParseDuration(strings.Replace(one.Interval, "1d", "24h", 1)); err == nil {
			step = max(step, least)
		}
		step = rounded(step)
		for _, t := range one.Targets {
			if t.Expr != "" {
				all = append(all, Query{one.Title, p.fill(t.Expr, from, step), t.Instant, step, from, p.To})
			}
		}
	}
	for _, one := range board.Annotations.List {
		if one.Expr != "" {
			step := rounded(p.To.Sub(p.From) / points)
			all = append(all, Query{"annotation " + one.Name, p.fill(one.Expr, p.From, step), false, step, p.From, p.To})
		}
	}
	return all, nil
}

// panel is a panel, or a row, which may have panels.
type panel struct {
	Title, Interval, TimeFrom string
	MaxDataPoints             int
	Panels                    []panel
	Targets                   []struct {
		Expr    string
		Instant bool
	}
}

func flat(all []panel) (out []panel) {
	for _, p := range all {
		out = append(append(out, p), flat(p.Panels)...)
	}
	return out
}

// rounded is the next of the steps that Grafana takes.
func rounded(d time.Duration) time.Duration {
	steps := []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}
	for _, step := range steps {
		if d <= step {
			return step
		}
	}
	return steps[len(steps)-1]
}

var variable = regexp.MustCompile(`\$\{?([A-Za-z_]+)[^}"\]a-z_]*\}?`)

func (p Page) fill(expr string, from time.Time, step time.Duration) string {
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }
	values := map[string]string{
		"__range": seconds(p.To.Sub(from)) + "s", "__range_s": seconds(p.To.Sub(from)), "__interval": seconds(step) + "s",
		"__rate_interval": seconds(max(step+15*time.Second, time.Minute)) + "s", "rows": "100",
		"__from": strconv.FormatInt(from.UnixMilli(), 10), "__to": strconv.FormatInt(p.To.UnixMilli(), 10),
	}
	values["per"] = "1h" // as the variable of Trends says
	if p.To.Sub(p.From) > 60*24*time.Hour {
		values["per"] = "1d"
	}
	maps.Copy(values, p.Variables)
	names := slices.Collect(maps.Keys(values))
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		expr = strings.NewReplacer("${"+name+"}", values[name], "$"+name, values[name]).Replace(expr)
	}
	return variable.ReplaceAllString(expr, ".*")
}

// Open sends all queries to the server at address, and returns their results in the order of the queries.
func (p Page) Open(ctx context.Context, address string) (results []Result, took time.Duration, err error) {
	queries, err := p.Queries()
	if err != nil {
		return nil, 0, err
	}
	results, errs := make([]Result, len(queries)), make([]error, len(queries))
	slots := make(chan struct{}, parallel)
	began := time.Now()
	var all sync.WaitGroup
	for i, q := range queries {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			results[i], errs[i] = q.send(ctx, address)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return results, time.Since(began), err
		}
	}
	return results, time.Since(began), nil
}

func (q Query) send(ctx context.Context, address string) (Result, error) {
	path, form := "/api/v1/query_range", url.Values{"query": {q.Expr}}
	if q.Instant {
		path = "/api/v1/query"
		form.Set("time", strconv.FormatInt(q.To.Unix(), 10))
	} else {
		step := int64(q.Step.Seconds())
		form.Set("start", strconv.FormatInt(q.From.Unix()/step*step, 10))
		form.Set("end", strconv.FormatInt(q.To.Unix()/step*step, 10))
		form.Set("step", strconv.FormatInt(step, 10))
	}
	began := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+path, strings.NewReader(form.Encode()))
	if err != nil {
		return Result{}, fmt.Errorf("opening: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		return Result{}, fmt.Errorf("opening: %w", err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return Result{}, fmt.Errorf("opening: %w", err)
	}
	var response struct {
		Error string
		Data  struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal(text, &response); err != nil || r.StatusCode != http.StatusOK {
		return Result{}, fmt.Errorf("opening: %s: query %s: %s %s", q.Panel, q.Expr, r.Status, response.Error)
	}
	return Result{q, time.Since(began), len(response.Data.Result)}, nil
}

// DropPageCache makes the kernel forget what it has read, so that a server reads its blocks from the disk. It needs root.
func DropPageCache() error {
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("1\n"), 0); err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	return nil
}
