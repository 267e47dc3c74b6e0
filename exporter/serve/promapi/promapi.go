// Package promapi asks the HTTP API of Prometheus, or of a compatible server, for stored series.
//
// A text of the server in a message or a label has no control characters and is bounded; credentials go to the server that was named
// only.
package promapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/common/model"
)

// Server is a Prometheus server, or one with the same HTTP API.
type Server struct {
	// URL is its address, such as http://127.0.0.1:9090, with a path prefix if it has one.
	URL string
	// Authorization is the header of each request; without one it is empty.
	Authorization string
}

const (
	// timeout of a request is more than the limit of a query in Prometheus, two minutes.
	timeout = 150 * time.Second
	// MaxReplyBytes is the largest reply: some hundred times the reply for a day of a path.
	MaxReplyBytes = 64 << 20
	// maxShownRunes limits a text of the server in a message.
	maxShownRunes = 300
)

// Name is the address without a password.
func (s *Server) Name() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "--prometheus.url"
	}
	return u.Redacted()
}

// Connect makes a client, which sends its first request when it is asked.
func (s *Server) Connect() *Client {
	reused := http.DefaultTransport.(*http.Transport).Clone()
	reused.MaxIdleConnsPerHost = Concurrent
	return &Client{server: s, http: http.Client{Timeout: timeout, CheckRedirect: sameServer, Transport: reused}}
}

// sameServer follows no redirection to another server or port, nor from TLS to plain text: Authorization would go there too.
func sameServer(to *http.Request, before []*http.Request) error {
	if first := before[0].URL; to.URL.Scheme != first.Scheme || to.URL.Host != first.Host {
		return fmt.Errorf("it redirects to %s", Shown(to.URL.Redacted()))
	}
	if len(before) == 10 {
		return errors.New("it redirects without end")
	}
	return nil
}

// cause is an error of net/http without the address.
func cause(err error) error {
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		return wrong.Err
	}
	return err
}

// Shown is a text of the server for a message: no control characters for the terminal, bounded.
func Shown(s string) string {
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

// FormType is the type of a body with the parameters of a query.
const FormType = "application/x-www-form-urlencoded"

// Concurrent is how many requests of one program ask the server at a time: Prometheus evaluates 20 queries at a time by default, for all
// clients.
const Concurrent = 8

// Client asks a server.
type Client struct {
	server *Server
	http   http.Client
}

// Name is the address of the server without a password.
func (c *Client) Name() string { return c.server.Name() }

// get calls the API.
func (c *Client) get(ctx context.Context, path string, query url.Values, data any) error {
	name := c.server.Name()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.server.URL, "/")+"/api/v1/"+path, strings.NewReader(query.Encode()))
	if err != nil {
		return fmt.Errorf("promapi: --prometheus.url is no address: %w", cause(err))
	}
	if strings.HasPrefix(path, "label/") { // no form
		request.Method, request.Body, request.ContentLength, request.URL.RawQuery = http.MethodGet, http.NoBody, 0, query.Encode()
	} else {
		request.Header.Set("Content-Type", FormType)
	}
	if c.server.Authorization != "" {
		request.Header.Set("Authorization", c.server.Authorization)
	}
	reply, err := c.http.Do(request)
	if err != nil && ctx.Err() != nil { // by Ctrl-C: no fault of the server
		return fmt.Errorf("promapi: stopped by %w", context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("promapi: cannot reach Prometheus at %s: %w; --prometheus.url sets its address", name, cause(err))
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(http.MaxBytesReader(nil, reply.Body, MaxReplyBytes))
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("promapi: stopped by %w", context.Cause(ctx))
	}
	if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = fmt.Errorf("it is larger than %d MiB", long.Limit>>20)
	}
	if err != nil {
		return fmt.Errorf("promapi: read the reply of %s: %w", name, err)
	}
	body := struct {
		Status, Error string
		Data          json.RawMessage
	}{}
	if err := json.Unmarshal(text, &body); err != nil || body.Status != "success" {
		switch {
		case reply.StatusCode == http.StatusUnauthorized || reply.StatusCode == http.StatusForbidden:
			return fmt.Errorf("promapi: %s: %s; --prometheus.bearer-file or --prometheus.basic-auth-file has the credentials", name, Shown(reply.Status))
		case err != nil:
			return foreign(name, reply)
		}
		return fmt.Errorf("promapi: %s: %s", name, Shown(body.Error))
	}
	if err := json.Unmarshal(body.Data, data); err != nil {
		return foreign(name, reply)
	}
	return nil
}

// foreign is the error of a reply that is not of the form of Prometheus's API.
func foreign(name string, reply *http.Response) error {
	return fmt.Errorf("promapi: %s: %s, and the reply is not from a Prometheus server", name, Shown(reply.Status))
}

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// At evaluates a query at a time.
func (c *Client) At(ctx context.Context, query string, t time.Time) (model.Vector, error) {
	var data struct{ Result model.Vector }
	err := c.Query(ctx, query, t, &data)
	return data.Result, err
}

// Query evaluates a query at a time; data is a pointer to a struct with the field Result, of the type of the result.
func (c *Client) Query(ctx context.Context, query string, t time.Time, data any) error {
	return c.get(ctx, "query", url.Values{"query": {query}, "time": {unix(t)}}, data)
}

// Range evaluates a query from one time to another, both included.
func (c *Client) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) (model.Matrix, error) {
	var data struct{ Result model.Matrix }
	err := c.get(ctx, "query_range", url.Values{
		"query": {query}, "start": {unix(from)}, "end": {unix(to)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	}, &data)
	return data.Result, err
}

// Series are the label sets of series that exist in a time.
func (c *Client) Series(ctx context.Context, match string, from, to time.Time) (all []map[string]string, err error) {
	err = c.get(ctx, "series", url.Values{"match[]": {match}, "start": {unix(from)}, "end": {unix(to)}}, &all)
	for _, one := range all {
		for l, v := range one {
			one[l] = Shown(v)
		}
	}
	return all, err
}

// Values are the values of a label.
func (c *Client) Values(ctx context.Context, label, match string) (all []string, err error) {
	err = c.get(ctx, "label/"+label+"/values", url.Values{"match[]": {match}}, &all)
	for i, v := range all {
		all[i] = Shown(v)
	}
	return all, err
}
