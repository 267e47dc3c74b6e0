package main

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"oneway.example/tests/history/recorded"
)

// api is the HTTP API of Prometheus, as far as oneway asks it, over blocks and by the engine of Prometheus: a server that needs no build.
type api struct {
	t      *testing.T
	store  storage.Queryable
	engine *promql.Engine
	parser parser.Parser
	// hides selects samples that the server does not have; nil: it has all.
	hides func(l labels.Labels, t int64) bool
}

// serve starts it, until the test ends.
func (a *api) serve() string {
	a.parser = parser.NewParser(parser.Options{})
	a.engine = promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1 << 30, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, Parser: a.parser,
	})
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/query", func(w http.ResponseWriter, r *http.Request) {
		q, err := a.engine.NewInstantQuery(r.Context(), a, nil, r.FormValue("query"), at(r, "time"))
		a.execute(w, r, q, err)
	})
	mux.HandleFunc("/api/v1/query_range", func(w http.ResponseWriter, r *http.Request) {
		step, _ := strconv.ParseFloat(r.FormValue("step"), 64)
		q, err := a.engine.NewRangeQuery(r.Context(), a, nil, r.FormValue("query"), at(r, "start"), at(r, "end"), time.Duration(step*float64(time.Second)))
		a.execute(w, r, q, err)
	})
	mux.HandleFunc("/api/v1/series", a.series)
	server := httptest.NewServer(mux)
	a.t.Cleanup(server.Close)
	return server.URL
}

func at(r *http.Request, name string) time.Time {
	seconds, _ := strconv.ParseFloat(r.FormValue(name), 64)
	return time.UnixMilli(int64(math.Round(seconds * 1000)))
}

func (a *api) execute(w http.ResponseWriter, r *http.Request, q promql.Query, err error) {
	if err != nil {
		a.t.Errorf("%s: %v", r.FormValue("query"), err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	defer q.Close()
	result := q.Exec(r.Context())
	if result.Err != nil {
		a.t.Errorf("%s: %v", r.FormValue("query"), result.Err)
		http.Error(w, result.Err.Error(), http.StatusUnprocessableEntity)
		return
	}
	a.reply(w, map[string]any{"resultType": result.Value.Type(), "result": result.Value})
}

func (a *api) reply(w http.ResponseWriter, data any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data}); err != nil {
		a.t.Error(err)
	}
}

func (a *api) series(w http.ResponseWriter, r *http.Request) {
	found := []map[string]string{}
	q, err := a.Querier(at(r, "start").UnixMilli(), at(r, "end").UnixMilli())
	if err != nil {
		a.t.Error(err)
		return
	}
	defer q.Close()
	if err := r.ParseForm(); err != nil {
		a.t.Error(err)
	}
	for _, match := range r.Form["match[]"] {
		matchers, err := a.parser.ParseMetricSelector(match)
		if err != nil {
			a.t.Error(err)
			return
		}
		for set := q.Select(r.Context(), false, nil, matchers...); set.Next(); {
			found = append(found, set.At().Labels().Map())
		}
	}
	a.reply(w, found)
}

// Querier implements storage.Queryable.
func (a *api) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := a.store.Querier(mint, maxt)
	return &hidingQuerier{q, a}, err
}

// hidingQuerier hides samples.
type hidingQuerier struct {
	storage.Querier
	api *api
}

func (q *hidingQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	return &hidingSet{q.Querier.Select(ctx, sorted, hints, matchers...), q.api}
}

type hidingSet struct {
	storage.SeriesSet
	api *api
}

// At is the series without the samples that are hidden.
func (s *hidingSet) At() storage.Series {
	one := s.SeriesSet.At()
	if s.api.hides == nil {
		return one
	}
	kept := recorded.NewSeries(one.Labels())
	it := one.Iterator(nil)
	for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
		switch t := it.AtT(); {
		case s.api.hides(one.Labels(), t):
		case kind == chunkenc.ValFloat:
			_, v := it.At()
			kept.Append(t, v, nil, nil)
		default:
			_, h := it.AtFloatHistogram(nil)
			kept.Append(t, 0, nil, h)
		}
	}
	return kept.View()
}
