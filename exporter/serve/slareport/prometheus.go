package slareport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Server is the HTTP API of a Prometheus server, or of one that is compatible.
type Server struct {
	// URL is its address, such as http://127.0.0.1:9090, with a path prefix if it has one.
	URL string
	// Authorization is the header of each request; empty: none.
	Authorization string
}

const (
	// timeout of a request is more than the limit of a query in Prometheus, two minutes.
	timeout = 150 * time.Second
	// maxReplyBytes is some hundred times the reply for a day.
	maxReplyBytes = 64 << 20
	// maxShownRunes limits a text of the server in a message.
	maxShownRunes = 300
)

// client follows no redirection to another server or port, nor from TLS to plain text: Authorization would go there too.
var client = &http.Client{Timeout: timeout, CheckRedirect: func(to *http.Request, before []*http.Request) error {
	if first := before[0].URL; to.URL.Scheme != first.Scheme || to.URL.Host != first.Host {
		return fmt.Errorf("it redirects to %s", shown(to.URL.Redacted()))
	}
	if len(before) == 10 {
		return errors.New("it redirects without end")
	}
	return nil
}}

// shown is a text of the server for a message: no control characters for the terminal, bounded.
func shown(s string) string {
	s = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, s[:min(len(s), 4*maxShownRunes)])
	if runes := []rune(s); len(runes) > maxShownRunes {
		s = string(runes[:maxShownRunes]) + "..."
	}
	return s
}

// name is the address without a password.
func (s *Server) name() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "--prometheus.url"
	}
	return u.Redacted()
}

// cause is an error of net/http without the address, which may have a password.
func cause(err error) error {
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		return wrong.Err
	}
	return err
}

// series is one of a result: its labels, and the values of a query by time, or the histogram of an instant query.
type series struct {
	Labels    map[string]string `json:"metric"`
	Value     point             `json:"value"`
	Values    []point           `json:"values"`
	Histogram histogramPoint    `json:"histogram"`
}

// point is a time in seconds and a value.
type point struct {
	Time  float64
	Value float64
}

// UnmarshalJSON parses [time, "value"].
func (p *point) UnmarshalJSON(text []byte) error {
	var value string
	if err := json.Unmarshal(text, &[]any{&p.Time, &value}); err != nil {
		return err
	}
	v, err := strconv.ParseFloat(value, 64)
	p.Value = v
	return err
}

// histogramPoint is a native histogram.
type histogramPoint struct{ Buckets []bucket }

// UnmarshalJSON parses [time, {"count": "", "sum": "", "buckets": [[rule, "lower", "upper", "count"]]}].
func (h *histogramPoint) UnmarshalJSON(text []byte) error {
	var at float64
	var body struct {
		Buckets [][4]any `json:"buckets"`
	}
	if err := json.Unmarshal(text, &[]any{&at, &body}); err != nil {
		return err
	}
	for _, b := range body.Buckets {
		var values [3]float64
		for i := range values {
			word, _ := b[i+1].(string)
			v, err := strconv.ParseFloat(word, 64)
			if err != nil {
				return fmt.Errorf("slareport: bucket %v of a native histogram: %w", b, err)
			}
			values[i] = v
		}
		h.Buckets = append(h.Buckets, bucket{values[0], values[1], values[2]})
	}
	return nil
}

// get calls the API.
func (s *Server) get(ctx context.Context, path string, query url.Values, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(s.URL, "/")+"/api/v1/"+path, strings.NewReader(query.Encode()))
	if err != nil {
		return fmt.Errorf("slareport: --prometheus.url is no address: %w", cause(err))
	}
	if strings.HasPrefix(path, "label/") { // no form
		request.Method, request.Body, request.ContentLength, request.URL.RawQuery = http.MethodGet, http.NoBody, 0, query.Encode()
	} else {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if s.Authorization != "" {
		request.Header.Set("Authorization", s.Authorization)
	}
	reply, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("slareport: Prometheus at %s is not reached: %w; --prometheus.url sets its address", s.name(), cause(err))
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxReplyBytes+1))
	if err == nil && len(text) > maxReplyBytes {
		err = fmt.Errorf("it is larger than %d MiB", maxReplyBytes>>20)
	}
	if err != nil {
		return fmt.Errorf("slareport: read the reply of %s: %w", s.name(), err)
	}
	body := struct {
		Status string          `json:"status"`
		Error  string          `json:"error"`
		Data   json.RawMessage `json:"data"`
	}{}
	if err := json.Unmarshal(text, &body); err != nil || body.Status != "success" {
		switch {
		case reply.StatusCode == http.StatusUnauthorized || reply.StatusCode == http.StatusForbidden:
			return fmt.Errorf("slareport: %s: %s; --prometheus.bearer-file or --prometheus.basic-auth-file has the credentials", s.name(), reply.Status)
		case err != nil:
			return fmt.Errorf("slareport: %s: %s, and the reply is not that of a Prometheus server", s.name(), reply.Status)
		}
		return fmt.Errorf("slareport: %s: %s", s.name(), shown(body.Error))
	}
	if err := json.Unmarshal(body.Data, data); err != nil {
		return fmt.Errorf("slareport: reply of %s: %w", s.name(), err)
	}
	return nil
}

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// at evaluates a query at a time.
func (s *Server) at(ctx context.Context, query string, t time.Time) ([]series, error) {
	var data struct{ Result []series }
	err := s.get(ctx, "query", url.Values{"query": {query}, "time": {unix(t)}}, &data)
	return data.Result, err
}

// through evaluates a query from one time to another, both included.
func (s *Server) through(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]series, error) {
	var data struct{ Result []series }
	err := s.get(ctx, "query_range", url.Values{
		"query": {query}, "start": {unix(from)}, "end": {unix(to)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	}, &data)
	return data.Result, err
}

// labels are the label sets of series that exist in a time.
func (s *Server) labels(ctx context.Context, match string, from, to time.Time) (all []map[string]string, err error) {
	err = s.get(ctx, "series", url.Values{"match[]": {match}, "start": {unix(from)}, "end": {unix(to)}}, &all)
	for _, one := range all {
		for l, v := range one {
			one[l] = shown(v)
		}
	}
	return all, err
}

// values are those of a label.
func (s *Server) values(ctx context.Context, label, match string) (all []string, err error) {
	err = s.get(ctx, "label/"+label+"/values", url.Values{"match[]": {match}}, &all)
	for i, v := range all {
		all[i] = shown(v)
	}
	return all, err
}

// byDirection has the value of each direction; a sum over the other labels.
func byDirection(all []series) map[string]float64 {
	sums := map[string]float64{}
	for _, s := range all {
		if !math.IsNaN(s.Value.Value) {
			sums[s.Labels["direction"]] += s.Value.Value
		}
	}
	return sums
}
