// Package endclock is the clocks of the two ends of test traffic: the state of each, as messages between the ends have it,
// and the error bound of delays between them.
package endclock

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/hostid"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probe/calibration"
)

// State is the state of one end's clock: see clock.Quality.
type State struct {
	// At is when it was read.
	At    instant.Time  `json:"at_ns"`
	Bound time.Duration `json:"error_bound_ns"`
	// Reason is why there is no bound (METRICS.md, oneway_delay_invalid_total); "ok": it is valid.
	Reason string `json:"reason"`
	// Steps since the start: if two values differ, delays between them are invalid.
	Steps uint64 `json:"clock_steps"`
}

// Now returns the present state of this host's clock.
func Now(m clock.Monitor) State {
	at := instant.Now()
	q := m.Quality(at)
	return State{At: at, Bound: q.Bound.Error, Reason: q.Bound.Reason.String(), Steps: q.Steps}
}

// Span is one clock during a transfer.
type Span struct {
	Before State `json:"before"`
	// After has the largest bound of all samples since Before. Reason is not "ok" if one of them had no bound.
	After State `json:"after"`
	// Largest is the largest bound of all samples of this host's clock. It is absent for the load server's clock.
	Largest time.Duration `json:"largest_error_bound_ns,omitempty"`
}

// sampleEvery is the interval of a clock's samples.
const sampleEvery = 200 * time.Millisecond

// Watch samples the clock of this host from now until end is called, which must be, and returns the transfer's span.
func Watch(m clock.Monitor) (before State, end func() Span) {
	s := Span{Before: Now(m)}
	ctx, stop := context.WithCancel(context.Background())
	var sampling sync.WaitGroup
	sampling.Go(func() {
		for ctxtime.Sleep(ctx, sampleEvery) { // a change of the clock has no notification
			s.sample(m)
		}
	})
	return s.Before, func() Span {
		stop()
		sampling.Wait()
		s.sample(m)
		s.Largest = max(s.Before.Bound, s.After.Bound)
		return s
	}
}

func (s *Span) sample(m clock.Monitor) {
	now := Now(m)
	now.Bound = max(now.Bound, s.After.Bound)
	if r := s.After.Reason; r != "" && r != sample.OK.String() {
		now.Reason = r
	}
	s.After = now
}

// verdict returns the bound of one clock, with the reasons of a local one. A clock that has not settled since a step before
// the transfer was not stepped in it: it is not synchronized.
func (s Span) verdict() sample.Bound {
	before, after := reasonNamed(s.Before.Reason), reasonNamed(s.After.Reason)
	switch {
	case s.Before.Steps != s.After.Steps:
		return sample.Bound{Reason: sample.LocalStepped}
	case before == sample.LocalStepped || after == sample.LocalStepped:
		return sample.Bound{Reason: sample.LocalUnsynchronized}
	case before != sample.OK:
		return sample.Bound{Reason: before}
	case after != sample.OK:
		return sample.Bound{Reason: after}
	case min(s.Before.Bound, s.After.Bound) < 0:
		return sample.Bound{Reason: sample.BoundTooLarge} // a bound must not be negative
	}
	return sample.Bound{Error: max(s.Before.Bound, s.After.Bound), Reason: sample.OK}
}

// reasonNamed returns the reason of a name; an unknown name is sample.Unknown.
func reasonNamed(word string) sample.Reason {
	for _, r := range sample.Reasons() {
		if r.String() == word {
			return r
		}
	}
	return sample.Unknown
}

// Bound returns the error bound of both clocks during a transfer, without timestamp errors. The error of a clock is the
// largest of its bounds before, after and between. shared: both ends read one clock (package hostid).
func Bound(local, remote Span, shared bool) sample.Bound {
	l, r := local.verdict(), remote.verdict()
	switch r.Reason { // convert to the reasons of the remote end
	case sample.OK, sample.BoundTooLarge:
	case sample.LocalStepped:
		r.Reason = sample.RemoteStepped
	default:
		r.Reason = sample.RemoteUnsynchronized
	}
	if shared && bound.SharedClock(l, r) {
		return sample.Bound{Reason: sample.OK}
	}
	return bound.Clocks(l, r)
}

// Kernel is the kernel of the load server in its reply to Open: its token of package hostid under Salt.
type Kernel struct {
	Salt uint32 `json:"salt"`
	Host uint32 `json:"host"`
}

// NewKernel returns this kernel under a new salt.
func NewKernel(id hostid.ID) Kernel {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (Go 1.24)
	salt := binary.BigEndian.Uint32(b[:])
	return Kernel{Salt: salt, Host: id.Token(salt)}
}

// Here reports whether it is this kernel: then both ends read one clock.
func (k Kernel) Here() bool {
	here := hostid.Read().Token(k.Salt)
	return here != 0 && here == k.Host
}

// LocalStamps returns the timestamp errors of this host on the path to a load server; from is the address that the options
// name, if any.
func LocalStamps(ctx context.Context, table *calibration.Table, from netip.Addr, to netip.AddrPort, log *slog.Logger) bound.Host {
	iface, err := calibration.InterfaceTo(ctx, from, to)
	if err != nil {
		log.Debug("Interface of the path not found; its timestamps count as not calibrated", "err", err)
	}
	return table.Host(iface)
}

// RemoteStamps returns the timestamp errors of a load server; those of its interface are included in the clock error bound
// that it reports.
func RemoteStamps() bound.Host { return bound.Host{Conversion: bound.CardConversion, RunsOneway: true} }
