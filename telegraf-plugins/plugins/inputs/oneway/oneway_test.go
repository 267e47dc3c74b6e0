package oneway

import (
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/influxdata/telegraf"
	"github.com/prometheus/common/expfmt"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/output/promsink"
	"oneway.example/tests/await"

	"oneway.example/telegraf-plugins/internal/external"
)

// collected is an accumulator that remembers.
type collected struct {
	telegraf.Accumulator
	mu      sync.Mutex
	metrics []telegraf.Metric
	errors  []error
}

func (c *collected) AddMetric(m telegraf.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metrics = append(c.metrics, m)
}

func (c *collected) AddError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors = append(c.errors, err)
}

// field is the last value of a field, and the number of errors so far.
func (c *collected) field(measurement, key string) (value any, errors []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.metrics {
		if v, ok := m.GetField(key); ok && m.Name() == measurement {
			value = v
		}
	}
	return value, c.errors
}

// sampleSeries are those of a clock, and a native histogram.
func sampleSeries() *promsink.Sink {
	s := promsink.New(promsink.Options{})
	s.Series(metric.ClockErrorBound, "static").Set(0.25)
	s.Series(metric.ClockSteps, "static").Add(3)
	delay := s.Series(metric.Delay.In(metric.Slim), "a", "stamp", "forward")
	delay.Observe(0.5)
	delay.Observe(0.25)
	return s
}

// exposed serves a sink as an agent does.
func exposed(s *promsink.Sink, formats ...expfmt.Format) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultAcceptedFormats()...)
		if len(formats) > 0 {
			format = formats[0]
		}
		w.Header().Set("Content-Type", string(format))
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		defer zip.Close()
		_ = s.Expose(zip, format) // the client notices
	}
}

func started(t *testing.T, o *Oneway) *collected {
	t.Helper()
	if err := o.Init(); err != nil {
		t.Fatal(err)
	}
	acc := &collected{}
	if err := o.Start(acc); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Stop)
	return acc
}

func TestAttachedAgentIsReadInBothFormats(t *testing.T) {
	for _, c := range []struct {
		name    string
		formats []expfmt.Format
		count   any // of the native histogram, which the text format does not have
	}{
		{"protobuf", nil, int64(2)},
		{"text", []expfmt.Format{expfmt.NewFormat(expfmt.TypeTextPlain)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(exposed(sampleSeries(), c.formats...))
			t.Cleanup(server.Close)
			o := New()
			o.URL = server.URL
			acc := started(t, o)
			await.That(t, "points", func() bool { v, _ := acc.field("oneway_clock", "clock_steps_total"); return v == int64(3) })
			if v, errs := acc.field("oneway_clock", "clock_error_bound_seconds"); v != 0.25 || errs != nil {
				t.Errorf("%v, %v", v, errs)
			}
			if v, _ := acc.field("oneway_delay", "delay_seconds_count"); v != c.count {
				t.Errorf("count %v, want %v", v, c.count)
			}
			if v, _ := acc.field("oneway_scrape", "up"); v != 1.0 {
				t.Errorf("up %v, want 1", v)
			}
		})
	}
}

func TestAttachedAgentWithTLSAndPassword(t *testing.T) {
	dir := t.TempDir()
	password, ca := filepath.Join(dir, "password"), filepath.Join(dir, "ca.pem")
	metrics := exposed(sampleSeries())
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, secret, _ := r.BasicAuth(); name != "telegraf" || secret != "pa ss" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		metrics(w, r)
	}))
	t.Cleanup(server.Close)
	files := map[string][]byte{password: []byte("wrong\n"), ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	for name, content := range files {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := New()
	o.URL, o.Username, o.PasswordFile, o.TLSCA, o.Interval = server.URL, "telegraf", password, ca, telegrafSecond
	acc := started(t, o)
	await.That(t, "the refusal", func() bool { v, errs := acc.field("oneway_scrape", "up"); return v == 0.0 && len(errs) > 0 })
	if _, errs := acc.field("", ""); !strings.Contains(errs[0].Error(), `replied "401 Unauthorized"; want 200 OK`) || strings.Contains(errs[0].Error(), "wrong") {
		t.Error(errs[0])
	}
	if err := os.WriteFile(password, []byte("pa ss\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	await.That(t, "the new password", func() bool { v, _ := acc.field("oneway_clock", "clock_steps_total"); return v == int64(3) })

	other := New()
	other.URL, other.Username, other.PasswordFile, other.Interval = server.URL, "telegraf", password, telegrafSecond
	acc = started(t, other)
	await.That(t, "a certificate of an unknown authority", func() bool {
		_, errs := acc.field("", "")
		return len(errs) > 0 && strings.Contains(errs[0].Error(), "certificate")
	})
}

const telegrafSecond = 1_000_000_000

// TestAReplyThatIsNoneIsAnError has replies that are cut, slow, or something else.
func TestAReplyThatIsNoneIsAnError(t *testing.T) {
	for name, reply := range map[string]http.HandlerFunc{
		"another exporter": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "go_goroutines 1\n") },
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
			fmt.Fprint(w, "\x7fabc")
		},
		"size of 64 TiB": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
			fmt.Fprint(w, "\x80\x80\x80\x80\x80\x80\x10abc")
		},
		"status of a megabyte": func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				defer c.Close()
				fmt.Fprintf(c, "HTTP/1.1 500 %s\r\nContent-Length: 0\r\n\r\n", strings.Repeat("A", 1<<20))
			}
		},
		"no HTTP": func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				defer c.Close()
				fmt.Fprintf(c, "%s\r\n\r\n", strings.Repeat("A", 50_000))
			}
		},
		"number of a megabyte": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x "+strings.Repeat("A", 1<<20)+"\n") },
		"page":                 func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>{") },
		"slow":                 func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(reply)
			t.Cleanup(server.Close)
			o := New()
			o.URL, o.Timeout = server.URL, telegrafSecond/10
			acc := started(t, o)
			await.That(t, "up is 0, and an error", func() bool { v, errs := acc.field("oneway_scrape", "up"); return v == 0.0 && len(errs) > 0 })
			if _, errs := acc.field("", ""); len(errs[0].Error()) > 500 {
				t.Errorf("an error of %d bytes", len(errs[0].Error()))
			}
		})
	}
}

// TestRedirectDoesNotReceiveThePassword: net/http would send it to any port of the same host, and from https to http.
func TestRedirectDoesNotReceiveThePassword(t *testing.T) {
	requests := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { requests <- r.Header.Get("Authorization") }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	t.Cleanup(server.Close)
	o := New()
	o.URL, o.Username, o.PasswordFile = server.URL, "telegraf", filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(o.PasswordFile, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	acc := started(t, o)
	await.That(t, "an outcome", func() bool { v, _ := acc.field("oneway_scrape", "up"); return v != nil })
	if v, errs := acc.field("oneway_scrape", "up"); v != 0.0 || len(errs) == 0 || !strings.Contains(errs[0].Error(), `replied "302 Found"`) || len(requests) > 0 {
		t.Errorf("up %v, %v, %d requests at the other server", v, errs, len(requests))
	}
}

func TestStopInterruptsARequestWithoutAPoint(t *testing.T) {
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	defer server.Close()
	o := New()
	o.URL, o.Timeout = server.URL, 60*telegrafSecond
	if err := o.Init(); err != nil {
		t.Fatal(err)
	}
	acc := &collected{}
	if err := o.Start(acc); err != nil {
		t.Fatal(err)
	}
	<-arrived
	begin := time.Now()
	o.Stop()
	if took := time.Since(begin); took > 20*time.Second || len(acc.metrics) > 0 || len(acc.errors) > 0 {
		t.Errorf("Stop took %v; %v, %v", took, acc.metrics, acc.errors)
	}
}

// TestSampleConfigHasTheDefaults removes the comments of the options.
func TestSampleConfigHasTheDefaults(t *testing.T) {
	given := New()
	var all strings.Builder
	for line := range strings.Lines(given.SampleConfig()) {
		all.WriteString(strings.Replace(line, "  # ", "  ", 1))
	}
	file := filepath.Join(t.TempDir(), "all.conf")
	if err := os.WriteFile(file, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := external.Load("oneway", given, file); err != nil {
		t.Fatal(err)
	}
	want := New()
	if given.Interval != want.Interval || given.Timeout != want.Timeout || given.FirstRows != want.FirstRows || given.MaxRows != want.MaxRows || given.ConfigFile != DefaultConfigFile {
		t.Errorf("%+v", given)
	}
}

// TestReadmeHasTheSampleConfig holds the copy that Telegraf's conventions want.
func TestReadmeHasTheSampleConfig(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```toml @sample.conf\n"+sampleConfig+"```\n") {
		t.Error("README.md differs from sample.conf; go generate copies it")
	}
}
