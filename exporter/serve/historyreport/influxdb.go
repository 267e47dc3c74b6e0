package historyreport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/estimate/history"
	"oneway.example/exporter/serve/promapi"
)

// InfluxDB reads points with InfluxQL, which 1.8, 2 and 3 have. Hourly values are made by the server.
type InfluxDB struct {
	// URL is the address, such as http://127.0.0.1:8086; Database has the points.
	URL, Database string
	// Authorization is the header of each request; empty: no header.
	Authorization string
}

// Limits of a request.
const (
	influxTimeout  = 150 * time.Second
	mostReplyBytes = 64 << 20
)

// Read implements Source. Tags are the labels of the histories. The rows of hours are read, which reach back for years; else the points, with the reason.
func (d InfluxDB) Read(ctx context.Context, q Query) ([]Series, error) {
	all, from, reason, err := d.long(ctx, q)
	withheld := all.withheld()
	if err == nil && len(all.sorted()) == 0 {
		from = "points in the default retention policy"
		all, err = d.points(ctx, q, "")
	}
	if err != nil {
		return nil, err
	}
	found := all.sorted()
	if len(found) == 0 && withheld {
		return nil, notFound("historyreport: InfluxDB at %s has rows of hours (%s)%s in the database %q from %s to %s, but none with a %s: %s",
			d.name(), q.Measure.points.rows, selection(q.Labels), d.Database, q.From.Format(time.DateOnly), q.To.Format(time.DateOnly), q.Measure.Words, q.Measure.fewKnown())
	}
	if len(found) == 0 {
		return nil, notFound("historyreport: InfluxDB at %s has no points of %s%s in the database %q from %s to %s", d.name(), q.Measure.points.measurement, selection(q.Labels), d.Database, q.From.Format(time.DateOnly), q.To.Format(time.DateOnly))
	}
	for i := range found {
		found[i].From, found[i].Why = from, reason
	}
	return found, nil
}

// points reads hourly values of points from a retention policy, an empty one is the default.
func (d InfluxDB) points(ctx context.Context, q Query, policy string) (collect, error) {
	all, wanted := collect{}, q.Labels
	q = q.bothWays()
	for from := q.From; from.Before(q.To); from = from.Add(chunk) {
		to := from.Add(chunk)
		if to.After(q.To) {
			to = q.To
		}
		rows, err := d.ask(ctx, statement(q, policy, from, to))
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if fits(row.Tags, q.Labels) {
				row.add(q, all)
			}
		}
		q.advance(to)
	}
	return all.selected(wanted), nil
}

func (d InfluxDB) name() string {
	u, err := url.Parse(d.URL)
	if err != nil {
		return "--influxdb.url"
	}
	return u.Redacted()
}

// statement selects hourly values of each combination of tags.
func statement(q Query, policy string, from, to time.Time) string {
	f := q.Measure.points
	value := f.value
	if policy == longPolicy {
		value = "last_" + value // by the continuous query of deploy/influxdb
	}
	columns := []string{fmt.Sprintf("%s(%q)", f.function, value)}
	switch {
	case q.Measure.Share():
		from = from.Add(-time.Hour) // the first difference is the second hour's
		columns = nil
		for _, name := range f.counters() {
			columns = append(columns, fmt.Sprintf("non_negative_difference(last(%q))", name))
		}
	case f.bound != "":
		columns = append(columns, fmt.Sprintf("max(%q)", f.bound))
	}
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s GROUP BY time(1h), * fill(none)", strings.Join(columns, ", "), measurementIn(policy, f.measurement), strings.Join(conditions(q, from, to), " AND "))
}

// conditions select a time, and the tags that every agent writes.
func conditions(q Query, from, to time.Time) []string {
	all := []string{fmt.Sprintf("time >= %ds AND time < %ds", from.Unix(), to.Unix())}
	for _, tag := range []string{metric.Path, metric.Probe, metric.Direction} {
		if v := q.Labels[tag]; v != "" {
			all = append(all, fmt.Sprintf("%q = '%s'", tag, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v)))
		}
	}
	return all
}

// influxRow is a series of a reply.
type influxRow struct {
	Tags   map[string]string
	Values [][]*float64
}

// runHour is the tag of points of runs with the local hour of the agent.
const runHour = metric.LocalHourL

// add adds the hours of a row. InfluxDB gives the begin of an hour.
func (r influxRow) add(q Query, all collect) {
	labels := maps.Clone(r.Tags)
	delete(labels, runHour)
	delete(labels, kindLabel)
	maps.DeleteFunc(labels, func(_, v string) bool { return v == "" }) // a shard without the tag has no such key
	s := all.series(labels)
	f, share := q.Measure.points, q.Measure.Share()
	for _, v := range r.Values {
		if len(v) < 2 || v[0] == nil || v[1] == nil {
			continue
		}
		one := sampleAt(time.Unix(int64(*v[0]), 0).Add(time.Hour), q.Zone, *v[1], r.Tags[runHour], r.Tags[kindLabel])
		switch {
		case share:
			if whole, undecided, known := packetOutcomes(v[1:]); known {
				one.Value = 0
				s.Counted = append(s.Counted, history.Counted{Sample: one, Events: *v[1], Whole: whole, Undecided: undecided})
			}
		case f.bound == "":
			s.Samples = append(s.Samples, one)
		case len(v) > 2 && v[2] != nil: // else the error bound is unknown
			one.Bound = *v[2]
			s.Samples = append(s.Samples, one)
		}
	}
}

// packetOutcomes are the packets received, lost or undecided of the columns of fields.counters; profile slim counts no received ones, and has those sent.
func packetOutcomes(v []*float64) (whole, undecided float64, known bool) {
	if len(v) < len(fields{}.counters()) {
		return 0, 0, false
	}
	lost, sent, received := v[0], v[1], v[2]
	if v[3] != nil {
		undecided = *v[3]
	}
	switch {
	case received == nil && sent == nil:
		return 0, 0, false
	case received == nil:
		return *sent, undecided, true
	}
	return *received + *lost + undecided, undecided, true
}

// ask sends a statement.
func (d InfluxDB) ask(ctx context.Context, text string) ([]influxRow, error) {
	form := url.Values{"db": {d.Database}, "q": {text}, "epoch": {"s"}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(d.URL, "/")+"/query", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("historyreport: --influxdb.url is no address: %w", err)
	}
	request.Header.Set("Content-Type", promapi.FormType)
	if d.Authorization != "" {
		request.Header.Set("Authorization", d.Authorization)
	}
	client := http.Client{Timeout: influxTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it redirects") }}
	reply, err := client.Do(request)
	if err != nil && ctx.Err() != nil { // by Ctrl-C: no fault of the server
		return nil, fmt.Errorf("historyreport: stopped by %w", context.Cause(ctx))
	}
	if err != nil {
		if wrong, ok := errors.AsType[*url.Error](err); ok {
			err = wrong.Err
		}
		return nil, fmt.Errorf("historyreport: cannot reach InfluxDB at %s: %w; --influxdb.url sets its address", d.name(), err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(http.MaxBytesReader(nil, reply.Body, mostReplyBytes))
	if err != nil {
		return nil, fmt.Errorf("historyreport: read the reply of %s: %w", d.name(), err)
	}
	var data struct {
		Error   string
		Results []struct {
			Error  string
			Series []influxRow
		}
	}
	switch err := json.Unmarshal(body, &data); {
	case reply.StatusCode == http.StatusUnauthorized || reply.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("historyreport: %s: %s; --influxdb.token-file or --influxdb.basic-auth-file has the credentials", d.name(), promapi.Shown(reply.Status))
	case err != nil:
		return nil, fmt.Errorf("historyreport: %s: %s, and the reply is not from InfluxDB", d.name(), strconv.Quote(promapi.Shown(reply.Status)))
	case data.Error != "" || len(data.Results) != 1 || data.Results[0].Error != "":
		message := data.Error
		if len(data.Results) > 0 {
			message += data.Results[0].Error
		}
		return nil, &refusedError{d.name(), promapi.Shown(message)}
	}
	return data.Results[0].Series, nil
}

// refusedError is a statement that the server does not execute.
type refusedError struct{ name, message string }

// Error has the message of the server.
func (e *refusedError) Error() string {
	return fmt.Sprintf("historyreport: %s refuses the query: %s", e.name, e.message)
}
