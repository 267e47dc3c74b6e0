package loadserver

import (
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/load/traffictypes"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/link"
	"oneway.example/tests/await"
	"oneway.example/tests/remoteend"
)

// site is a load server on loopback with tokens.
type site struct {
	t      *testing.T
	r      *LoadServer
	sink   metric.Sink
	links  *link.Table
	all    []traffic.Type
	o      Options
	tokens map[string]string // text by name
	stop   func()
	at     netip.AddrPort // the address clients dial; zero: the first
}

// newSite runs a load server; lines are tokens as "name limits".
func newSite(t *testing.T, o Options, lines ...string) *site {
	t.Helper()
	return newSiteOf(t, o, traffictypes.All(), lines...)
}

// newSiteOf is newSite with these types of traffic.
func newSiteOf(t *testing.T, o Options, all []traffic.Type, lines ...string) *site {
	t.Helper()
	remoteend.NothingLeft(t)
	s := &site{t: t, all: all, tokens: map[string]string{}, sink: metric.Discard{}}
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
	links := link.NewTable(nil)
	s.links = links
	s.start()
	return s
}

// start runs the load server; it may be called again after stop.
func (s *site) start() {
	s.t.Helper()
	r, err := New(s.o, Env{
		Log: slog.New(slog.NewTextHandler(s.t.Output(), nil)), Sink: s.sink,
		Clock: static.New(time.Millisecond, metric.Discard{}), Links: s.links,
		Traffic: s.all, Version: "1.2.3",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.r, s.stop = r, await.Serving(s.t, r)
}

// dial connects with the token of a name.
func (s *site) dial(name string) (*loadcontrol.Client, error) {
	at := s.r.Addrs()[0]
	if s.at.IsValid() {
		at = s.at
	}
	c, err := loadcontrol.Dial(s.t.Context(), loadcontrol.ClientOptions{Address: at.String(), Pin: s.r.Pin(), Token: s.tokens[name]})
	if err == nil {
		s.t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// peer is a client with an open session and a proved address.
type peer struct {
	*udptraffic.Client
	site     *site
	endpoint *stream.Endpoint
	session  *stream.Session
}

// join connects and opens a session.
func (s *site) join(name string, bytes int64) (*peer, error) {
	s.t.Helper()
	c, err := s.dial(name)
	if err != nil {
		return nil, err
	}
	return s.open(c, bytes)
}

// open opens a session.
func (s *site) open(over *loadcontrol.Client, bytes int64) (*peer, error) {
	c, err := udptraffic.Open(s.t.Context(), over, loadcontrol.Open{Test: "saturation", Run: "test", Bytes: bytes, Duration: time.Hour})
	if err != nil {
		return nil, err
	}
	e := remoteend.Endpoint(s.t, c.Local().Addr())
	return &peer{Client: c, site: s, endpoint: e, session: e.Join(c.Reply.Session)}, nil
}

// at returns the load server's test port.
func (p *peer) at() netip.AddrPort {
	return netip.AddrPortFrom(p.Remote().Addr(), p.Reply.Port)
}

// prove proves the peer's address.
func (p *peer) prove() error {
	cookie, err := p.session.Hello(p.site.t.Context(), p.at())
	if err != nil {
		return err
	}
	return p.Prove(p.site.t.Context(), cookie)
}

// ready joins and proves, or fails the test.
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

// transferOf returns a transfer of 100 packets of 500 bytes, 1 ms apart.
func transferOf(id uint16, d sample.Direction) udptraffic.Start {
	return udptraffic.Start{ID: id, Direction: d, Idle: udptraffic.MinIdle, Plan: remoteend.Plan()}
}

const second = time.Second
