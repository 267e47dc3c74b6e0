package abuse

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/tests/await"
)

// freeClient is a client that sends any message at any time.
type freeClient struct {
	t        *testing.T
	f        *remoteEnd
	conn     *tls.Conn
	in       *bufio.Reader
	session  uint64 // its number
	endpoint *stream.Endpoint
	stream   *stream.Session
	left     int64 // of the token's quota, at the start of the session
}

// freeClient connects a freeClient; the load server accepts the connection.
func (f *remoteEnd) freeClient() *freeClient {
	f.t.Helper()
	c, err := tls.Dial("tcp", f.addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	s := &freeClient{t: f.t, f: f, conn: c, in: bufio.NewReader(c)}
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: %s\r\nAuthorization: Bearer %s\r\n\r\n", loadcontrol.Path, loadcontrol.Protocol, f.token)
	reply, err := http.ReadResponse(s.in, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = reply.Body.Close() // it has none
	if reply.StatusCode != http.StatusSwitchingProtocols {
		f.t.Fatal(reply.Status)
	}
	m := s.receive()
	if m == nil || m.Welcome == nil {
		f.t.Fatalf("got %+v, want a welcome", m)
	}
	s.left = m.Welcome.Limits.LeftToday
	return s
}

func (s *freeClient) send(m loadcontrol.Message) {
	s.t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		s.t.Fatal(err)
	}
	s.frame(b, nil)
}

func (s *freeClient) frame(message, data []byte) {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(message)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	_, _ = s.conn.Write(append(append(b, message...), data...)) // the server may have closed the connection
}

// receive returns the next message; nil: the connection has ended.
func (s *freeClient) receive() *loadcontrol.Message {
	s.t.Helper()
	if err := s.conn.SetReadDeadline(time.Now().Add(await.Timeout)); err != nil {
		s.t.Fatal(err)
	}
	var head [8]byte
	if _, err := io.ReadFull(s.in, head[:]); err != nil {
		return nil
	}
	payload := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(s.in, payload); err != nil {
		return nil
	}
	if _, err := io.CopyN(io.Discard, s.in, int64(binary.BigEndian.Uint32(head[4:]))); err != nil { // records
		return nil
	}
	var m loadcontrol.Message
	if err := json.Unmarshal(payload, &m); err != nil {
		s.t.Fatal(err)
	}
	return &m
}

// want receives until a message of the given kind, in word's terms; another one before it, except of the running
// transfer, fails the test.
func (s *freeClient) want(kind string) {
	s.t.Helper()
	for {
		got := word(s.receive())
		if got == kind {
			return
		}
		if got != "finished" {
			s.t.Fatalf("got %s, want %s", got, kind)
		}
	}
}

// word is the kind of a message.
func word(m *loadcontrol.Message) string {
	switch {
	case m == nil:
		return "end"
	case m.Refusal != nil:
		return "session: " + string(m.Refusal.Reason)
	case m.Opened != nil:
		return "opened"
	case m.Traffic == nil:
		return "other"
	case m.Traffic.Name != "refused":
		return m.Traffic.Name
	}
	r := body[loadcontrol.Refusal](m)
	switch r.ID {
	case marker:
		return "marker"
	case 0:
		return "refused: " + string(r.Reason)
	default:
		return "transfer: " + string(r.Reason)
	}
}

// body is the content of the traffic's message; the zero value if it has none.
func body[B any](m *loadcontrol.Message) (b B) {
	if m != nil && m.Traffic != nil {
		_ = json.Unmarshal(m.Traffic.Body, &b)
	}
	return b
}

// traffic makes a message of the traffic.
func traffic(name string, content any) loadcontrol.Message {
	b, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return loadcontrol.Message{Traffic: &loadcontrol.TrafficMessage{Name: name, Body: b}}
}

// marker is the number of an invalid transfer: a session that continues refuses it, without another effect.
const marker = 9999

func mark() loadcontrol.Message { return traffic("start", udptraffic.Start{ID: marker}) }

func opening() loadcontrol.Message {
	return loadcontrol.Message{Open: &loadcontrol.Open{Traffic: udptraffic.Name, Test: "saturation", Run: "orders", Bytes: 1 << 20, Duration: time.Minute}}
}

func (s *freeClient) open() {
	s.t.Helper()
	s.send(opening())
	m := s.receive()
	if m == nil || m.Opened == nil {
		s.t.Fatalf("got %s: %+v, want opened", word(m), m)
	}
	var reply udptraffic.Reply
	if err := json.Unmarshal(m.Opened.Reply, &reply); err != nil {
		s.t.Fatal(err)
	}
	s.session = reply.Session
	s.endpoint, s.stream = s.f.listen(s.session)
}

// listen opens a client's socket for packets of a session.
func (f *remoteEnd) listen(session uint64) (*stream.Endpoint, *stream.Session) {
	f.t.Helper()
	e, err := stream.Open(stream.Options{Local: netip.AddrPortFrom(f.addr().Addr(), 0)})
	if err != nil {
		f.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(f.t.Context()) }()
	f.t.Cleanup(func() {
		e.Close()
		if err := <-ended; err != nil {
			f.t.Errorf("endpoint: %v", err)
		}
	})
	return e, e.Join(session)
}

func (s *freeClient) proof() loadcontrol.Message {
	s.t.Helper()
	cookie, err := s.stream.Hello(s.t.Context(), s.f.addr())
	if err != nil {
		s.t.Fatal(err)
	}
	return traffic("prove", udptraffic.Prove{Cookie: cookie})
}

// order requests a transfer of n packets of 500 bytes, 1 ms apart.
func order(id uint16, d sample.Direction, n int) loadcontrol.Message {
	t := reverse(id, n)
	t.Direction = d
	return traffic("start", t)
}
