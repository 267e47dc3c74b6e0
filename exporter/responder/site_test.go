package responder

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/clock/static"
	"oneway.example/exporter/control"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/stream"
)

// site is a responder on loopback with tokens of three clients.
type site struct {
	t      *testing.T
	r      *Responder
	sink   metric.Sink
	links  *sched.Links
	o      Options
	tokens map[string]string // name -> text
	stop   func()
	at     netip.AddrPort // where clients dial; zero: the first address
}

// newSite runs a responder; lines are tokens, as "name limits".
func newSite(t *testing.T, o Options, lines ...string) *site {
	t.Helper()
	nothingLeft(t)
	s := &site{t: t, tokens: map[string]string{}, sink: metric.Discard{}}
	o.StateDir = t.TempDir()
	o.TokensFile = filepath.Join(o.StateDir, "tokens")
	if o.Listen == nil {
		o.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	}
	s.o = o
	for _, line := range lines {
		words := strings.Fields(line)
		limits, err := ParseLimits(words[1:])
		if err != nil {
			t.Fatal(err)
		}
		token, text, err := NewToken(words[0], limits)
		if err != nil {
			t.Fatal(err)
		}
		if err := AppendToken(o.TokensFile, token); err != nil {
			t.Fatal(err)
		}
		s.tokens[words[0]] = text
	}
	links, err := sched.NewLinks(sched.LinksOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.links = links
	s.start()
	return s
}

// start runs the responder, again after stop.
func (s *site) start() {
	s.t.Helper()
	r, err := New(s.o, Env{
		Log: slog.New(slog.NewTextHandler(s.t.Output(), nil)), Sink: s.sink,
		Clock: static.New(time.Millisecond, metric.Discard{}), Links: s.links,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case <-r.Started():
	case err := <-ended:
		s.t.Fatal(err)
	}
	s.r = r
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("Run: %v", err)
		}
	})
	s.t.Cleanup(s.stop)
}

// dial connects with a token's name.
func (s *site) dial(name string) (*control.Client, error) {
	at := s.r.Addrs()[0]
	if s.at.IsValid() {
		at = s.at
	}
	c, err := control.Dial(s.t.Context(), control.ClientOptions{Address: at.String(), Pin: s.r.Pin(), Token: s.tokens[name]})
	if err == nil {
		s.t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// peer is a client with an open session that has proved its address.
type peer struct {
	*control.Client
	site     *site
	endpoint *stream.Endpoint
	session  *stream.Session
	opened   control.Opened
}

// join connects and opens a session.
func (s *site) join(name string, bytes int64) (*peer, error) {
	s.t.Helper()
	c, err := s.dial(name)
	if err != nil {
		return nil, err
	}
	p := &peer{Client: c, site: s}
	p.opened, err = c.Open(s.t.Context(), control.Open{Version: control.Version, Kind: control.Saturate, Run: "test", Bytes: bytes})
	if err != nil {
		return nil, err
	}
	p.endpoint = newEndpoint(s.t, c.Local().Addr())
	p.session = p.endpoint.Join(p.opened.Session)
	return p, nil
}

func newEndpoint(t *testing.T, local netip.Addr) *stream.Endpoint {
	t.Helper()
	e, err := stream.Open(stream.Options{Local: netip.AddrPortFrom(local, 0)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(context.Background()) }()
	t.Cleanup(func() {
		e.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return e
}

// at is the responder's test port.
func (p *peer) at() netip.AddrPort {
	return netip.AddrPortFrom(p.Remote().Addr(), p.opened.Port)
}

// prove shows that the peer receives.
func (p *peer) prove() error {
	cookie, err := p.session.Hello(p.site.t.Context(), p.at())
	if err != nil {
		return err
	}
	return p.Prove(p.site.t.Context(), cookie)
}

// ready joins and proves, and fails the test if it cannot.
func (s *site) ready(name string, bytes int64) *peer {
	s.t.Helper()
	p, err := s.join(name, bytes)
	if err == nil {
		err = p.prove()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// transfer of 100 packets of 500 octets, 1 ms apart.
func transferOf(id uint16, d sample.Direction) control.Transfer {
	return control.Transfer{ID: id, Direction: d, Idle: control.MinIdle, Plan: stream.Plan{
		Segments: []stream.Segment{{PayloadBytes: 500, Burst: 1, Bursts: 100, Interval: time.Millisecond}},
	}}
}

// refusal is the one in an error; it fails the test if there is none.
func refusal(t *testing.T, err error) *control.Refusal {
	t.Helper()
	r, ok := errors.AsType[*control.Refusal](err)
	if !ok {
		t.Fatalf("error %v, want a refusal", err)
	}
	return r
}

const second = time.Second

// look is how often eventually looks, and patience for how long: half of what a stream
// lasts that does not stop.
const (
	look     = 5 * time.Millisecond
	patience = 20 * time.Second
)

// eventually waits for something that another goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(look) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// nothingLeft fails the test if anything of it is running when all its clean-ups are done.
func nothingLeft(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("%d goroutines before, %d after\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
			}
		}
	})
}
