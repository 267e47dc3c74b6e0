package influx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/outputs"
	"oneway.example/tests/await"
)

// source gives numbered points: count of them at each call, one nanosecond apart.
type source struct {
	count atomic.Int64
	given atomic.Int64
}

func (s *source) series(at instant.Time, emit func(*point.Point)) error {
	p := point.Point{Measurement: "numbered", Tags: []point.Tag{{Key: "s", Value: ""}}}
	for range s.count.Load() {
		n := s.given.Load()
		p.Tags[0].Value, p.Fields, p.At = fmt.Sprint("series-", n%100), point.Int(p.Fields[:0], "n", n), at+instant.Time(n%1_000_000)
		emit(&p)
		s.given.Add(1)
	}
	return nil
}

// build makes an output of a line of configuration, as an agent does.
func build(yaml string, env output.Env) (output.Output, error) {
	c, err := config.Parse("o.yml", []byte("outputs: [{type: influxdb, interval: 1s, "+yaml+"}]\n"))
	if err != nil {
		return nil, err
	}
	return outputs.All()[0].New(env, c.Outputs[0].Options.DecodeAll)
}

// deliver runs an output of numbered points until the end of the test, or until stop.
func deliver(t *testing.T, yaml, stateDir string, from *source) (out output.Output, stop func()) {
	t.Helper()
	return deliverSeries(t, yaml, stateDir, from.series)
}

func deliverSeries(t *testing.T, yaml, stateDir string, series output.Series) (out output.Output, stop func()) {
	t.Helper()
	var log await.Text
	out, err := build(yaml, output.Env{
		Name: "test", Groups: families.All(), Log: slog.New(slog.NewTextHandler(&log, nil)), Sink: metric.Discard{}, Scopes: new(metric.Scopes), Recorder: new(record.Recorder),
		Series: series, StateDir: stateDir,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- out.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		t.Log(log.String())
	})
	t.Cleanup(stop)
	return out, stop
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// targets are the options of the APIs of versions 1 and 2.
func targets(s *Server) map[string]string {
	return map[string]string{
		"version 1": fmt.Sprintf("url: %q, version: 1, database: oneway", s.URL),
		"version 2": fmt.Sprintf("url: %q, version: 2, org: any, bucket: oneway/autogen", s.URL),
	}
}

const countAll = `SELECT COUNT(n) FROM numbered`

// TestKilledStoreLosesNoPoint kills the store several times while points are delivered.
func TestKilledStoreLosesNoPoint(t *testing.T) {
	s := New(t, false)
	for name, yaml := range targets(s) {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.t = t
			s.Start()
			defer s.Kill()
			s.Query("", "DROP DATABASE oneway; CREATE DATABASE oneway")
			from := new(source)
			from.count.Store(2000)
			out, stop := deliver(t, yaml+", batch_points: 500", t.TempDir(), from)
			for range 2 {
				before := out.Status().Written
				await.That(t, "points arrive", func() bool { return out.Status().Written > before })
				s.Kill()
				await.That(t, "points wait", func() bool { status := out.Status(); return status.Waiting > 2000 && status.Reason != "" })
				s.Recover()
				s.Start()
				await.That(t, "they are delivered", func() bool { return out.Status().Reason == "" })
			}
			from.count.Store(0)
			await.That(t, "nothing waits", func() bool { return int64(out.Status().Written) == from.given.Load() && out.Status().Waiting == 0 })
			if got, status := s.Number("oneway", countAll), out.Status(); int64(got) != from.given.Load() || status.Dropped+status.Rejected != 0 {
				t.Errorf("the store has %v points, want %d; %+v", got, from.given.Load(), status)
			}
			stop()
		})
	}
}

// TestInfluxDB18LosesWhatFollowsAnIncompleteEntry: the store itself loses points that it has acknowledged, if the process was killed
// amid an entry of its WAL, started, and started again. A Recover after the kill prevents it.
func TestInfluxDB18LosesWhatFollowsAnIncompleteEntry(t *testing.T) {
	for recovers, want := range map[bool]float64{false: 1, true: 2} {
		t.Run(fmt.Sprint("recover ", recovers), func(t *testing.T) {
			s := New(t, false)
			s.Start()
			s.Query("", "CREATE DATABASE oneway")
			write := func(n int) {
				t.Helper()
				r, err := http.Post(s.URL+"/write?db=oneway", "", strings.NewReader(fmt.Sprintf("numbered n=%di %d", n, n)))
				if err != nil {
					t.Fatal(err)
				}
				defer r.Body.Close()
				if r.StatusCode != http.StatusNoContent {
					t.Fatalf("status %d", r.StatusCode)
				}
			}
			write(1)
			s.Kill()
			files, err := filepath.Glob(s.dir + "/wal/oneway/autogen/*/*.wal")
			if err != nil || len(files) != 1 {
				t.Fatalf("WAL: %v %v", files, err)
			}
			wal, err := os.OpenFile(files[0], os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = wal.Write([]byte{1, 0, 0, 1, 0, 1, 2, 3}) // 3 of 256 bytes
				err = errors.Join(err, wal.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			if recovers {
				s.Recover()
			}
			s.Start()
			write(2)
			if got := s.Number("oneway", countAll); got != 2 {
				t.Errorf("%v points before the second kill, want 2", got)
			}
			s.Kill()
			s.Start()
			if got := s.Number("oneway", countAll); got != want {
				t.Errorf("%v points, want %v", got, want)
			}
		})
	}
}

func TestAuthentication(t *testing.T) {
	s := New(t, true)
	s.Start()
	s.Query("", `CREATE USER admin WITH PASSWORD 'secret' WITH ALL PRIVILEGES`)
	s.User, s.Password = "admin", "secret"
	s.Query("", `CREATE DATABASE oneway; CREATE USER writer WITH PASSWORD 'pass-word'; GRANT WRITE ON oneway TO writer`)
	for name, yaml := range targets(s) {
		t.Run(name, func(t *testing.T) {
			before := s.Number("oneway", countAll)
			from := new(source)
			from.count.Store(10)
			file := secretFile(t, "wrong")
			out, stop := deliver(t, yaml+fmt.Sprintf(", username: writer, password_file: %s", file), "", from)
			await.That(t, "a wrong password is refused", func() bool { return strings.HasPrefix(out.Status().Reason, "status 401 ") })
			if err := os.WriteFile(file, []byte("pass-word\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			await.That(t, "the right one is accepted", func() bool { return out.Status().Written > 0 })
			from.count.Store(0)
			await.That(t, "nothing waits", func() bool { return int64(out.Status().Written) == from.given.Load() && out.Status().Waiting == 0 })
			if got := s.Number("oneway", countAll) - before; int64(got) != from.given.Load() {
				t.Errorf("the store has %v points, want %d", got, from.given.Load())
			}
			stop()
		})
	}
	t.Run("user without permission", func(t *testing.T) {
		s.Query("", `CREATE USER reader WITH PASSWORD 'r'; GRANT READ ON oneway TO reader`)
		from := new(source)
		from.count.Store(10)
		out, _ := deliver(t, targets(s)["version 1"]+", username: reader, password_file: "+secretFile(t, "r"), "", from)
		await.That(t, "it is refused", func() bool { return strings.HasPrefix(out.Status().Reason, "status 403 ") })
	})
}

func TestMissingDatabaseIsWaitedFor(t *testing.T) {
	s := New(t, false)
	s.Start()
	for name, yaml := range targets(s) {
		t.Run(name, func(t *testing.T) {
			s.Query("", "DROP DATABASE oneway")
			from := new(source)
			from.count.Store(10)
			out, stop := deliver(t, yaml, "", from)
			await.That(t, "it is missing", func() bool { return strings.Contains(out.Status().Reason, "not found") })
			s.Query("", "CREATE DATABASE oneway")
			await.That(t, "it is used", func() bool { return out.Status().Written > 0 })
			stop()
		})
	}
}

// TestRefusedPointsAreCounted: one of the points of each call is older than the retention, or every other call has one of another
// type than the store. InfluxDB 1.8 reports one reason of a request only, so the two are tested apart.
func TestRefusedPointsAreCounted(t *testing.T) {
	s := New(t, false)
	s.Start()
	for reason, refused := range map[string]func(at instant.Time) point.Point{
		"old": func(at instant.Time) point.Point {
			return point.Point{Measurement: "m", Fields: point.Int(nil, "n", 1), At: at - instant.Time(24*time.Hour)}
		},
		"type": func(at instant.Time) point.Point {
			if at.Time().Unix()%2 == 0 {
				return point.Point{Measurement: "typed", Fields: point.Float(nil, "n", 0.5), At: at}
			}
			return point.Point{Measurement: "typed", Fields: point.Int(nil, "n", 1), At: at}
		},
	} {
		for name, yaml := range targets(s) {
			t.Run(reason+" "+name, func(t *testing.T) {
				s.Query("", "DROP DATABASE oneway; CREATE DATABASE oneway WITH DURATION 2h NAME autogen")
				var given atomic.Int64
				out, stop := deliverSeries(t, yaml, "", func(at instant.Time, emit func(*point.Point)) error {
					emit(&point.Point{Measurement: "m", Fields: point.Int(nil, "n", 1), At: at})
					bad := refused(at)
					emit(&bad)
					given.Add(2)
					return nil
				})
				await.That(t, "some are refused", func() bool { return out.Status().Rejected >= 2 && out.Status().Written >= 3 })
				stop()
				// The last call may not have been delivered.
				stored := s.Number("oneway", "SELECT COUNT(n) FROM m") + s.Number("oneway", "SELECT COUNT(n) FROM typed")
				if status := out.Status(); float64(status.Written) != stored || int64(status.Written+status.Rejected)+status.Waiting != given.Load() {
					t.Errorf("the store has %v points of %d; %+v", stored, given.Load(), status)
				}
			})
		}
	}
}
