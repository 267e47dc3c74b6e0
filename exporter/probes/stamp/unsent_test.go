package stamp

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/option"
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
	var u unsent
	said := func(now time.Duration, err error) (line string) {
		log.Reset()
		if err != nil {
			u = unsent{err, now}
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
