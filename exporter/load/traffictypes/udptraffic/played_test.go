package udptraffic

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffic"
	"oneway.example/tests/remoteend"
)

// converse returns a control connection over loopback to a load server that follows a script.
func converse(t *testing.T, script func(*loadcontrol.Conn)) *loadcontrol.Client {
	t.Helper()
	var scripts sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scripts.Add(1)
		defer scripts.Done()
		c, err := loadcontrol.Accept(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_ = c.Write(loadcontrol.Message{Welcome: &loadcontrol.Welcome{}}) // its error is the end of the connection
		script(c)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	c, err := loadcontrol.Dial(t.Context(), loadcontrol.ClientOptions{Address: server.Listener.Addr().String(), Pin: loadcontrol.PinOf(server.Certificate())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		server.Close()
		scripts.Wait()
	})
	return c
}

// host is a traffic.Host with a control connection; it records the calls and sends the messages to the
// client.
type host struct {
	conn  *loadcontrol.Conn
	local netip.AddrPort

	mu       sync.Mutex
	limits   loadcontrol.Limits
	revoked  bool
	left     int64
	moved    [2]int64
	counted  [2]int // calls of CountBytes
	sendErr  error  // of SendMessage
	headers  int64
	begun    int
	until    time.Time
	refusals []loadcontrol.Reason
	spent    []time.Duration // duration of permitted traffic
	ended    chan error      // capacity 1
}

func newHost() *host { return &host{left: 1 << 40, ended: make(chan error, 1)} }

func (h *host) Local() netip.AddrPort  { return h.local }
func (h *host) Remote() netip.AddrPort { return h.conn.Remote() }
func (h *host) Limits() (loadcontrol.Limits, *loadcontrol.Refusal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.revoked {
		return loadcontrol.Limits{}, &loadcontrol.Refusal{Reason: loadcontrol.Unauthorized}
	}
	return h.limits, nil
}

// ConsumeRate draws from a full bucket each time: only a load server has the state of tokens.
func (h *host) ConsumeRate(_ sample.Direction, lasts time.Duration, draw traffic.Consume) *loadcontrol.Refusal {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.limits.BytesPerSecond > 0 {
		if _, err := draw(full(h.limits.BytesPerSecond)); err != nil {
			return &loadcontrol.Refusal{Reason: loadcontrol.RateLimit, Detail: err.Error(), RetryAfter: time.Second}
		}
	}
	h.spent = append(h.spent, lasts)
	return nil
}

// full returns a full bucket like that of the load server.
func full(rate float64) traffic.Bucket {
	depth := max(256<<10, rate/10)
	return traffic.Bucket{Level: depth, Depth: depth, Rate: rate}
}

func (h *host) Take(bytes int64) *loadcontrol.Refusal {
	h.mu.Lock()
	defer h.mu.Unlock()
	if bytes > h.left {
		return loadcontrol.Reject("more than was announced")
	}
	h.left -= bytes
	return nil
}

func (h *host) CountBytes(d sample.Direction, payload, headers int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moved[d] += payload
	h.counted[d]++
	h.headers += headers
}

func (h *host) CountTransfer()          { h.mu.Lock(); h.begun++; h.mu.Unlock() }
func (h *host) SetBusy(until time.Time) { h.mu.Lock(); h.until = until; h.mu.Unlock() }
func (h *host) busy() time.Time         { h.mu.Lock(); defer h.mu.Unlock(); return h.until }
func (h *host) SendMessage(name string, body any, data []byte) error {
	h.mu.Lock()
	err := h.sendErr
	h.mu.Unlock()
	if err != nil {
		return err
	}
	return h.conn.SendMessage(name, body, data)
}

func (h *host) SendRefusal(name string, r *loadcontrol.Refusal) error {
	h.mu.Lock()
	h.refusals = append(h.refusals, r.Reason)
	h.mu.Unlock()
	return h.conn.SendMessage(name, r, nil)
}

func (h *host) End(why error) {
	select {
	case h.ended <- why:
	default:
	}
	if h.conn == nil {
		return
	}
	go h.conn.Close()
}

func (h *host) Listen(net.ListenConfig) (net.Listener, error) { panic("UDP needs no further socket") }

// newRemote returns the remote half on loopback.
func newRemote(t *testing.T) *remote {
	t.Helper()
	f := NewType().New(traffic.Env{
		Log: slog.New(slog.DiscardHandler), Clock: static.New(time.Millisecond, metric.Discard{}),
		Allowed: func(a netip.Addr) bool { return a != netip.MustParseAddr("127.0.0.66") },
	}).(*remote)
	shut, err := f.Listen(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shut)
	return f
}

// peer is a client with an open session, and its remote end.
type peer struct {
	*Client
	t        *testing.T
	host     *host
	serving  *serving
	endpoint *stream.Endpoint
	session  *stream.Session
}

// meet opens a session with a running remote half.
func meet(t *testing.T, f *remote, h *host) *peer {
	t.Helper()
	p := &peer{t: t, host: h}
	opened := make(chan *serving, 1)
	over := converse(t, func(c *loadcontrol.Conn) {
		h.conn, h.local = c, f.open()[0].LocalAddr()
		m, _, err := c.Read(t.Context())
		if err != nil || m.Open == nil {
			t.Errorf("got %+v, %v, want open", m, err)
			return
		}
		s, reply, refusal := f.Open(h, m.Open.Parameters)
		if refusal != nil {
			_ = c.Refuse(refusal) // as below
			return
		}
		opened <- s.(*serving)
		defer s.Close()
		for err = c.SendOpened(reply); err == nil; {
			if m, _, err = c.Read(t.Context()); err != nil {
				return
			}
			if refusal := s.Handle(m.Traffic); refusal != nil {
				_ = c.Refuse(refusal) // the client may have closed
				return
			}
		}
	})
	var err error
	if p.Client, err = Open(t.Context(), over, loadcontrol.Open{Run: "r", Bytes: 1, Duration: time.Second}); err != nil {
		t.Fatal(err)
	}
	p.serving = <-opened
	p.endpoint = remoteend.Endpoint(t, netip.MustParseAddr("127.0.0.1"))
	p.session = p.endpoint.Join(p.Reply.Session)
	return p
}

// running returns a remote half whose sockets are read.
func running(t *testing.T) *remote {
	t.Helper()
	f := newRemote(t)
	ran := make(chan error, 1)
	go func() { ran <- f.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	return f
}

// at returns the test port of the remote end.
func (p *peer) at() netip.AddrPort {
	return netip.AddrPortFrom(p.Remote().Addr(), p.Reply.Port)
}

func (p *peer) prove() error {
	cookie, err := p.session.Hello(p.t.Context(), p.at())
	if err != nil {
		return err
	}
	return p.Prove(p.t.Context(), cookie)
}

// ready returns a peer with a proved address.
func ready(t *testing.T) *peer {
	t.Helper()
	p := meet(t, running(t), newHost())
	if err := p.prove(); err != nil {
		t.Fatal(err)
	}
	return p
}

// startOf returns a transfer of 100 packets of 500 bytes, 1 ms apart.
func startOf(id uint16, d sample.Direction) Start {
	return Start{ID: id, Direction: d, Idle: MinIdle, Plan: remoteend.Plan()}
}

// words returns a message with this content.
func words(t *testing.T, name string, body any) *loadcontrol.TrafficMessage {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return &loadcontrol.TrafficMessage{Name: name, Body: bytes.Clone(b)}
}
