package chrony

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/tests/await"
	"oneway.example/tests/testseed"
)

// falseDaemon is a chronyd on a real socket that can send false replies.
type falseDaemon struct {
	t           *testing.T
	network, at string
	daemon      *daemon // source of the correct replies
	received    atomic.Int64

	mu         sync.Mutex
	conn       net.PacketConn
	falseReply falseReply // nil: none
	client     net.Addr
	before     []byte // the previous correct reply
}

// falseReply is a false reply.
type falseReply func(l *falseDaemon, request, correct []byte, to net.Addr)

func newFalseDaemon(t *testing.T, network string) *falseDaemon {
	t.Helper()
	l := &falseDaemon{t: t, network: network, daemon: newDaemon(clocktest.NewClock())}
	switch network {
	case "unixgram":
		dir, err := os.MkdirTemp("", "false") // short: the path of a socket has at most 107 bytes
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		l.at = filepath.Join(dir, "chronyd.sock")
	case "udp4":
		l.at = "127.0.0.1:0"
	case "udp6":
		l.at = "[::1]:0"
	}
	l.open()
	t.Cleanup(l.close)
	return l
}

// open starts to reply, at the address of the previous socket.
func (l *falseDaemon) open() {
	l.t.Helper()
	if l.network == "unixgram" {
		_ = os.Remove(l.at) // of the previous socket
	}
	conn, err := net.ListenPacket(l.network, l.at)
	if err != nil {
		l.t.Fatal(err)
	}
	l.mu.Lock()
	l.conn, l.at = conn, conn.LocalAddr().String()
	l.mu.Unlock()
	go l.serve(conn)
}

func (l *falseDaemon) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.Close() // it may be closed already
}

func (l *falseDaemon) setReply(falseReply falseReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.falseReply = falseReply
}

func (l *falseDaemon) serve(conn net.PacketConn) {
	q := make([]byte, 2048)
	for {
		n, from, err := conn.ReadFrom(q)
		if err != nil {
			return
		}
		l.received.Add(1)
		correct := l.daemon.reply(q[:n])
		l.mu.Lock()
		falseReply := l.falseReply
		l.client = from
		l.mu.Unlock()
		if falseReply == nil {
			falseReply = once
		}
		falseReply(l, q[:n], bytes.Clone(correct), from)
		l.before = correct
	}
}

func once(l *falseDaemon, _, correct []byte, to net.Addr) { l.send(correct, to) }

func (l *falseDaemon) send(b []byte, to net.Addr) {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	_, _ = conn.WriteTo(b, to) // the client may have closed its socket
}

// watched is a monitor with a short interval and a short lifetime of replies.
func (l *falseDaemon) watched() (*Monitor, *metrictest.Sink, *clocktest.Log) {
	l.t.Helper()
	address := "udp://" + l.at
	if l.network == "unixgram" {
		address = "unix://" + l.at
	}
	sink, log := &metrictest.Sink{}, &clocktest.Log{}
	m, err := New(Options{
		Address: address, Sink: sink, Log: slog.New(slog.NewTextHandler(log, nil)),
		Interval: falseDaemonInterval, maxBackOff: falseDaemonInterval, silentAfter: 700 * time.Millisecond, holdDown: time.Millisecond,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(clocktest.Start(l.t, m.Run, nil))
	return m, sink, log
}

const falseDaemonInterval = 20 * time.Millisecond

// altered is a correct reply to tracking with a change.
func altered(change func(b []byte)) falseReply {
	return func(l *falseDaemon, _, correct []byte, to net.Addr) {
		if len(correct) == replyHeadBytes+76 {
			change(correct)
		}
		l.send(correct, to)
	}
}

func figure(at int, v float64) falseReply {
	return altered(func(b []byte) { binary.BigEndian.PutUint32(b[at:], wireFloat(v)) })
}

func referenceTime(at func() time.Time) falseReply {
	return altered(func(b []byte) {
		t := at()
		binary.BigEndian.PutUint32(b[56:], uint32(t.Unix()>>32))
		binary.BigEndian.PutUint32(b[60:], uint32(t.Unix()))
	})
}

func in(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }

// falseReplies are false replies, the reason that counts them ("": accepted), and the resulting state.
func falseReplies(random *rand.Rand) map[string]struct {
	falseReply falseReply
	reason     string
	state      clock.State
} {
	type row = struct {
		falseReply falseReply
		reason     string
		state      clock.State
	}
	return map[string]row{
		"another request's number": {altered(func(b []byte) { b[18]++ }), "wrong_sequence", clock.Silent},
		"another command's reply":  {altered(func(b []byte) { b[5], b[7] = commandSources, 2 }), "malformed", clock.Silent},
		"every truncation": {func(l *falseDaemon, _, correct []byte, to net.Addr) {
			for n := range correct { // more than are read
				l.send(correct[:n], to)
			}
		}, "flood", clock.Silent},
		"a truncation": {func(l *falseDaemon, _, correct []byte, to net.Addr) { l.send(correct[:random.IntN(len(correct))], to) }, "truncated", clock.Silent},
		"64 KiB": {func(l *falseDaemon, _, correct []byte, to net.Addr) {
			l.send(append(correct, make([]byte, 65000)...), to)
		}, "oversized", clock.Silent},
		"an endless flood": {func(l *falseDaemon, _, correct []byte, to net.Addr) {
			correct[18]++
			for range 2000 {
				l.send(correct, to)
			}
		}, "flood", clock.Silent},
		"nothing": {func(*falseDaemon, []byte, []byte, net.Addr) {}, "timeout", clock.Silent},
		"always too late": {func(l *falseDaemon, _, correct []byte, to net.Addr) {
			time.AfterFunc(queryTimeout+200*time.Millisecond, func() { l.send(correct, to) })
		}, "timeout", clock.Silent},
		"the reply before": {func(l *falseDaemon, _, _ []byte, to net.Addr) { l.send(l.before, to) }, "wrong_sequence", clock.Silent},
		"two false replies in turn": {func(l *falseDaemon, _, correct []byte, to net.Addr) {
			if correct[53] = 17; l.received.Load()%2 == 0 {
				correct[9] = 2
			}
			l.send(correct, to)
		}, "refused", clock.Silent},
		"a refusal":           {altered(func(b []byte) { b[9] = 2 }), "refused", clock.Silent},
		"leap status 4":       {altered(func(b []byte) { b[55] = 4 }), "implausible", clock.Silent},
		"stratum 17":          {altered(func(b []byte) { b[53] = 17 }), "implausible", clock.Silent},
		"negative dispersion": {figure(96, -1e-3), "implausible", clock.Silent},
		"no dispersion":       {figure(96, 0), "implausible", clock.Silent},
		// Its skew and residual frequency are 2.5 ppm together: 9 ms in an hour.
		"less dispersion than there must be": {referenceTime(in(-time.Hour)), "implausible", clock.Silent},
		"the largest dispersion":             {figure(96, 4e18), "implausible", clock.Silent},
		"the largest offset":                 {figure(68, -4e18), "implausible", clock.Silent},
		"negative skew":                      {figure(88, -1), "implausible", clock.Silent},
		"a reference time in an hour":        {referenceTime(in(time.Hour)), "implausible", clock.Silent},
		"a reference time in 200 years":      {referenceTime(in(200 * 365 * 24 * time.Hour)), "implausible", clock.Silent},
		"a reference time beyond all":        {altered(func(b []byte) { copy(b[56:64], "\xff\xff\xff\xff\xff\xff\xff\xff") }), "implausible", clock.Silent},
		"stratum 0":                          {altered(func(b []byte) { b[53] = 0 }), "", clock.Unsynchronized},
		"stratum 16":                         {altered(func(b []byte) { b[53] = 16 }), "", clock.Unsynchronized},
		"leap status 3":                      {altered(func(b []byte) { b[55] = 3 }), "", clock.Unsynchronized},
		"no reference":                       {altered(func(b []byte) { clear(b[28:32]) }), "", clock.Unsynchronized},
		"twice":                              {func(l *falseDaemon, _, correct []byte, to net.Addr) { l.send(correct, to); l.send(correct, to) }, "", clock.Synchronized},
		"an offset of 10 s":                  {figure(68, 10), "", clock.Synchronized},
	}
}

// A daemon with false replies is not trusted: they are counted by reason, logged once at the beginning and once at the end,
// requests do not get more frequent, and a correct daemon is trusted again at once.
func TestDaemonWithFalseRepliesIsNotTrusted(t *testing.T) {
	for _, network := range []string{"unixgram", "udp4", "udp6"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			l := newFalseDaemon(t, network)
			m, sink, log := l.watched()
			correct := func(when string) {
				t.Helper()
				l.setReply(nil)
				if !await.Within(20*time.Second, state(m, clock.Synchronized)) {
					t.Fatalf("%s: %+v", when, m.Quality(instant.Now()))
				}
				asked := l.received.Load() // datagrams received before have been dropped
				await.Within(20*time.Second, func() bool { return l.received.Load() > asked+2 })
			}
			correct("at first")
			for name, c := range falseReplies(rand.New(rand.NewPCG(testseed.Of(t), 0))) {
				log.Take()
				before, began := l.received.Load(), time.Now()
				l.setReply(c.falseReply)
				if c.reason == "" && c.state == clock.Synchronized { // until its reply is used
					await.Within(20*time.Second, func() bool { return l.received.Load() > before+3 })
				}
				if !await.Within(20*time.Second, state(m, c.state)) {
					t.Fatalf("%s: %+v, want %v", name, m.Quality(instant.Now()), c.state)
				}
				if q := m.Quality(instant.Now()); name == "an offset of 10 s" && q.Bound.Error < 10*time.Second {
					t.Errorf("%s: %+v", name, q)
				}
				// Its sources are requested once, too.
				if n, most := l.received.Load()-before, int64(time.Since(began)/falseDaemonInterval)+8; n > most {
					t.Errorf("%s: %d requests in %v, want %d at most", name, n, time.Since(began), most)
				}
				correct("after " + name)
				said := log.Take()
				lines, want := strings.Count(said, "\n"), 0
				if c.reason != "" {
					want = 2
					if name == "two false replies in turn" {
						want = 3
					}
					if n, _ := sink.Value(metric.ClockQueryFailures, Name, c.reason); n == 0 || !strings.Contains(said, "reason="+c.reason) {
						t.Errorf("%s: %v failures are counted as %s; the log:\n%s", name, n, c.reason, said)
					}
				}
				if lines != want {
					t.Errorf("%s: want %d lines in the log:\n%s", name, want, said)
				}
			}
			l.close()
			if !await.Within(20*time.Second, state(m, clock.Silent)) {
				t.Error("closed: still synchronized")
			}
			l.open()
			correct("after it was closed")
		})
	}
}

// Replies of another process that knows all requests are ignored on both kinds of sockets.
func TestReplyFromElsewhereIsNotTakenForChronyds(t *testing.T) {
	for _, network := range []string{"unixgram", "udp4", "udp6"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			l := newFalseDaemon(t, network)
			at := map[string]string{"unixgram": l.at + "2", "udp4": "127.0.0.1:0", "udp6": "[::1]:0"}[network]
			other, err := net.ListenPacket(network, at)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			var tried, taken atomic.Int64
			l.setReply(func(l *falseDaemon, _, correct []byte, to net.Addr) {
				if _, err := other.WriteTo(correct, to); err == nil {
					taken.Add(1)
				}
				tried.Add(1)
			})
			m, sink, _ := l.watched()
			if !await.Within(20*time.Second, func() bool { return tried.Load() > 4 }) {
				t.Fatalf("%d requests", tried.Load())
			}
			if q := m.Quality(instant.Now()); q.State != clock.Silent {
				t.Errorf("%+v; %d replies of another process were sent", q, taken.Load())
			}
			if n, _ := sink.Value(metric.ClockQueryFailures, Name, "timeout"); n == 0 {
				t.Errorf("failures: %v, want timeouts", sink.Present(metric.ClockQueryFailures.Name))
			}
			l.setReply(nil)
			if !await.Within(20*time.Second, state(m, clock.Synchronized)) {
				t.Error("chronyd's own replies are not used")
			}
		})
	}
}

// In a directory that all users can write to, any user may have created the socket.
func TestSocketInADirectoryWritableByAllIsNotUsed(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o777 | os.ModeSticky, 0o702} {
		l := newFalseDaemon(t, "unixgram")
		dir := filepath.Dir(l.at)
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		m, sink, log := l.watched()
		if !await.Within(20*time.Second, func() bool {
			n, _ := sink.Value(metric.ClockQueryFailures, Name, "unreachable")
			return n > 3
		}) {
			t.Errorf("mode %v: failures %v", mode, sink.Present(metric.ClockQueryFailures.Name))
		}
		said := log.Take()
		if m.Quality(instant.Now()).State != clock.Silent || l.received.Load() > 0 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "everybody can write to "+dir) {
			t.Errorf("mode %v: %v, %d requests; the log:\n%s", mode, m.Quality(instant.Now()).State, l.received.Load(), said)
		}
		if err := os.Chmod(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		if !await.Within(20*time.Second, state(m, clock.Synchronized)) {
			t.Errorf("after mode %v: %v", mode, m.Quality(instant.Now()))
		}
	}
}
