package loan

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/heavy/heavytest"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/sched"
)

// lender is a server in a directory of its own.
type lender struct {
	t      *testing.T
	socket string
	links  *sched.Links
	sink   *heavytest.Sink
	server *Server
	cancel context.CancelFunc
	ended  chan struct{}
	log    *logged
}

// logged is what a server has logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// find puts each test on the link that it names, and refuses one.
func find(a Ask) (Place, error) {
	if a.Link == "unknown" {
		return Place{}, errors.New("no such link")
	}
	return Place{Path: "office", Probe: a.Kind, Link: a.Link}, nil
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "loan") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func newLender(t *testing.T, change func(*Options)) *lender {
	t.Helper()
	links, err := sched.NewLinks(sched.LinksOptions{Links: []sched.LinkOptions{{Name: "uplink", BudgetBytes: 1000}, {Name: "lab"}}})
	if err != nil {
		t.Fatal(err)
	}
	l := &lender{t: t, socket: filepath.Join(shortDir(t), "run", "agent.sock"), links: links, sink: &heavytest.Sink{}, log: &logged{}}
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
			t.Errorf("%d series are left open", n)
		}
	})
	return l
}

func (l *lender) start() {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel, l.ended = cancel, make(chan struct{})
	go func() {
		defer close(l.ended)
		if err := l.server.Run(ctx); err != nil {
			l.t.Errorf("Run = %v", err)
		}
	}()
}

func (l *lender) stop() {
	l.cancel()
	select {
	case <-l.ended:
	case <-time.After(patience):
		l.t.Fatal("the server has not ended")
	}
}

// eventually asks again and again: that the far end of a socket has gone is told by nothing else.
// The limit is for a test that has failed.
func (l *lender) eventually(what string, f func() bool) {
	l.t.Helper()
	// The other end of a socket tells of its state to who asks, and of no change.
	for deadline := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("%s: not after %v\n%s", what, patience, l.log)
		}
	}
}

// dial asks for a link, once the server listens.
func (l *lender) dial(link string) *Loan {
	l.t.Helper()
	var got *Loan
	l.eventually("the server listens", func() bool {
		var err error
		got, err = Dial(l.t.Context(), l.socket, Ask{Kind: "train", Host: "192.0.2.7", Port: 8620, Link: link})
		if err != nil && !errors.As(err, new(*NoAgentError)) {
			l.t.Fatal(err)
		}
		return err == nil
	})
	l.t.Cleanup(got.Close)
	return got
}

func (l *lender) take(link string) *Loan {
	l.t.Helper()
	got := l.dial(link)
	if err := got.Take(l.t.Context(), 0, nil); err != nil {
		l.t.Fatal(err)
	}
	return got
}

func (l *lender) running(link string) float64 {
	v, _ := l.sink.Value(metric.TestRunning, "office", "train", link)
	return v
}

func (l *lender) free(link string) bool {
	_, _, held := l.links.Holder(link)
	return !held
}

func (l *lender) wantUsed(want int64) {
	l.t.Helper()
	if u := l.links.Usage("uplink"); u.Used != want || u.Reserved != 0 {
		l.t.Errorf("%d octets are used and %d set aside, want %d and 0", u.Used, u.Reserved, want)
	}
}
