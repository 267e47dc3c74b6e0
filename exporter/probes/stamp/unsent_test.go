package stamp

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/target"
	"oneway.example/exporter/probes/stamp/ledger"
)

// The log has one line when a host begins to refuse packets, and one when it has accepted all for a while.
func TestRefusedPacketsAreOneLineAndTheirEndAnother(t *testing.T) {
	var log bytes.Buffer
	o := option.Defaults[target.Options]()
	peer, err := target.New(&probe.Target{Path: "p", Probe: "stamp", Peer: "192.0.2.1"}, 862, &o, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	var u lastError
	said := func(now time.Duration, err error) (line string) {
		log.Reset()
		if err != nil {
			u = lastError{err, now, calm}
		}
		peer.LogFault(unsendable, u.present(now, 2*time.Second))
		return log.String()
	}
	const second = time.Second
	for _, c := range []struct {
		at   time.Duration
		err  error
		want string
	}{
		{1 * second, nil, ""},
		{2 * second, syscall.EPERM, "operation not permitted"},
		{3 * second, syscall.EACCES, ""},
		{4 * second, nil, ""},
		{9 * second, nil, ""}, // the interval is two seconds
		{11 * second, syscall.EPERM, ""},
		{17 * second, nil, ""},
		{18 * second, nil, "is over"},
		{60 * second, nil, ""},
		{61 * second, syscall.ENOBUFS, "no buffer space"},
	} {
		if got := said(c.at, c.err); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("at %v with %v: %q, want %q", c.at, c.err, got, c.want)
		}
	}
}

// The refusal of one packet by its route, firewall or interface does not apply to the next one, which may have
// another.
func TestRefusalOfOnePacketSkipsNoOther(t *testing.T) {
	for err, want := range map[error]struct {
		why      ledger.SkipReason
		everyone bool
	}{
		syscall.EAGAIN:      {ledger.SkipBufferFull, true},
		syscall.ENOMEM:      {ledger.SkipBufferFull, true},
		syscall.ENOBUFS:     {ledger.SkipBufferFull, false},
		syscall.ENETUNREACH: {ledger.SkipUnreachable, false}, syscall.EHOSTUNREACH: {ledger.SkipUnreachable, false}, syscall.ENETDOWN: {ledger.SkipUnreachable, false},
		syscall.EADDRNOTAVAIL: {ledger.SkipNoAddress, false},
		syscall.EPERM:         {ledger.SkipRefusedByHost, false}, syscall.EACCES: {ledger.SkipRefusedByHost, false},
		syscall.EINVAL: {ledger.SkipError, false}, errors.New("other"): {ledger.SkipError, false},
	} {
		if why, everyone := skipOf(err); why != want.why || everyone != want.everyone {
			t.Errorf("%v: %v, %v; want %v, %v", err, why, everyone, want.why, want.everyone)
		}
	}
}

// An error that has ended is no reason of a silent path, neither in its status nor in a report: packets are sent without it.
func TestErrorThatHasEndedIsNoReason(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		interval, memory time.Duration
		set              func(*session)
	}{
		"refused by this host":       {second, calm, func(s *session) { s.refuse(syscall.EPERM) }},
		"refused, of a slow session": {10 * second, 30 * second, func(s *session) { s.refuse(syscall.ENETUNREACH) }},
		"closed port":                {second, rejectionMemory, func(s *session) { s.failed(syscall.ECONNREFUSED) }},
		"closed port, slow session":  {10 * second, 30 * second, func(s *session) { s.failed(syscall.ECONNREFUSED) }},
		"message of a router":        {second, rejectionMemory, func(s *session) { s.failed(tstamp.ICMPError{Type: 3, Code: 13, Err: syscall.EHOSTUNREACH}) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSessionFixture(t, time.Millisecond, func(o *Options) { o.Interval = c.interval })
			c.set(f.session)
			f.closed() // a report is of a window
			f.lastFired = f.peerError.at + c.memory
			if v := f.told(); v.peerError == nil || reportOf(*v).Error == "" || strings.Contains(v.silence(), "does not reply") {
				t.Errorf("after %v: %v, %s", c.memory, v.peerError, v.silence())
			}
			f.lastFired++ // a packet was sent
			v := f.told()
			why, _ := v.failure()
			if v.peerError != nil || reportOf(*v).Error != "" || why == lightreason.Unreachable || !strings.Contains(v.silence(), "does not reply") {
				t.Errorf("later than %v: %v, %s", c.memory, v.peerError, v.silence())
			}
		})
	}
}

// Something came back once, so that the cause of the silence is neither a missing reflector nor another key.
func TestSilenceAfterRepliesIsNoMissingReflector(t *testing.T) {
	for name, c := range map[string]struct {
		received, late uint64
		want           string
	}{
		"never":       {0, 0, "does not reply: no reflector (`oneway reflect`), a firewall, a reflector whose `allow` lacks this host, or a reflector that requires a key: the `result` of"},
		"one reply":   {1, 0, "has not replied since 2026-05-28 20:26:40 UTC (1 reply before)"},
		"replies":     {20, 3, "has not replied since 2026-05-28 20:26:40 UTC (20 replies before)"},
		"late always": {0, 7, "sent 7 replies later than loss_timeout (3s), and none in time"},
	} {
		f := newSessionFixture(t, time.Millisecond, nil)
		f.account.RoundTripsReceived, f.account.AnsweredLate, f.account.LastSuccess = c.received, c.late, f.now
		v := f.told()
		if got := v.silence(); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
		if c.received == 0 && c.late == 0 {
			v.opts.keys = append(v.opts.keys, &stampfmt.Key{})
			if got := v.silence(); !strings.Contains(got, ", or another key: ") || strings.Contains(got, "requires a key") {
				t.Errorf("%s, with a key: %s", name, got)
			}
		}
		if c.received == 0 {
			continue
		}
		v.opts.Size = 8000
		if got := v.silence(); !strings.Contains(got, c.want) || !strings.Contains(got, "an MTU of the path below") {
			t.Errorf("%s, large packets: %s; want the MTU as a cause", name, got)
		}
	}
}

// The rules of a firewall do not show a full table of connections, which has the same error.
func TestPacketsThatThisHostRefusesNameFirewallAndTableOfConnections(t *testing.T) {
	v := snapshot{peerError: os.NewSyscallError("sendmsg", syscall.EPERM)}
	for _, want := range []string{"`nft list ruleset`", "net.netfilter.nf_conntrack_max"} {
		if got := v.explained(); !strings.Contains(got, want) {
			t.Errorf("%q does not have %s", got, want)
		}
	}
}
