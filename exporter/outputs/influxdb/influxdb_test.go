package influxdb

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/promsink"
	"oneway.example/tests/await"
)

func secret(t *testing.T, text string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRequestsAreThoseOfTheVersion(t *testing.T) {
	password, token := secret(t, "pass word"), secret(t, "t0ken")
	for name, c := range map[string]struct {
		o    Options
		want string // method, path, Authorization
	}{
		"1":           {Options{Version: 1, Database: "one way"}, "POST /write?db=one+way&precision=ns "},
		"1 password":  {Options{Version: 1, Database: "d", RetentionPolicy: "raw", Username: "u", PasswordFile: password}, "POST /write?db=d&precision=ns&rp=raw Basic dTpwYXNzIHdvcmQ="},
		"1 token":     {Options{Version: 1, Database: "d", TokenFile: token}, "POST /write?db=d&precision=ns Bearer t0ken"},
		"2":           {Options{Version: 2, Org: "o", Bucket: "d/raw", TokenFile: token}, "POST /api/v2/write?bucket=d%2Fraw&org=o&precision=ns Token t0ken"},
		"2 of 1.8":    {Options{Version: 2, Org: "o", Bucket: "d/", Username: "u", PasswordFile: password}, "POST /api/v2/write?bucket=d%2F&org=o&precision=ns Token u:pass word"},
		"3":           {Options{Version: 3, Database: "d", TokenFile: token}, "POST /api/v3/write_lp?accept_partial=true&db=d&precision=nanosecond Bearer t0ken"},
		"3 no secret": {Options{Version: 3, Database: "d"}, "POST /api/v3/write_lp?accept_partial=true&db=d&precision=nanosecond "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			o := DefaultOptions()
			o.URL, o.Version, o.Database, o.RetentionPolicy, o.Org, o.Bucket = s.URL+"/base/", c.o.Version, c.o.Database, c.o.RetentionPolicy, c.o.Org, c.o.Bucket
			o.Username, o.PasswordFile, o.TokenFile = c.o.Username, c.o.PasswordFile, c.o.TokenFile
			r := start(t, o, "")
			r.add(0, 3)
			r.arrive(s, 3)
			_, all := s.received()
			got := fmt.Sprintf("%s %s %s", all[0].Method, strings.TrimPrefix(all[0].URL.String(), "/base"), all[0].Header.Get("Authorization"))
			if got != c.want || all[0].Header.Get("Content-Encoding") != "gzip" {
				t.Errorf("request %q, want %q; headers %v", got, c.want, all[0].Header)
			}
			r.stop()
			for _, hidden := range []string{"t0ken", "pass word"} {
				if text := r.log.String() + fmt.Sprintf("%+v", r.Status()); strings.Contains(text, hidden) {
					t.Errorf("a secret is shown: %s", text)
				}
			}
		})
	}
}

func TestReplacedTokenIsUsed(t *testing.T) {
	s := newStore(t)
	o := options(s)
	o.Version, o.TokenFile = 3, secret(t, "old")
	r := start(t, o, "")
	s.on(func(w http.ResponseWriter, got request) bool {
		if got.Header.Get("Authorization") == "Bearer new" {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	r.add(0, 1)
	await.That(t, "the old token is refused", func() bool { return r.requests(resultUnauthorized) > 0 })
	if err := os.Remove(o.TokenFile); err != nil {
		t.Fatal(err)
	}
	before := r.requests(resultUnauthorized)
	await.That(t, "it goes on without the file", func() bool { return r.requests(resultUnauthorized) > before })
	if err := os.WriteFile(o.TokenFile, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.arrive(s, 1)
}

func TestStoreWithACertificate(t *testing.T) {
	s := newStore(t)
	tls := httptest.NewTLSServer(s.Config.Handler)
	defer tls.Close()
	o := options(s)
	o.URL = tls.URL
	refused := start(t, o, "")
	refused.add(0, 1)
	await.That(t, "an unknown authority is refused", func() bool { return strings.Contains(refused.Status().Reason, "certificate") })
	refused.stop()
	o.CAFile = writePEM(t, tls.Certificate().Raw)
	r := start(t, o, "")
	r.add(0, 5)
	r.arrive(s, 5)
}

func TestUndeliveredPointsSurviveARestart(t *testing.T) {
	away := newStore(t)
	dir := t.TempDir()
	away.on(times(1<<30, 503, ""))
	o := options(away)
	o.BatchPoints = 100
	for i := range 4 {
		r := start(t, o, dir)
		r.add(i*1000, 1000)
		await.That(t, "the store is tried", func() bool { return r.Status().Reason != "" })
		if status := r.Status(); status.Waiting != int64(i+1)*1000 || status.WaitingBytes == 0 {
			t.Errorf("status is %+v", status)
		}
		r.stop()
	}
	info, err := os.Stat(filepath.Join(dir, "outputs", "test"))
	if err != nil || info.Mode().Perm() != 0o700 || len(spoolFiles(t, dir)) == 0 {
		t.Errorf("directory of the spool: %v, %v", info, err)
	}
	s := newStore(t) // away may not have read the last request of an output that has ended, and would accept it now
	o.URL = s.URL
	r := start(t, o, dir)
	r.arrive(s, 4000)
	if status := r.Status(); status.Written != 4000 || status.Dropped != 0 || status.WaitingBytes != 0 {
		t.Errorf("status is %+v", status)
	}
}

func TestBatchesHaveTheirLimits(t *testing.T) {
	s := newStore(t)
	o := options(s)
	o.BatchPoints, o.BatchBytes, o.Gzip = 300, 4096, false
	r := start(t, o, "")
	r.add(0, 2000)
	r.arrive(s, 2000)
	_, all := s.received()
	for _, one := range all {
		if len(one.lines) > 300 || one.bytes > 4096 {
			t.Errorf("a request has %d points in %d bytes", len(one.lines), one.bytes)
		}
	}
	if len(all) > 40 {
		t.Errorf("%d requests are more than needed", len(all))
	}
}

func TestFullSpoolDropsTheOldestPoints(t *testing.T) {
	s := newStore(t)
	s.on(times(1<<30, 503, ""))
	o := options(s)
	o.Spool.MaxBytes, o.BatchPoints = minSpoolBytes, 10
	r := start(t, o, t.TempDir())
	const count = 100_000
	r.add(0, count)
	status := r.Status()
	if status.Dropped == 0 || status.Waiting+int64(status.Dropped) != count || status.WaitingBytes > minSpoolBytes {
		t.Fatalf("status is %+v", status)
	}
	await.That(t, "the drops are counted", func() bool {
		return r.value("oneway_output_points_total", `result="dropped"`) == float64(r.Status().Dropped)
	})
	s.on(nil)
	await.That(t, "the rest is delivered", func() bool { return r.Status().Waiting == 0 })
	got := s.values()
	for i := 1; i < len(got); i++ {
		if got[i] <= got[i-1] {
			t.Fatalf("point %d is after %d", got[i], got[i-1])
		}
	}
	status = r.Status()
	if got[len(got)-1] != count-1 || len(got)+int(status.Dropped) != count || int(status.Written) != len(got) {
		t.Errorf("%d points of %d arrived, the last is %d; %+v", len(got), count, got[len(got)-1], status)
	}
	for name, want := range map[string]float64{"oneway_output_spool_limit_bytes": minSpoolBytes, "oneway_output_waiting_points": 0, "oneway_output_spool_bytes": 0} {
		await.That(t, name, func() bool { return r.value(name, `output="test"`) == want })
	}
}

// TestSeriesAndSamplesAreDelivered runs the collector too.
func TestSeriesAndSamplesAreDelivered(t *testing.T) {
	s := newStore(t)
	o := options(s)
	o.Interval, o.Tags = time.Second, map[string]string{"site": "lab"}
	series := func(at instant.Time, emit func(*point.Point)) error {
		emit(&point.Point{Measurement: "oneway_test", Tags: []point.Tag{{Key: "path", Value: "a"}}, Fields: point.Float(nil, "f", 0.5), At: at})
		return nil
	}
	sink := promsink.New(promsink.Options{})
	env := output.Env{Name: "n", Groups: metric.Groups(), Log: slog.New(slog.DiscardHandler), Sink: sink, Scopes: new(metric.Scopes), Recorder: new(record.Recorder), Series: series}
	out, err := newOutput(env, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- out.Run(ctx) }()
	await.That(t, "two lines arrive", func() bool { lines, _ := s.received(); return len(lines) >= 2 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	lines, _ := s.received()
	want := regexp.MustCompile(`^oneway_test,host=` + regexp.QuoteMeta(host) + `,path=a,site=lab f=0\.5 \d{10}000000000$`)
	for _, line := range lines {
		if !want.MatchString(line) {
			t.Errorf("line %q", line)
		}
	}
}

// configured decodes options as an agent does.
func configured(t *testing.T, yaml string) (*Output, error) {
	t.Helper()
	c, err := config.Parse("o.yml", []byte("outputs: ["+yaml+"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := NewType().New(output.Env{Name: "n", Groups: metric.Groups(), Log: slog.New(slog.DiscardHandler)}, c.Outputs[0].Options.DecodeAll)
	if err != nil {
		return nil, err
	}
	return out.(*Output), nil
}

func TestWrongOptionsStateTheExpectation(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	const good = "url: 'http://h:8086', version: 1, database: d"
	for options, want := range map[string]string{
		"version: 1, database: d":                                     "url is missing; it must be the address of the store, such as https://influxdb.example.net:8086",
		"url: 'influxdb:8086', version: 1, database: d":               "url is no address of a store; it must begin with http:// or https:// and a host, such as https://influxdb.example.net:8086",
		"url: 'http://u:secret@h', version: 1, database: d":           "url has a user name; use the keys username and password_file",
		"url: 'http://h?db=x', version: 1, database: d":               "url has a query; it must end with the host or a path, such as https://influxdb.example.net:8086",
		"url: 'http://h', version: 4":                                 "version is 4; it must be between 1 and 3",
		"url: 'http://h/api/v2/write', org: o, bucket: b":             "url has the path of a write API, which the output adds; leave it out, such as https://influxdb.example.net:8086",
		"url: 'http://h', database: d":                                "database is not an option of version 2, the default; set version: 1 for InfluxDB 1.8, 3 for InfluxDB 3, or org and bucket",
		"url: 'http://h', version: 1":                                 "database is missing; version 1 needs it",
		"url: 'http://h', org: o, bucket: b, database: d":             "database is not an option of version 2",
		"url: 'http://h', org: o":                                     "bucket is missing; version 2 needs it",
		good + ", username: u":                                        "password_file is missing; username and password_file belong together",
		good + ", token_file: t, username: u, password_file: p":       "token_file excludes username and password_file",
		good + ", token_file: " + open:                                "token_file cannot be used: keyfile: " + open + " has mode 0644: all users can access the secret in it; the mode's last digit must be 0: chmod 600, or 640 for a group",
		"url: 'https://h', version: 1, database: d, ca_file: /absent": "ca_file cannot be used: open /absent: no such file or directory",
		"url: 'https://h', version: 1, database: d, cert_file: c":     "cert_file and key_file belong together",
		good + ", interval: 1ms":                                      "interval is 1ms; it must be between 1s and 1h0m0s",
		good + ", batch_points: 0":                                    "batch_points is 0; it must be between 1 and 100000",
		good + ", spool: {directory: spool}":                          `spool.directory is "spool"; it must be an absolute path, such as /var/lib/oneway/outputs/influxdb`,
		good + ", spool: {max_bytes: 1}":                              "spool.max_bytes is 1; it must be between 262144 and 1099511627776",
		good + ", tags: {path: a}":                                    `tags cannot be used: collect: tag "path" is a tag or field of this program, want another key`,
	} {
		_, err := configured(t, "{type: influxdb, "+options+"}")
		if wrong, ok := errors.AsType[*option.Error](err); !ok || wrong.Error() != want {
			t.Errorf("%s:\n%v\nwant %s", options, err, want)
		}
	}
}

func TestSpoolIsInTheStateDirectoryByDefault(t *testing.T) {
	none, elsewhere := "", "/elsewhere"
	for _, c := range []struct {
		o     SpoolOptions
		state string
		dir   string
		limit int64
	}{
		{SpoolOptions{}, "/state", "/state/outputs/a%2F..%2Fb", spoolBytes},
		{SpoolOptions{}, "", "", memoryBytes},
		{SpoolOptions{Directory: &none}, "/state", "", memoryBytes},
		{SpoolOptions{Directory: &elsewhere, MaxBytes: 1 << 20}, "/state", "/elsewhere", 1 << 20},
	} {
		o := Options{Spool: c.o}
		if dir, limit := o.spool(&output.Env{Name: "a/../b", StateDir: c.state}); dir != c.dir || limit != c.limit {
			t.Errorf("%+v: %s, %d", c, dir, limit)
		}
	}
}

// TestExampleHasEveryKeyWithItsDefault reads the settings of the example that are comments too.
func TestExampleHasEveryKeyWithItsDefault(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/oneway.yml")
	if err != nil {
		t.Fatal(err)
	}
	begin := strings.Index(string(text), "\n#outputs:\n")
	if begin < 0 {
		t.Fatal("the example has no outputs")
	}
	block, _, _ := strings.Cut(string(text[begin+1:]), "\n\n")
	settings := regexp.MustCompile(`(?m)^( *)#((?:- )?[a-z_]+:( |$))`).ReplaceAllString(block, "$1$2")
	c, err := config.Parse("oneway.yml", []byte(settings+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(c.Outputs, func(o config.Item) bool { return o.Type == Type{}.Name() })
	if at < 0 {
		t.Fatal("the example has no output of this type")
	}
	configured := c.Outputs[at].Options
	got, want := Options{}, DefaultOptions()
	if err := configured.DecodeAll(&got); err != nil {
		t.Fatal(err)
	}
	for _, key := range config.Keys(&want) {
		if !configured.Has(key) {
			t.Errorf("%s is not in the example", key)
		}
	}
	for i := range reflect.TypeOf(want).NumField() {
		if d := reflect.ValueOf(want).Field(i); !d.IsZero() {
			if diff := cmp.Diff(d.Interface(), reflect.ValueOf(got).Field(i).Interface()); diff != "" {
				t.Errorf("%s (-default +example):\n%s", reflect.TypeOf(want).Field(i).Name, diff)
			}
		}
	}
	if got.Spool.MaxBytes != spoolBytes {
		t.Errorf("the example's spool has %d bytes", got.Spool.MaxBytes)
	}
}

func TestSecretsOverPlainHTTPAreWarnedOf(t *testing.T) {
	s := newStore(t)
	o := options(s)
	o.Username, o.PasswordFile = "u", secret(t, "p")
	for url, want := range map[string]bool{"http://127.0.0.1:8086": false, "http://localhost:1": false, "http://[::1]:1": false, "http://192.0.2.1:1": true, "http://h": true, "https://h": false} {
		o.URL = url
		base, err := address(url)
		if err != nil || o.exposed(base) != want {
			t.Errorf("%s: exposed %t, %v", url, o.exposed(base), err)
		}
	}
}

func writePEM(t *testing.T, certificate []byte) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
