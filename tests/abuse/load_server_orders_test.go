package abuse

import (
	"bytes"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/tests/await"
)

// states are the states of a session, with the messages that lead to each.
var states = []struct {
	name  string
	enter func(s *freeClient)
}{
	{"welcomed", func(*freeClient) {}},
	{"opened", func(s *freeClient) { s.open() }},
	{"proved", func(s *freeClient) { s.open(); s.send(s.proof()); s.want("proved") }},
	{"sending", func(s *freeClient) {
		s.open()
		s.send(s.proof())
		s.want("proved")
		s.send(order(1, sample.Reverse, 300))
		s.want("started")
	}},
	{"receiving", func(s *freeClient) {
		s.open()
		s.send(s.proof())
		s.want("proved")
		t := reverse(1, 300)
		t.Direction, t.Idle = sample.Forward, 10*time.Second
		s.send(traffic("start", t))
		s.want("started")
	}},
	{"finished", func(s *freeClient) {
		s.open()
		s.send(s.proof())
		s.want("proved")
		s.send(order(1, sample.Reverse, 20))
		s.want("started")
		s.want("finished")
	}},
}

// Every message in every state has one reply: the requested one, a refusal of the transfer, after which the session
// continues, or the end of the session. "" is no reply, after which the session continues.
func TestMessageInTheWrongStateIsRefused(t *testing.T) {
	const ended = "session: bad_request"
	orders := []struct {
		name string
		say  func(s *freeClient)
		want [6]string // by state
	}{
		{
			"open", func(s *freeClient) { s.send(opening()) },
			[6]string{"opened", ended, ended, ended, ended, ended},
		},
		{
			"prove, no cookie", func(s *freeClient) { s.send(traffic("prove", udptraffic.Prove{})) },
			[6]string{ended, "session: unproved", "session: unproved", ended, ended, "session: unproved"},
		},
		{"prove", func(s *freeClient) {
			if s.stream == nil {
				s.send(traffic("prove", udptraffic.Prove{Cookie: make([]byte, 34)}))
				return
			}
			s.send(s.proof())
		}, [6]string{ended, "proved", "proved", ended, ended, "proved"}},
		{
			"transfer, reverse", func(s *freeClient) { s.send(order(2, sample.Reverse, 5)) },
			[6]string{ended, "transfer: unproved", "started", "transfer: bad_request", "started", "started"},
		},
		{
			"transfer, forward", func(s *freeClient) { s.send(order(2, sample.Forward, 5)) },
			[6]string{ended, "transfer: unproved", "started", "started", "transfer: bad_request", "started"},
		},
		{
			"transfer, its number again", func(s *freeClient) { s.send(order(1, sample.Reverse, 5)) },
			[6]string{ended, "transfer: unproved", "started", ended, ended, ended},
		},
		{
			"transfer 0", func(s *freeClient) { s.send(order(0, sample.Reverse, 5)) },
			[6]string{ended, ended, ended, ended, ended, ended},
		},
		{
			"transfer, more than announced", func(s *freeClient) { s.send(order(2, sample.Reverse, 10_000)) },
			[6]string{ended, "transfer: unproved", "transfer: bad_request", "transfer: bad_request", "transfer: bad_request", "transfer: bad_request"},
		},
		{
			"sent, of another", func(s *freeClient) { s.send(traffic("sent", udptraffic.Sent{ID: 7, Packets: 1 << 40})) },
			[6]string{0: ended},
		},
		{
			"sent", func(s *freeClient) { s.send(traffic("sent", udptraffic.Sent{ID: 1, Packets: 0})) },
			[6]string{0: ended, 4: "finished"},
		},
		{
			"sent, negative", func(s *freeClient) { s.send(traffic("sent", udptraffic.Sent{ID: 1, Packets: -1})) },
			[6]string{ended, ended, ended, ended, ended, ended},
		},
		{
			"cancel", func(s *freeClient) { s.send(traffic("cancel", udptraffic.Cancel{ID: 1})) },
			[6]string{0: ended, 3: "finished", 4: "finished"},
		},
		{
			"cancel, of another", func(s *freeClient) { s.send(traffic("cancel", udptraffic.Cancel{ID: 7})) },
			[6]string{0: ended},
		},
		{
			"an unknown message", func(s *freeClient) { s.send(traffic("faster", struct{}{})) },
			[6]string{ended, ended, ended, ended, ended, ended},
		},
		{
			"a message with an unknown field", func(s *freeClient) { s.send(traffic("cancel", map[string]int{"id": 1, "at": 2})) },
			[6]string{ended, ended, ended, ended, ended, ended},
		},
		{
			"a message of the load server", func(s *freeClient) { s.send(loadcontrol.Message{Opened: &loadcontrol.Opened{}}) },
			[6]string{ended, ended, ended, ended, ended, ended},
		},
		{
			"a message of the server's traffic", func(s *freeClient) { s.send(traffic("started", udptraffic.Started{ID: 1})) },
			[6]string{ended, ended, ended, ended, ended, ended},
		},
		{
			"announced records", func(s *freeClient) {
				_, _ = s.conn.Write(append([]byte{0, 0, 0, 24, 0, 16, 0, 0}, `{"traffic":{"name":"cancel"}}`[:24]...))
			},
			[6]string{ended, ended, ended, ended, ended, ended},
		},
		{
			"records", func(s *freeClient) {
				s.frame([]byte(`{"traffic":{"name":"cancel","body":{"id":1}}}`), bytes.Repeat([]byte{1}, 64))
			},
			[6]string{ended, ended, ended, ended, ended, ended},
		},
		{"two messages in one", func(s *freeClient) {
			m := opening()
			m.Close = &loadcontrol.Close{}
			s.send(m)
		}, [6]string{ended, ended, ended, ended, ended, ended}},
		{
			"close", func(s *freeClient) { s.send(loadcontrol.Message{Close: &loadcontrol.Close{}}) },
			[6]string{"end", "end", "end", "end", "end", "end"},
		},
	}
	for _, at := range []string{"127.0.0.1", "::1"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			const day = 1 << 30
			f := startLoadServerAt(t, at, loadcontrol.Limits{BytesPerDay: day})
			f.waits(t)
			for i, state := range states {
				for _, o := range orders {
					what := state.name + ", " + o.name
					s := f.freeClient()
					if moved := f.moved(); s.left != day-moved {
						t.Fatalf("before %s: remaining quota of %d bytes, want %d less than the whole", what, s.left, moved)
					}
					state.enter(s)
					o.say(s)
					s.send(mark())
					if got := s.reply(o.want[i]); got != o.want[i] {
						t.Errorf("%s: got %q, want %q", what, got, o.want[i])
					}
					s.conn.Close()
					f.waits(t)
				}
			}
		})
	}
}

// reply returns want if that is the reply to a message followed by a marker ("": only the marker's reply); otherwise
// the actual reply.
func (s *freeClient) reply(want string) string {
	s.t.Helper()
	for {
		switch got := word(s.receive()); {
		case got == want, got == "marker" && want == "":
			return want
		case got != "marker" && got != "finished": // an earlier transfer may end
			return got
		}
	}
}

// moved is the number of bytes of all streams so far.
func (f *remoteEnd) moved() int64 {
	s := f.r.Status()
	return s.Sent + s.Received
}

// waits returns when no session is open.
func (f *remoteEnd) waits(t *testing.T) {
	t.Helper()
	if !await.Within(await.Timeout, func() bool { s := f.r.Status(); return s.Sessions == 0 && s.Connections == 0 }) {
		t.Fatalf("a session is still open: %+v", f.r.Status())
	}
}
