package linklease

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/probe/quota"
	"oneway.example/tests/await"
)

// lessor runs a server in a temporary directory.
type lessor struct {
	t      *testing.T
	socket string
	quota  *quota.Store
	links  *link.Table
	sink   *metrictest.Sink
	server *Server
	cancel context.CancelFunc
	ended  chan struct{}
	log    *await.Text
}

// find returns the link that a test names, or an error for one name.
func find(a Test) (Labels, error) {
	if a.Link == "unknown" {
		return Labels{}, errors.New("no such link")
	}
	return Labels{Path: "office", Probe: a.Kind, Link: a.Link}, nil
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lease") // t.TempDir may exceed the length of a socket path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func newLessor(t *testing.T, change func(*Options)) *lessor {
	t.Helper()
	store := quota.New(quota.Options{})
	links := link.NewTable(store)
	if err := links.SetLinks([]link.Options{{Name: "uplink", QuotaBytes: 1000}, {Name: "lab"}}); err != nil {
		t.Fatal(err)
	}
	l := &lessor{t: t, socket: filepath.Join(shortDir(t), "run", "agent.sock"), quota: store, links: links, sink: &metrictest.Sink{}, log: &await.Text{}}
	o := Options{
		Socket: l.socket, Links: links, Sink: l.sink, Find: find,
		Log: slog.New(slog.NewTextHandler(l.log, nil)),
	}
	if change != nil {
		change(&o)
	}
	l.socket, l.server = o.Socket, NewServer(o)
	l.start()
	t.Cleanup(func() {
		l.stop()
		if n := l.sink.Open(); n != 0 {
			t.Errorf("%d series are still open", n)
		}
	})
	return l
}

func (l *lessor) start() {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel, l.ended = cancel, make(chan struct{})
	go func() {
		defer close(l.ended)
		if err := l.server.Run(ctx); err != nil {
			l.t.Errorf("Run = %v", err)
		}
	}()
}

func (l *lessor) stop() {
	l.cancel()
	select {
	case <-l.ended:
	case <-time.After(timeout):
		l.t.Fatal("the server has not ended")
	}
}

// eventually waits for f and shows the server's log if it fails.
func (l *lessor) eventually(what string, f func() bool) {
	l.t.Helper()
	await.That(l.t, what, f, l.log)
}

// dial retries until the server listens.
func (l *lessor) dial(link string) *Lease {
	l.t.Helper()
	var got *Lease
	l.eventually("the server listens", func() bool {
		var err error
		got, err = Dial(l.t.Context(), l.socket, Test{Kind: "train", Host: "192.0.2.7", Port: 8620, Link: link})
		if err != nil && !errors.As(err, new(*NoAgentError)) {
			l.t.Fatal(err)
		}
		return err == nil
	})
	l.t.Cleanup(got.Close)
	return got
}

func (l *lessor) take(link string) *Lease {
	l.t.Helper()
	got := l.dial(link)
	if err := got.Acquire(l.t.Context(), 0, nil); err != nil {
		l.t.Fatal(err)
	}
	return got
}

func (l *lessor) running(link string) float64 {
	v, _ := l.sink.Value(metric.TestRunning, "office", "train", link)
	return v
}

func (l *lessor) free(link string) bool {
	_, _, held := l.links.Holder(link)
	return !held
}

func (l *lessor) wantUsed(want int64) {
	l.t.Helper()
	if u := l.links.Usage("uplink"); u.Used != want || u.Reserved != 0 {
		l.t.Errorf("%d bytes are used and %d reserved, want %d and 0", u.Used, u.Reserved, want)
	}
}
