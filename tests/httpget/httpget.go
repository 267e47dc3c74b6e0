// Package httpget is a load test without a load server of this program: a transfer of a page over HTTP. It shows what a run needs
// besides package loadtest.
package httpget

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probe/target"
)

// Options are the keys of the test.
type Options struct {
	// MaxBytes limits the transfer.
	MaxBytes option.Bytes `yaml:"max_bytes"`
}

// Describe returns the description of the keys.
func (o *Options) Describe() []option.Description {
	return []option.Description{option.Number(&o.MaxBytes, 1_000_000, 1, 1e9, "Limit of the bytes of the page.")}
}

// NewType makes the type for the registry.
func NewType() loadtest.Type[loadtest.Options, Options] {
	return loadtest.Type[loadtest.Options, Options]{
		TypeName: "http_get", Shared: option.Defaults[loadtest.Options], Defaults: option.Defaults[Options], Results: Result{}, Help: "Load a page.",
		Run: func(o *loadtest.Options) *loadtest.Options { return o },
		Make: func(at probe.Target, _ loadtest.Options, own Options) (loadtest.Test, error) {
			host, port, err := target.Host(at.Peer, 80)
			if err == nil {
				err = option.Check(&own)
			}
			return &test{host, port, int64(own.MaxBytes)}, err
		},
	}
}

// Result is the result of a run.
type Result struct {
	// Bytes arrived in Took.
	Bytes int64          `json:"received_bytes"`
	Took  report.Seconds `json:"duration_seconds"`
}

// Tables returns the result as a table.
func (r *Result) Tables() []report.Table {
	return []report.Table{{Rows: [][]string{{"bytes", unit.Bytes.Format(float64(r.Bytes))}, {"duration", unit.Seconds.Format(r.Took.Seconds())}}}}
}

type test struct {
	host string
	port uint16
	most int64
}

func (*test) Kind() string                   { return "http_get" }
func (t *test) Remote() (string, uint16)     { return t.host, t.port }
func (*test) Directions() []sample.Direction { return []sample.Direction{sample.Reverse} }
func (t *test) Bytes(int64) int64            { return t.most }
func (*test) Duration() time.Duration        { return time.Second }
func (t *test) Publish(v *loadtest.Values, r *loadtest.Run) {
	res := r.Body.(*Result)
	v.Set(metric.TCPThroughput, float64(res.Bytes)/res.Took.Seconds(), sample.Reverse.String())
}

func (t *test) Open(context.Context, *loadtest.Attempt) (loadtest.Session, error) {
	return &session{at: net.JoinHostPort(t.host, strconv.Itoa(int(t.port))), most: t.most}, nil
}

type session struct {
	at          string
	most, moved int64
}

func (s *session) Remote() string                               { return s.at }
func (s *session) Account(o *loadtest.Outcome, _ *metric.Scope) { o.ReverseBytes += s.moved }
func (*session) Close()                                         {}

func (s *session) Perform(ctx context.Context, r *loadtest.Run) error {
	begin := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.at+"/page", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return &loadtest.Failure{Reason: runreason.Unreachable, Err: err}
	}
	defer response.Body.Close()
	s.moved, err = io.Copy(io.Discard, io.LimitReader(response.Body, s.most))
	r.Body = &Result{s.moved, report.Seconds(time.Since(begin))}
	r.Summary = append(r.Summary, report.Line{Quantity: "page", Direction: sample.Reverse.String(), Value: unit.Bytes.Format(float64(s.moved))})
	return err
}
