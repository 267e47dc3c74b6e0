package abuse

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/link"
	"oneway.example/tests/await"
	"oneway.example/tests/remoteend"
)

// remoteEnd is a load server under attack.
type remoteEnd struct {
	t     *testing.T
	r     *loadserver.LoadServer
	links *link.Table
	o     loadserver.Options
	token string
	stop  func()
}

// startLoadServer runs one with a token of these limits; sessions or goroutines left at the end fail the test.
func startLoadServer(t *testing.T, limits loadcontrol.Limits) *remoteEnd {
	t.Helper()
	return startLoadServerAt(t, "127.0.0.1", limits)
}

// startLoadServerAt runs one at that address.
func startLoadServerAt(t *testing.T, at string, limits loadcontrol.Limits) *remoteEnd {
	t.Helper()
	remoteend.NothingLeft(t)
	dir := t.TempDir()
	f := &remoteEnd{t: t, o: loadserver.Options{
		Listen: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(at), 0)}, StateDir: dir, TokensFile: filepath.Join(dir, "tokens"),
	}}
	token, text, err := loadserver.NewToken("client", limits)
	if err != nil {
		t.Fatal(err)
	}
	if err := loadserver.AppendToken(f.o.TokensFile, token); err != nil {
		t.Fatal(err)
	}
	f.token = text
	f.links = link.NewTable(nil)
	f.run()
	return f
}

// run starts it, also after stop.
func (f *remoteEnd) run() {
	f.t.Helper()
	r, err := loadserver.New(f.o, loadserver.Env{
		Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: f.links, Traffic: traffictypes.All(),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.r, f.stop = r, await.Serving(f.t, r)
}

func (f *remoteEnd) addr() netip.AddrPort { return f.r.Addrs()[0] }

func (f *remoteEnd) dial(token string) (*loadcontrol.Client, error) {
	return loadcontrol.Dial(f.t.Context(), loadcontrol.ClientOptions{Address: f.addr().String(), Pin: f.r.Pin(), Token: token})
}

// testClient is a client with an open session.
type testClient struct {
	*udptraffic.Client
	f        *remoteEnd
	endpoint *stream.Endpoint
	session  *stream.Session
	close    func()
}

// visit opens a session; the caller or the end of the test closes it.
func (f *remoteEnd) visit(bytes int64) (*testClient, error) {
	c, err := f.dial(f.token)
	if err != nil {
		return nil, err
	}
	v := &testClient{f: f}
	if v.Client, err = udptraffic.Open(f.t.Context(), c, loadcontrol.Open{Test: "saturation", Run: "abuse", Bytes: bytes, Duration: time.Minute}); err != nil {
		c.Close()
		return nil, err
	}
	if v.endpoint, err = stream.Open(stream.Options{Local: netip.AddrPortFrom(f.addr().Addr(), 0)}); err != nil {
		c.Close()
		return nil, err
	}
	v.session = v.endpoint.Join(v.Reply.Session)
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

func (v *testClient) prove() ([]byte, error) {
	cookie, err := v.session.Hello(v.f.t.Context(), v.f.addr())
	if err != nil {
		return nil, err
	}
	return cookie, v.Prove(v.f.t.Context(), cookie)
}

// enter is a visit that has proved its address.
func (f *remoteEnd) enter(bytes int64) *testClient {
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

// reverse is a stream of n packets of 500 bytes, 1 ms apart.
func reverse(id uint16, n int) udptraffic.Start {
	return udptraffic.Start{ID: id, Direction: sample.Reverse, Idle: udptraffic.MinIdle, Plan: stream.Plan{
		Segments: []stream.Segment{{PayloadBytes: 500, Burst: 1, Bursts: n, Interval: time.Millisecond}},
	}}
}

// received waits for packets to the attacker's socket, which is bound to all loopback addresses: unsolicited packets.
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

func (f *remoteEnd) discarded() (n uint64) {
	for _, k := range f.r.Status().Discarded {
		n += k
	}
	return n
}
