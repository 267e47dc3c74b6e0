package oneway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/encoding/protodelim"

	"oneway.example/exporter/agent/pathlabel"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/hours"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/point/series"

	"oneway.example/telegraf-plugins/internal/feed"
)

// scraped is the measurement that tells whether the agent at a URL replied.
const scraped = "oneway_scrape"

const (
	// maxScrape limits a reply, and maxFamily one family of it; 10,000 paths have 60 MB.
	maxScrape = 256 << 20
	maxFamily = 64 << 20
	// maxHeader limits its header.
	maxHeader = 64 << 10
)

// batch is the largest number of points that are passed at once.
const batch = 1000

// accept prefers protobuf: only it has native histograms, whose count and sum are fields.
const accept = `application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,text/plain;version=0.0.4;q=0.5`

// attached reads the series of a running agent.
type attached struct {
	url                    string
	username, passwordFile string
	interval, timeout      time.Duration
	client                 *http.Client
	onError                func(error)
	convert                *series.Converter
	hours                  *hours.Hours
	addHour                func(*point.Point)           // adds a row of an hour
	labels                 map[string]map[string]string // of paths, of the last scrape
}

// newAttached checks the options.
func newAttached(o *Oneway) (*attached, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("url is %q; it must be the address of an agent, such as http://127.0.0.1:%s", o.URL, hostport.Agent)
	case u.User != nil:
		return nil, errors.New("url has a user; use username and password_file")
	case (o.Username == "") != (o.PasswordFile == ""):
		return nil, errors.New("username and password_file need each other")
	}
	if o.PasswordFile != "" {
		if _, err := keyfile.Read(o.PasswordFile); err != nil {
			return nil, fmt.Errorf("password_file cannot be used: %w", err)
		}
	}
	config, err := o.TLSConfig()
	if err != nil {
		return nil, fmt.Errorf("the TLS options cannot be used: %w", err)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
	}
	transport := &http.Transport{
		TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, IdleConnTimeout: 5 * time.Minute, MaxResponseHeaderBytes: maxHeader,
	}
	a := &attached{
		url: u.String(), username: o.Username, passwordFile: o.PasswordFile, interval: time.Duration(o.Interval), timeout: time.Duration(o.Timeout),
		client: &http.Client{Transport: transport, CheckRedirect: notFollowed}, convert: series.New(families.All()),
	}
	a.hours = hours.New(a.interval, func(p *point.Point) { a.addHour(p) })
	return a, nil
}

// notFollowed leaves a redirect as it is: it could send the password to another server, or without encryption.
func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Run scrapes at the interval until ctx ends.
func (a *attached) Run(ctx context.Context, to *feed.Feed) error {
	defer a.client.CloseIdleConnections()
	next := time.NewTicker(a.interval)
	defer next.Stop()
	for {
		if err := a.gather(ctx, to); err != nil {
			a.onError(fmt.Errorf("oneway: %.400s", err.Error())) // a part of it can be the agent's
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// gather scrapes once. It passes all series with the time of the request, or none, and in either case a point that tells which.
func (a *attached) gather(ctx context.Context, to *feed.Feed) error {
	at := instant.Now()
	families, err := a.scrape(ctx)
	if ctx.Err() != nil {
		return nil // the end of the plugin is not a fault of the agent
	}
	own := point.Point{Measurement: scraped, Tags: []point.Tag{{Key: "url", Value: a.url}}, At: at}
	up := 1.0
	if err != nil {
		up = 0
	}
	own.Fields = point.Float(point.Float(nil, "up", up), "duration_seconds", time.Duration(instant.Now()-at).Seconds())
	points := []point.Point{own}
	if err == nil {
		var labels point.PathLabels
		paths := labelsOf(families)
		labels.Set(paths)
		tags := point.NewTagger(nil, &labels)
		add := func(p *point.Point) {
			if points = append(points, cloned(p, &tags)); len(points) == batch {
				to.Add(ctx, points)
				points = points[:0]
			}
		}
		if !maps.EqualFunc(paths, a.labels, maps.Equal) {
			a.hours.Cut(at)
		}
		a.labels, a.addHour = paths, add
		a.hours.Begin(at)
		err = a.convert.Convert(families, at, func(p *point.Point) {
			a.hours.Add(p)
			add(p)
		})
		a.hours.End()
	}
	to.Add(ctx, points)
	return err
}

// cloned is a copy of p, which is valid during a call only, with the labels of its path.
func cloned(p *point.Point, tags *point.Tagger) point.Point {
	c := *p
	c.Tags, c.Fields = tags.Append(nil, p.Tags), append([]point.Field(nil), p.Fields...)
	return c
}

// labelsOf are the labels of paths, by path. Names that the configuration of an agent cannot have are left out.
func labelsOf(all series.Families) map[string]map[string]string {
	checker, paths := pathlabel.NewChecker(families.All(), families.Tables()), map[string]map[string]string{}
	for _, f := range all {
		if f.GetName() != metric.PathLabels.Name {
			continue
		}
		for _, m := range f.Metric {
			path, labels := "", map[string]string{}
			for _, l := range m.Label {
				switch {
				case l.GetName() == metric.Path:
					path = l.GetValue()
				case checker.Check(map[string]string{l.GetName(): l.GetValue()}) == nil:
					labels[l.GetName()] = l.GetValue()
				}
			}
			paths[path] = labels
		}
	}
	return paths
}

// scrape reads all families.
func (a *attached) scrape(ctx context.Context) (all series.Families, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	if a.username != "" {
		password, err := keyfile.Read(a.passwordFile)
		if err != nil {
			return nil, fmt.Errorf("password_file cannot be used: %w", err)
		}
		request.SetBasicAuth(a.username, strings.TrimSpace(string(password)))
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the agent cannot be read: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf(`the agent at %s replied "%d %s"; want 200 OK`, a.url, response.StatusCode, http.StatusText(response.StatusCode))
	}
	if all, err = decode(response.Body, expfmt.ResponseFormat(response.Header)); err != nil {
		return nil, fmt.Errorf("the reply of the agent at %s cannot be read: %w", a.url, err)
	}
	if !slices.ContainsFunc(all, func(f *dto.MetricFamily) bool { return strings.HasPrefix(f.GetName(), "oneway_") }) {
		return nil, fmt.Errorf("%s is not the address of an agent: the reply has no metric oneway_*", a.url)
	}
	return all, nil
}

// decode reads all families of a reply.
func decode(reply io.Reader, format expfmt.Format) (all series.Families, err error) {
	limited := &io.LimitedReader{R: reply, N: maxScrape}
	next := expfmt.NewDecoder(limited, format).Decode
	if format.FormatType() == expfmt.TypeProtoDelim {
		// The decoder of expfmt allocates the size that a reply claims to have.
		buffered, options := bufio.NewReader(limited), protodelim.UnmarshalOptions{MaxSize: maxFamily}
		next = func(f *dto.MetricFamily) error { return options.UnmarshalFrom(buffered, f) }
	}
	for {
		f := new(dto.MetricFamily)
		err := next(f)
		switch {
		case limited.N == 0:
			return nil, fmt.Errorf("it is larger than %d bytes", maxScrape)
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, f)
	}
}
