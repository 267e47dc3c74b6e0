package abuse

import (
	"bufio"
	"bytes"
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
)

// speaker is a client that says what it likes, when it likes.
type speaker struct {
	t        *testing.T
	f        *farEnd
	conn     *tls.Conn
	in       *bufio.Reader
	opened   control.Opened
	endpoint *stream.Endpoint
	session  *stream.Session
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
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: oneway-test/1\r\nAuthorization: Bearer %s\r\n\r\n", control.Path, f.token)
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
	s.frame(1, b)
}

func (s *speaker) frame(kind byte, payload []byte) {
	b := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload)))
	_, _ = s.conn.Write(append(b, payload...)) // it may be cut by now
}

// hear is the next message but for pings; nil: the connection has ended.
func (s *speaker) hear() *control.Message {
	s.t.Helper()
	for {
		if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			s.t.Fatal(err)
		}
		var head [5]byte
		if _, err := io.ReadFull(s.in, head[:]); err != nil {
			return nil
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(s.in, payload); err != nil {
			return nil
		}
		if head[0] != 1 {
			continue // records
		}
		var m control.Message
		if err := json.Unmarshal(payload, &m); err != nil {
			s.t.Fatal(err)
		}
		if m.Ping != nil {
			s.say(control.Message{Pong: &control.Pong{Seq: m.Ping.Seq}})
			continue
		}
		return &m
	}
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
	case m.Refusal != nil && m.Refusal.ID != 0:
		return "transfer: " + string(m.Refusal.Reason)
	case m.Refusal != nil:
		return "session: " + string(m.Refusal.Reason)
	case m.Opened != nil:
		return "opened"
	case m.Proved != nil:
		return "proved"
	case m.Started != nil:
		return "started"
	case m.Finished != nil:
		return "finished"
	case m.Pong != nil:
		return "pong"
	}
	return "other"
}

func opening() control.Message {
	return control.Message{Open: &control.Open{Version: control.Version, Kind: control.Saturate, Run: "orders", Bytes: 1 << 20}}
}

func (s *speaker) open() {
	s.t.Helper()
	s.say(opening())
	m := s.hear()
	if m == nil || m.Opened == nil {
		s.t.Fatalf("%s: %+v, want opened", word(m), m)
	}
	s.opened = *m.Opened
	s.endpoint, s.session = s.f.listen(s.opened.Session)
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
	cookie, err := s.session.Hello(s.t.Context(), s.f.addr())
	if err != nil {
		s.t.Fatal(err)
	}
	return control.Message{Prove: &control.Prove{Cookie: cookie}}
}

// order is for a transfer of n packets of 500 octets, a millisecond apart.
func order(id uint16, d sample.Direction, n int) control.Message {
	t := reverse(id, n)
	t.Direction = d
	return control.Message{Transfer: &t}
}

// states are what a session can be in, each with the way there.
var states = []struct {
	name  string
	enter func(s *speaker)
}{
	{"welcomed", func(*speaker) {}},
	{"opened", func(s *speaker) { s.open() }},
	{"proved", func(s *speaker) { s.open(); s.say(s.proof()); s.want("proved") }},
	{"sending", func(s *speaker) {
		s.open()
		s.say(s.proof())
		s.want("proved")
		s.say(order(1, sample.Reverse, 300))
		s.want("started")
	}},
	{"receiving", func(s *speaker) {
		s.open()
		s.say(s.proof())
		s.want("proved")
		t := order(1, sample.Forward, 300)
		t.Transfer.Idle = 10 * time.Second
		s.say(t)
		s.want("started")
	}},
	{"finished", func(s *speaker) {
		s.open()
		s.say(s.proof())
		s.want("proved")
		s.say(order(1, sample.Reverse, 20))
		s.want("started")
		s.want("finished")
	}},
}

// Every message in every state has one answer: what it asks for, a refusal of the transfer, after which the
// session goes on, or its end. "" is none, after which it goes on.
func TestOrderInTheWrongStateIsRefused(t *testing.T) {
	const ended = "session: bad_request"
	orders := []struct {
		name string
		say  func(s *speaker)
		want [6]string // by state
	}{
		{
			"open", func(s *speaker) { s.say(opening()) },
			[6]string{"opened", ended, ended, ended, ended, ended},
		},
		{
			"prove, no cookie", func(s *speaker) { s.say(control.Message{Prove: &control.Prove{}}) },
			[6]string{ended, "session: unproved", "session: unproved", ended, ended, "session: unproved"},
		},
		{"prove", func(s *speaker) {
			if s.session == nil {
				s.say(control.Message{Prove: &control.Prove{Cookie: make([]byte, 34)}})
				return
			}
			s.say(s.proof())
		}, [6]string{ended, "proved", "proved", ended, ended, "proved"}},
		{
			"transfer, reverse", func(s *speaker) { s.say(order(2, sample.Reverse, 5)) },
			[6]string{"transfer: bad_request", "transfer: unproved", "started", "transfer: bad_request", "started", "started"},
		},
		{
			"transfer, forward", func(s *speaker) { s.say(order(2, sample.Forward, 5)) },
			[6]string{"transfer: bad_request", "transfer: unproved", "started", "started", "transfer: bad_request", "started"},
		},
		{
			"transfer, its number again", func(s *speaker) { s.say(order(1, sample.Reverse, 5)) },
			[6]string{"transfer: bad_request", "transfer: unproved", "started", ended, ended, ended},
		},
		{
			"transfer 0", func(s *speaker) { s.say(order(0, sample.Reverse, 5)) },
			[6]string{ended, ended, ended, ended, ended, ended},
		},
		{
			"transfer, more than announced", func(s *speaker) { s.say(order(2, sample.Reverse, 10_000)) },
			[6]string{"transfer: bad_request", "transfer: unproved", "transfer: bad_request", "transfer: bad_request", "transfer: bad_request", "transfer: bad_request"},
		},
		{
			"sent, of another", func(s *speaker) { s.say(control.Message{Sent: &control.Sent{ID: 7, Packets: 1 << 40}}) },
			[6]string{},
		},
		{
			"sent", func(s *speaker) { s.say(control.Message{Sent: &control.Sent{ID: 1, Packets: 0}}) },
			[6]string{4: "finished"},
		},
		{
			"sent, less than nothing", func(s *speaker) { s.say(control.Message{Sent: &control.Sent{ID: 1, Packets: -1}}) },
			[6]string{"end", "end", "end", "end", "end", "end"},
		},
		{
			"cancel", func(s *speaker) { s.say(control.Message{Cancel: &control.Cancel{ID: 1}}) },
			[6]string{3: "finished", 4: "finished"},
		},
		{
			"cancel, of another", func(s *speaker) { s.say(control.Message{Cancel: &control.Cancel{ID: 7}}) },
			[6]string{},
		},
		{
			"an answer to no question", func(s *speaker) { s.say(control.Message{Pong: &control.Pong{Seq: 1 << 60}}) },
			[6]string{"end", "end", "end", "end", "end", "end"},
		},
		{
			"what a responder says", func(s *speaker) { s.say(control.Message{Started: &control.Started{ID: 1}}) },
			[6]string{"end", "end", "end", "end", "end", "end"},
		},
		{
			"records", func(s *speaker) { s.frame(2, bytes.Repeat([]byte{1}, 64)) },
			[6]string{"end", "end", "end", "end", "end", "end"},
		},
		{"two messages in one", func(s *speaker) {
			m := opening()
			m.Cancel = &control.Cancel{ID: 1}
			s.say(m)
		}, [6]string{"end", "end", "end", "end", "end", "end"}},
		{
			"close", func(s *speaker) { s.say(control.Message{Close: &control.Close{}}) },
			[6]string{"end", "end", "end", "end", "end", "end"},
		},
	}
	for _, at := range []string{"127.0.0.1", "::1"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			const day = 1 << 30
			f := startResponderAt(t, at, control.Limits{BytesPerDay: day})
			f.waits(t)
			for i, state := range states {
				for _, o := range orders {
					what := state.name + ", " + o.name
					s := f.speak()
					if moved := f.moved(); s.left != day-moved {
						t.Fatalf("before %s: %d octets are left of the day, want %d less than all", what, s.left, moved)
					}
					state.enter(s)
					o.say(s)
					s.say(control.Message{Ping: &control.Ping{Seq: 1}})
					if got := s.answer(o.want[i]); got != o.want[i] {
						t.Errorf("%s: %q, want %q", what, got, o.want[i])
					}
					s.conn.Close()
					f.waits(t)
				}
			}
		})
	}
}

// answer is want if that is said to an order that a ping came after, "" being nothing but the ping's
// answer; else what was said instead.
func (s *speaker) answer(want string) string {
	s.t.Helper()
	for {
		switch got := word(s.hear()); {
		case got == want, got == "pong" && want == "":
			return want
		case got != "pong" && got != "finished": // a transfer before it may end
			return got
		}
	}
}

// moved is how many octets of streams there have been.
func (f *farEnd) moved() int64 {
	s := f.r.Status()
	return s.Sent + s.Received
}

// waits returns when no session is left.
func (f *farEnd) waits(t *testing.T) {
	t.Helper()
	if !within(patience, func() bool { s := f.r.Status(); return s.Sessions == 0 && s.Connections == 0 }) {
		t.Fatalf("a session is left: %+v", f.r.Status())
	}
}
