package abuse

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/clock/static"
	"oneway.example/exporter/control"
	"oneway.example/exporter/link"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/responder"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
	"oneway.example/exporter/traffic/udp"
	"oneway.example/exporter/traffics"
	"oneway.example/tests/await"
)

// farEnd is a responder under attack.
type farEnd struct {
	t     *testing.T
	r     *responder.Responder
	links *link.Table
	o     responder.Options
	token string
	stop  func()
}

// startResponder runs one with a token of these limits; what is left of it when the test
// ends fails the test.
func startResponder(t *testing.T, limits control.Limits) *farEnd {
	t.Helper()
	return startResponderAt(t, "127.0.0.1", limits)
}

// startResponderAt runs one at that address.
func startResponderAt(t *testing.T, at string, limits control.Limits) *farEnd {
	t.Helper()
	goroutines := runtime.NumGoroutine()
	t.Cleanup(func() {
		if !await.Within(20*time.Second, func() bool { return runtime.NumGoroutine() <= goroutines }) {
			stacks := make([]byte, 1<<20)
			t.Errorf("%d goroutines before, %d after\n%s", goroutines, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
		}
	})
	dir := t.TempDir()
	f := &farEnd{t: t, o: responder.Options{
		Listen: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(at), 0)}, StateDir: dir, TokensFile: filepath.Join(dir, "tokens"),
	}}
	token, text, err := responder.NewToken("client", limits)
	if err != nil {
		t.Fatal(err)
	}
	if err := responder.AppendToken(f.o.TokensFile, token); err != nil {
		t.Fatal(err)
	}
	f.token = text
	f.links = link.NewTable(nil)
	f.run()
	return f
}

// run starts it, again after stop.
func (f *farEnd) run() {
	f.t.Helper()
	r, err := responder.New(f.o, responder.Env{
		Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: f.links, Traffic: traffics.All(),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case <-r.Started():
	case err := <-ended:
		f.t.Fatal(err)
	}
	f.r = r
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Errorf("Run: %v", err)
		}
	})
	f.t.Cleanup(f.stop)
}

func (f *farEnd) addr() netip.AddrPort { return f.r.Addrs()[0] }

func (f *farEnd) dial(token string) (*control.Client, error) {
	return control.Dial(f.t.Context(), control.ClientOptions{Address: f.addr().String(), Pin: f.r.Pin(), Token: token})
}

// visitor is a client with an open session.
type visitor struct {
	*udp.Client
	f        *farEnd
	endpoint *stream.Endpoint
	session  *stream.Session
	close    func()
}

// visit opens a session; the caller closes it, or the test's end does.
func (f *farEnd) visit(bytes int64) (*visitor, error) {
	c, err := f.dial(f.token)
	if err != nil {
		return nil, err
	}
	v := &visitor{f: f}
	if v.Client, err = udp.Open(f.t.Context(), c, control.Open{Test: "saturate", Run: "abuse", Bytes: bytes, Duration: time.Minute}); err != nil {
		c.Close()
		return nil, err
	}
	if v.endpoint, err = stream.Open(stream.Options{Local: netip.AddrPortFrom(f.addr().Addr(), 0)}); err != nil {
		c.Close()
		return nil, err
	}
	v.session = v.endpoint.Join(v.Answer.Session)
	ended := make(chan error, 1)
	go func() { ended <- v.endpoint.Run(context.Background()) }()
	v.close = sync.OnceFunc(func() {
		c.Close()
		v.endpoint.Close()
		if err := <-ended; err != nil {
			f.t.Errorf("endpoint: %v", err)
		}
	})
	f.t.Cleanup(v.close)
	return v, nil
}

func (v *visitor) prove() ([]byte, error) {
	cookie, err := v.session.Hello(v.f.t.Context(), v.f.addr())
	if err != nil {
		return nil, err
	}
	return cookie, v.Prove(v.f.t.Context(), cookie)
}

// enter is a visit that has proved its address.
func (f *farEnd) enter(bytes int64) *visitor {
	f.t.Helper()
	v, err := f.visit(bytes)
	if err == nil {
		_, err = v.prove()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}

// reverse is a stream of n packets of 500 octets, a millisecond apart.
func reverse(id uint16, n int) udp.Start {
	return udp.Start{ID: id, Direction: sample.Reverse, Idle: udp.MinIdle, Plan: stream.Plan{
		Segments: []stream.Segment{{PayloadBytes: 500, Burst: 1, Bursts: n, Interval: time.Millisecond}},
	}}
}

// asks waits for an address of any loopback network that gets what was not asked for:
// the attacker's own socket, which is bound to all of them.
func (a *attacker) received(t *testing.T, wait time.Duration) (packets [][]byte) {
	t.Helper()
	if err := a.packet.SetReadDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	for {
		b := make([]byte, 2048)
		n, _, _, err := a.packet.ReadFrom(b)
		if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			return packets
		}
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, b[:n])
	}
}

// refusalOf is the one in an error.
func refusalOf(t *testing.T, err error) *control.Refusal {
	t.Helper()
	r, ok := errors.AsType[*control.Refusal](err)
	if !ok {
		t.Fatalf("error %v, want a refusal", err)
	}
	return r
}

func (f *farEnd) discarded() (n uint64) {
	for _, k := range f.r.Status().Discarded {
		n += k
	}
	return n
}
