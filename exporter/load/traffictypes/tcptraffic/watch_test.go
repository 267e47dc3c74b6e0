package tcptraffic

import (
	"testing"
	"time"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffic"
)

// Packets of the UDP part of a session and payload do not keep a transfer whose control connection is silent; a queue and an
// interruption of the path, after which TCP takes as long again, do for their time.
func TestControlConnectionThatIsSilentAloneEndsATransfer(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	for name, c := range map[string]struct { // held -1: payload is acknowledged
		control, others, begun, recovered float64 // seconds; begun and recovered may be 0: none
		held, now                         float64
		what                              loadcontrol.Silent
		limit                             time.Duration
		silent                            bool
	}{
		"all comes":                                  {20, 20, 5, 0, 0, 21, loadcontrol.SilentControl, 10 * time.Second, false},
		"nothing comes":                              {20, 19, 5, 0, 0, 30.1, loadcontrol.SilentAll, 10 * time.Second, true},
		"no message comes":                           {20, 30, 5, 0, 0, 30.1, loadcontrol.SilentControl, 10 * time.Second, true},
		"none comes yet after the begin":             {20, 40, 35, 0, 0, 40.1, loadcontrol.SilentControl, 10 * time.Second, false},
		"none comes, and no transfer runs":           {20, 40, 0, 0, 0, 40.1, loadcontrol.SilentControl, 10 * time.Second, false},
		"none comes after an interruption":           {20, 40, 5, 38, 0, 40.1, loadcontrol.SilentControl, 10 * time.Second, false},
		"none came since an interruption":            {20, 48, 5, 38, 0, 48.1, loadcontrol.SilentControl, 10 * time.Second, true},
		"none comes through a queue of 4 s":          {20, 37, 5, 0, 4, 37.9, loadcontrol.SilentControl, 18 * time.Second, false},
		"none came through a queue of 4 s":           {20, 38, 5, 0, 4, 38.1, loadcontrol.SilentControl, 18 * time.Second, true},
		"nothing comes, and payload is acknowledged": {20, 19, 5, 0, -1, 30.1, loadcontrol.SilentProcess, 10 * time.Second, true},
	} {
		e := evidence{control: at(c.control), others: at(c.others), held: time.Duration(c.held * float64(time.Second)), limit: traffic.IdleTimeout}
		if c.held < 0 {
			e.held, e.moved = 0, at(c.now-1)
		}
		if c.begun > 0 {
			e.begun = at(c.begun)
		}
		if c.recovered > 0 {
			e.recovered = at(c.recovered)
		}
		if what, limit, silent := e.silence(at(c.now)); what != c.what || limit != c.limit || silent != c.silent {
			t.Errorf("%s: %q, %v, silent %v; want %q, %v, %v", name, what, limit, silent, c.what, c.limit, c.silent)
		}
	}
}

// udp is a part of a session whose hello packets show how long the path holds packets back.
type udp struct {
	held time.Duration
	due  time.Time
}

func (*udp) LastReceived() time.Time { return time.Time{} }
func (u *udp) HeldBack(_, due time.Time, _ time.Duration) time.Duration {
	u.due = due
	return u.held
}

// The control connection has not been used since the queue is long: its own round trip does not tell.
func TestReplyToAHelloShowsTheQueueThatHoldsBackTheControlConnection(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	now := begin.Add(40 * time.Second)
	for _, held := range []time.Duration{0, 20 * time.Second} {
		u := &udp{held: held}
		e := evidence{control: begin, others: now, begun: begin.Add(time.Second), limit: traffic.IdleTimeout, held: time.Millisecond}
		e.holdBack(now, u)
		if what, limit, silent := e.silence(now); silent != (held == 0) || what != loadcontrol.SilentControl || !u.due.Equal(e.begun) {
			t.Errorf("held back for %v: %q, silent %v after %v, due since %v", held, what, silent, limit, u.due)
		}
	}
	e, u := evidence{control: begin, others: now, limit: traffic.IdleTimeout}, &udp{}
	if e.holdBack(now, u); !u.due.IsZero() {
		t.Error("hello packets are sent without a transfer")
	}
}
