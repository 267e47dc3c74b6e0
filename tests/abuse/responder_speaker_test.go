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

	"oneway.example/exporter/control"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
	"oneway.example/exporter/traffic/udp"
	"oneway.example/tests/await"
)

// speaker is a client that says what it likes, when it likes.
type speaker struct {
	t        *testing.T
	f        *farEnd
	conn     *tls.Conn
	in       *bufio.Reader
	session  uint64 // its number
	endpoint *stream.Endpoint
	stream   *stream.Session
	left     int64 // of the token's day, when it came
}

// speak is one with a connection that was let in.
func (f *farEnd) speak() *speaker {
	f.t.Helper()
	c, err := tls.Dial("tcp", f.addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	s := &speaker{t: f.t, f: f, conn: c, in: bufio.NewReader(c)}
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: oneway-test/2\r\nAuthorization: Bearer %s\r\n\r\n", control.Path, f.token)
	answer, err := http.ReadResponse(s.in, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = answer.Body.Close() // it has none
	if answer.StatusCode != http.StatusSwitchingProtocols {
		f.t.Fatal(answer.Status)
	}
	m := s.hear()
	if m == nil || m.Welcome == nil {
		f.t.Fatalf("%+v, want a welcome", m)
	}
	s.left = m.Welcome.Limits.LeftToday
	return s
}

func (s *speaker) say(m control.Message) {
	s.t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		s.t.Fatal(err)
	}
	s.frame(b, nil)
}

func (s *speaker) frame(message, octets []byte) {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(message)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(octets)))
	_, _ = s.conn.Write(append(append(b, message...), octets...)) // it may be cut by now
}

// hear is the next message; nil: the connection has ended.
func (s *speaker) hear() *control.Message {
	s.t.Helper()
	if err := s.conn.SetReadDeadline(time.Now().Add(await.Patience)); err != nil {
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
	var m control.Message
	if err := json.Unmarshal(payload, &m); err != nil {
		s.t.Fatal(err)
	}
	return &m
}

// want hears until there is a message of a kind, in the words of word; what was heard before, except for what
// is under way, fails the test.
func (s *speaker) want(kind string) {
	s.t.Helper()
	for {
		got := word(s.hear())
		if got == kind {
			return
		}
		if got != "finished" {
			s.t.Fatalf("%s, want %s", got, kind)
		}
	}
}

// word is what a message is.
func word(m *control.Message) string {
	switch {
	case m == nil:
		return "end"
	case m.Refusal != nil:
		return "session: " + string(m.Refusal.Reason)
	case m.Opened != nil:
		return "opened"
	case m.Say == nil:
		return "other"
	case m.Say.Name != "refused":
		return m.Say.Name
	}
	r := body[control.Refusal](m)
	switch r.ID {
	case marker:
		return "marker"
	case 0:
		return "refused: " + string(r.Reason)
	default:
		return "transfer: " + string(r.Reason)
	}
}

// body is the content of the traffic's message; the zero value if it is none.
func body[B any](m *control.Message) (b B) {
	if m != nil && m.Say != nil {
		_ = json.Unmarshal(m.Say.Body, &b)
	}
	return b
}

// traffic is a message of the traffic's.
func traffic(name string, content any) control.Message {
	b, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return control.Message{Say: &control.Say{Name: name, Body: b}}
}

// marker is the number of a transfer that cannot be: a session that goes on refuses it, and
// nothing else changes by it.
const marker = 9999

func mark() control.Message { return traffic("start", udp.Start{ID: marker}) }

func opening() control.Message {
	return control.Message{Open: &control.Open{Traffic: udp.Name, Test: "saturate", Run: "orders", Bytes: 1 << 20, Duration: time.Minute}}
}

func (s *speaker) open() {
	s.t.Helper()
	s.say(opening())
	m := s.hear()
	if m == nil || m.Opened == nil {
		s.t.Fatalf("%s: %+v, want opened", word(m), m)
	}
	var answer udp.Answer
	if err := json.Unmarshal(m.Opened.Answer, &answer); err != nil {
		s.t.Fatal(err)
	}
	s.session = answer.Session
	s.endpoint, s.stream = s.f.listen(s.session)
}

// listen is a socket of a client's for packets of a session.
func (f *farEnd) listen(session uint64) (*stream.Endpoint, *stream.Session) {
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

func (s *speaker) proof() control.Message {
	s.t.Helper()
	cookie, err := s.stream.Hello(s.t.Context(), s.f.addr())
	if err != nil {
		s.t.Fatal(err)
	}
	return traffic("prove", udp.Prove{Cookie: cookie})
}

// order is for a transfer of n packets of 500 octets, a millisecond apart.
func order(id uint16, d sample.Direction, n int) control.Message {
	t := reverse(id, n)
	t.Direction = d
	return traffic("start", t)
}
