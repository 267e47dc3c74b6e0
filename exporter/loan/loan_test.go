package loan

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/heavy/heavytest"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/sched"
)

// patience is how long anything may take that is only waited for.
const patience = 30 * time.Second

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

func (l *lender) eventually(what string, f func() bool) {
	l.t.Helper()
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

func TestLinkIsLentAnnouncedAndSettled(t *testing.T) {
	l := newLender(t, nil)
	one := l.dial("uplink")
	if got := one.Terms(); got.Place != (Place{"office", "train", "uplink"}) || got.Limit != 1000 || got.Left != 1000 || got.Holder != "" {
		t.Errorf("terms are %+v", got)
	}
	if !l.free("uplink") {
		t.Error("who only asks has the link")
	}
	if err := one.Take(t.Context(), 0, nil); err != nil {
		t.Fatal(err)
	}
	if who, _, _ := l.links.Holder("uplink"); who != fmt.Sprintf("office/train (oneway test, process %d)", os.Getpid()) {
		t.Errorf("the link is held by %q", who)
	}
	if err := one.Reserve(600); err != nil {
		t.Fatal(err)
	}
	if one.Terms().Left != 400 || l.running("uplink") != 0 {
		t.Errorf("%+v, running %v", one.Terms(), l.running("uplink"))
	}
	one.Sending()
	l.eventually("the test is announced", func() bool { return l.running("uplink") == 1 })
	if err := one.Settle(300, 200); err != nil {
		t.Fatal(err)
	}
	if one.Terms().Left != 500 || l.running("uplink") != 0 || !l.free("uplink") {
		t.Errorf("%+v, running %v, free %v", one.Terms(), l.running("uplink"), l.free("uplink"))
	}
	l.wantUsed(500)
	for way, want := range map[string]float64{"forward": 300, "reverse": 200} {
		if v, _ := l.sink.Value(metric.RunBytes, "office", "train", way); v != want {
			t.Errorf("%v octets %s, want %v", v, way, want)
		}
	}
}

func TestSecondTestOnALinkWaitsAndIsToldForWhom(t *testing.T) {
	l := newLender(t, nil)
	first, second := l.take("uplink"), l.dial("uplink")
	waits, taken := make(chan Terms, 1), make(chan error, 1)
	go func() { taken <- second.Take(t.Context(), time.Hour, func(t Terms) { waits <- t }) }()
	if at := <-waits; !strings.HasPrefix(at.Holder, "office/train (oneway test") || at.Since.IsZero() {
		t.Errorf("it waits for %+v", at)
	}
	other := l.take("lab") // another link is free
	if err := other.Settle(0, 0); err != nil {
		t.Error(err)
	}
	select {
	case err := <-taken:
		t.Fatalf("two tests have the link: %v", err)
	default:
	}
	if err := first.Settle(0, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	third := l.dial("uplink")
	var busy *BusyError
	if err := third.Take(t.Context(), 0, nil); !errors.As(err, &busy) || !strings.Contains(err.Error(), "link uplink was not free in 0s, it is held by office/train") {
		t.Errorf("error is %v", err)
	}
	if err := l.dial("uplink").Take(t.Context(), time.Millisecond, func(Terms) {}); !errors.As(err, &busy) {
		t.Errorf("error is %v", err)
	}
}

func TestBudgetThatDoesNotSufficeIsNotLent(t *testing.T) {
	l := newLender(t, nil)
	one := l.take("uplink")
	err := one.Reserve(1001)
	if missing, ok := errors.AsType[*sched.BudgetError](err); !ok || missing.Left != 1000 || missing.Need != 1001 || missing.Renewed.IsZero() {
		t.Fatalf("error is %v", err)
	}
	if err := one.Reserve(1000); err != nil {
		t.Errorf("all that is left is not to be had: %v", err)
	}
	if err := one.Settle(0, 0); err != nil {
		t.Fatal(err)
	}
	l.wantUsed(0)
}

func TestTestThatDiesGivesTheLinkBackAndCountsWhatItMayHaveSent(t *testing.T) {
	l := newLender(t, nil)
	one := l.take("uplink")
	if err := one.Reserve(400); err != nil {
		t.Fatal(err)
	}
	one.Close() // before it sent anything
	l.eventually("the link is free", func() bool { return l.free("uplink") })
	l.wantUsed(0)
	two := l.take("uplink")
	if err := two.Reserve(400); err != nil {
		t.Fatal(err)
	}
	two.Sending()
	l.eventually("it runs", func() bool { return l.running("uplink") == 1 })
	waiting := l.dial("uplink")
	told, taken := make(chan Terms, 1), make(chan error, 1)
	go func() { taken <- waiting.Take(t.Context(), time.Hour, func(t Terms) { told <- t }) }()
	<-told
	two.Close()
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	if l.running("uplink") != 0 {
		t.Error("the test that died is still said to run")
	}
	l.wantUsed(400)
}

func TestTestThatDiesWhileItWaitsIsForgotten(t *testing.T) {
	l := newLender(t, nil)
	first, second := l.take("uplink"), l.dial("uplink")
	told := make(chan Terms, 1)
	ctx, cancel := context.WithCancel(t.Context())
	taken := make(chan error, 1)
	go func() { taken <- second.Take(ctx, time.Hour, func(t Terms) { told <- t }) }()
	<-told
	cancel()
	if err := <-taken; !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	second.Close()
	if err := first.Settle(0, 0); err != nil {
		t.Fatal(err)
	}
	l.eventually("the link is free", func() bool { return l.free("uplink") })
}

// One that was suspended sends nothing, and its far end has given it up.
func TestLinkOfASuspendedTestIsTakenBack(t *testing.T) {
	l := newLender(t, func(o *Options) { o.silence = 100 * time.Millisecond })
	one := l.take("uplink") // its next word comes in seconds
	select {
	case <-one.Lost():
	case <-time.After(patience):
		t.Fatal("it still has the link")
	}
	l.eventually("the link is free", func() bool { return l.free("uplink") })
}

func TestServerThatEndsCountsWhatTestsMayHaveSentAndTheNextLendsAgain(t *testing.T) {
	l := newLender(t, nil)
	one := l.take("uplink")
	if err := one.Reserve(400); err != nil {
		t.Fatal(err)
	}
	one.Sending()
	l.eventually("it runs", func() bool { return l.running("uplink") == 1 })
	l.stop()
	<-one.Lost()
	if err := one.Settle(100, 0); !errors.Is(err, ErrGone) {
		t.Errorf("error is %v", err)
	}
	l.wantUsed(400)
	if _, err := os.Stat(l.socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its socket is still there: %v", err)
	}
	if _, err := Dial(t.Context(), l.socket, Ask{}); !errors.As(err, new(*NoAgentError)) {
		t.Errorf("error is %v", err)
	}
	l.start()
	again := l.dial("uplink")
	if err := again.TakeAgain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.running("uplink") != 1 {
		t.Error("the test is not announced again")
	}
	if err := l.dial("uplink").TakeAgain(t.Context()); !errors.As(err, new(*BusyError)) {
		t.Errorf("error is %v", err)
	}
	if err := again.Settle(100, 50); err != nil {
		t.Fatal(err)
	}
	l.wantUsed(400)
}

// A prober that a reload begins anew sets the gauge that it shares with a test to 0.
func TestGaugeIsSetAgainAfterAReload(t *testing.T) {
	l := newLender(t, nil)
	one := l.take("uplink")
	one.Sending()
	l.eventually("it runs", func() bool { return l.running("uplink") == 1 })
	reloaded := l.sink.Series(metric.TestRunning, "office", "train", "uplink")
	defer reloaded.Close()
	reloaded.Set(0)
	l.eventually("it is 1 again", func() bool { return l.running("uplink") == 1 })
	if err := one.Settle(0, 0); err != nil {
		t.Fatal(err)
	}
}

func TestSeriesOfATestStayForTheRulesThatLookBack(t *testing.T) {
	l := newLender(t, func(o *Options) { o.linger = time.Millisecond })
	if err := l.take("uplink").Settle(1, 1); err != nil {
		t.Fatal(err)
	}
	l.eventually("the series end", func() bool { return l.sink.Open() == 0 })
	if linger < 6*time.Minute {
		t.Errorf("they stay for %v, and oneway:heavy_test:recent looks back 6 min", linger)
	}
}

func TestSocketIsPrivate(t *testing.T) {
	l := newLender(t, nil)
	l.take("uplink").Close()
	for name, want := range map[string]fs.FileMode{l.socket: 0o600, l.socket + ".lock": 0o600, filepath.Dir(l.socket): 0o755} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v", name, info.Mode().Perm(), want)
		}
	}
}

func TestSocketIsForAGroupThatIsNamed(t *testing.T) {
	group, err := user.LookupGroupId(strconv.Itoa(os.Getgid()))
	if err != nil {
		t.Skip("this process's group has no name:", err)
	}
	l := newLender(t, func(o *Options) { o.Group = group.Name })
	l.dial("uplink").Close()
	l.eventually("the group may write", func() bool {
		info, err := os.Stat(l.socket)
		return err == nil && info.Mode().Perm() == 0o660
	})
}

func TestStaleSocketIsReplacedAndALiveOneIsNot(t *testing.T) {
	dir := shortDir(t)
	socket := filepath.Join(dir, "agent.sock")
	dead, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	if _, err := Dial(t.Context(), socket, Ask{}); !errors.As(err, new(*NoAgentError)) {
		t.Errorf("a socket that a dead agent has left: %v", err)
	}
	l := newLender(t, func(o *Options) { o.Socket = socket })
	l.take("uplink")
	second := newLender(t, func(o *Options) { o.Socket = socket })
	second.eventually("the second says why not", func() bool { return strings.Contains(second.log.String(), "another agent has it") })
	l.take("lab") // the first still answers
}

func TestFileThatIsNoSocketIsLeftAlone(t *testing.T) {
	file := filepath.Join(shortDir(t), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{file: "no socket", "/" + strings.Repeat("x", 200): "must have 107"} {
		if _, _, err := listen(t.Context(), path, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, _, err := listen(t.Context(), file+"2", "no such group"); err == nil {
		t.Error("a group that is unknown may ask")
	}
	if text, _ := os.ReadFile(file); string(text) != "mine" {
		t.Error("the file is gone")
	}
}

func TestWhoMayNotAskIsToldWhy(t *testing.T) {
	l := newLender(t, nil)
	l.dial("uplink").Close()
	if _, err := Dial(t.Context(), l.socket, Ask{Link: "unknown"}); err == nil || err.Error() != "no such link" {
		t.Errorf("error is %v", err)
	}
	for name, c := range map[string]struct{ send, want string }{
		"version":  {`{"op":"ask","version":99,"ask":{}}`, "another version"},
		"network":  {`{"op":"ask","version":1,"ask":{},"network":"net:[1]"}`, `"elsewhere"`},
		"disorder": {`{"op":"take"}`, ""},
		"garbage":  {"GET / HTTP/1.1", ""},
		"too long": {strings.Repeat("x", 2*maxLine), ""},
		"not held": {`{"op":"alive"}` + "\n" + `{"op":"settle"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", l.socket)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			fmt.Fprintln(conn, c.send)
			lines, said := bufio.NewScanner(conn), ""
			for lines.Scan() {
				said += lines.Text()
			}
			if errors.Is(lines.Err(), os.ErrDeadlineExceeded) || c.want == "" && said != "" || !strings.Contains(said, c.want) {
				t.Errorf("it says %q, %v", said, lines.Err())
			}
		})
	}
	if who, _, held := l.links.Holder("uplink"); held {
		t.Errorf("the link is held by %s", who)
	}
}
