// Package target is the destination of a light probe: a host, its current address, and the interface to reach it.
//
// A probe embeds Options in its own, makes a Target from them, and follows it:
//
//	Follow -> resolve the name -> Open(address) -> Renew ... the address is no longer one of the name
//	       <-------------------- End <---------------------------------------------------------
package target

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/probe"
)

// Target is the host that a probe measures. Its methods are safe for concurrent use.
type Target struct {
	path    *probe.Target
	host    string
	port    uint16
	options *Options
	log     *slog.Logger // of the process
	lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)

	mu       sync.Mutex
	logged   map[Fault]bool     // faults that are logged and not over; nil: none so far
	why      lightreason.Reason // why the host cannot be measured now; empty: no known reason
	reason   string             // the same in words
	lookedUp error              // of the last lookup of the name; nil: it gave an address, or there was none
	outage   *outage            // nil: none so far
}

// New checks the peer of a path; the options are checked before. It resolves nothing. An error is a *option.Error.
func New(path *probe.Target, missingPort uint16, o *Options, log *slog.Logger) (*Target, error) {
	host, port, err := Host(path.Peer, missingPort)
	if err != nil {
		return nil, err
	}
	if err := o.CheckPeer(probe.PeerKey, host); err != nil {
		return nil, err
	}
	return &Target{path: path, host: host, port: port, options: o, log: log, lookup: net.DefaultResolver.LookupNetIP}, nil
}

// Log is a logger with the names of the path and its probe. It is not kept: thousands of paths log little.
func (t *Target) Log() *slog.Logger { return t.log.With("path", t.path.Path, "probe", t.path.Probe) }

// Backoff of name resolution and of opening sockets.
const (
	minRetry = time.Second
	maxRetry = 30 * time.Second
)

// Measurement measures the host at one address. Renew is called at each interval of resolution, and End, once, ends it and
// releases what Open has opened. Replies reports whether the host replies at this address; nil if that is not known. Replaced
// reports whether another host or program has taken the address, so that the measurement must begin anew; nil: never.
type Measurement struct {
	Renew, End        func()
	Replies, Replaced func() bool
}

// Open begins to measure the peer at one address.
type Open func(ctx context.Context, peer netip.AddrPort) (Measurement, error)

// Follow measures the host at its current address, and returns when that has begun. Name resolution and Open are retried
// after an error; failed is called after each failure: Unresolved is one of a name, NotSent one of an address, or of Open. When
// the measured address is no longer one of the name, the measurement ends and another one begins; an address that replies stays until several lookups in a row lack it, since name
// servers give the addresses of a name in turn. The caller calls end when ctx has ended; end is nil if nothing was measured by
// then. No goroutine waits meanwhile, since thousands would.
func (t *Target) Follow(ctx context.Context, failed func(why lightreason.Reason), open Open) (end func()) {
	f := &follower{target: t, failed: failed, open: open}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.begin(ctx, netip.AddrPort{}) {
		return nil
	}
	f.timer = time.AfterFunc(t.options.ResolveInterval, func() { f.keep(ctx) })
	return f.end
}

// follower is a host that is followed.
type follower struct {
	target *Target
	failed func(why lightreason.Reason)
	open   Open

	mu       sync.Mutex // held also while it waits for a name or a socket, which its context ends
	timer    *time.Timer
	peer     netip.AddrPort
	current  Measurement // the zero Measurement: none
	lacking  int         // lookups in a row without the address
	changes  changes
	finished bool
}

// maxLacking is how many lookups in a row may lack an address that replies.
const maxLacking = 5

// begin begins a measurement at the given address, or, if that is the zero AddrPort or fails, at one of the name: false if ctx
// ended before.
func (f *follower) begin(ctx context.Context, peer netip.AddrPort) bool {
	t := f.target
	for delay := minRetry; ctx.Err() == nil; peer = (netip.AddrPort{}) {
		var err error
		why := lightreason.NotSent
		if !peer.IsValid() {
			if peer, err = t.resolveLogged(ctx, netip.AddrPort{}, f.failed); err != nil {
				why = t.withoutAddress()
			}
		}
		if err == nil {
			delay = minRetry
			if f.current, err = f.open(ctx, peer); err == nil {
				f.peer = peer
				t.LogFault(unopened, nil)
				t.setUnmeasurable("", "")
				return true
			}
			if ctx.Err() == nil {
				t.LogFault(unopened, err)
				f.failed(why)
			}
		}
		t.setUnmeasurable(why, errtext.Words(err))
		if !ctxtime.Sleep(ctx, delay) {
			break
		}
		delay = min(2*delay, maxRetry)
	}
	return false
}

// keep calls check at each interval. A panic of a renewal is logged and tried again: it must not end the process, in which
// other paths are measured.
func (f *follower) keep(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			f.target.Log().Error("Panic in the renewal of a measurement, which continues", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
		if !f.finished && ctx.Err() == nil {
			f.timer.Reset(f.target.options.ResolveInterval)
		}
	}()
	f.check(ctx)
}

// check renews the measurement, and resolves the name again. A failed lookup keeps the current address.
func (f *follower) check(ctx context.Context) {
	if f.finished || ctx.Err() != nil {
		return
	}
	if f.current.Renew != nil {
		f.current.Renew()
	}
	now, err := f.target.resolveLogged(ctx, f.peer, f.failed)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		return
	}
	if now == f.peer {
		f.lacking = 0
		if replaced := f.current.Replaced; f.current.Renew != nil && (replaced == nil || !replaced()) {
			return
		}
	} else {
		f.lacking++
		if f.lacking < maxLacking && f.current.Replies != nil && f.current.Replies() {
			return
		}
		f.changes.log(f.target.Log(), f.peer, now)
	}
	f.lacking = 0
	old := f.current
	f.current = Measurement{} // before: its end may panic
	if old.End != nil {
		old.End()
	}
	f.begin(ctx, now)
}

// end ends what is measured.
func (f *follower) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.timer.Stop()
	if f.finished = true; f.current.End != nil {
		f.current.End()
	}
}

// resolveLogged is Resolve; it logs a failure, and calls failed.
func (t *Target) resolveLogged(ctx context.Context, keep netip.AddrPort, failed func(lightreason.Reason)) (netip.AddrPort, error) {
	peer, err := t.Resolve(ctx, keep)
	if ctx.Err() != nil {
		return peer, err
	}
	why, fault := t.withoutAddress(), unresolved
	if why == lightreason.NotSent {
		fault = unusable
	}
	t.LogFault(fault, err)
	if err != nil {
		failed(why)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookedUp = err
	return peer, err
}

// Silence is why the host does not reply at the measured address, and that it may no longer be the host's, if the last lookup of
// its name failed.
func (t *Target) Silence(why string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.silence(why)
}

// silence is Silence; the caller holds t.mu.
func (t *Target) silence(why string) string {
	if t.lookedUp == nil || t.literal().IsValid() {
		return why
	}
	return why + "; this address may be an old one, as its name gives none now: " + errtext.Words(t.lookedUp)
}

// withoutAddress is why the host is not measured if Resolve fails: it is a name, or an address that this host cannot use.
func (t *Target) withoutAddress() lightreason.Reason {
	if t.literal().IsValid() {
		return lightreason.NotSent
	}
	return lightreason.Unresolved
}

// Resolve returns an address that fits the options; if there are several, it prefers keep.
func (t *Target) Resolve(ctx context.Context, keep netip.AddrPort) (netip.AddrPort, error) {
	if addr := t.literal(); addr.IsValid() {
		if err := cmp.Or(hostport.CheckZone(addr), hostport.CheckZone(t.options.local)); err != nil {
			return netip.AddrPort{}, fmt.Errorf("target: it cannot be measured: %w", err)
		}
		return netip.AddrPortFrom(addr, t.port), nil
	}
	found, err := t.lookup(ctx, "ip", t.host)
	if err != nil {
		return netip.AddrPort{}, hostport.WithRemedy(fmt.Errorf("target: peer %q: %w", t.host, err))
	}
	first := netip.AddrPort{}
	var wrong error // of an address that no host has
	for _, a := range found {
		at := netip.AddrPortFrom(a.Unmap(), t.port)
		if at == keep {
			return keep, nil
		}
		if err := hostport.CheckHost(at.Addr()); err != nil {
			wrong = fmt.Errorf("target: peer %q has the address %s: %w", t.host, a, err)
		} else if !first.IsValid() && t.options.Fits(at.Addr()) {
			first = at
		}
	}
	if !first.IsValid() && wrong != nil {
		return first, wrong
	}
	if !first.IsValid() {
		return first, fmt.Errorf("target: peer %q has no address of family %s", t.host, hostport.WantedFamily(t.options.Family, t.options.local))
	}
	return first, nil
}

// literal is the host if it is an IP address; else the zero Addr.
func (t *Target) literal() netip.Addr {
	addr, _ := netip.ParseAddr(t.host)
	return addr.Unmap()
}

// Unmeasurable is why the host cannot be measured now, in one word and in a sentence; empty: no known reason.
func (t *Target) Unmeasurable() (why lightreason.Reason, sentence string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why, t.reason
}

func (t *Target) setUnmeasurable(why lightreason.Reason, sentence string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.why, t.reason = why, sentence
}

// Fault is a reason that impairs the measurement of a host: the attribute `fault` of the log.
type Fault string

const (
	unresolved Fault = "the peer's name gives no address"
	unusable   Fault = "an address cannot be used"
	unopened   Fault = "it cannot be measured"
)

// LogFault logs a fault (err is not nil) when it begins and when it ends. A lack of file descriptors, which concerns
// all paths, is logged by the agent.
func (t *Target) LogFault(what Fault, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	level := slog.LevelDebug
	switch {
	case err == nil && !t.logged[what]:
		return
	case err == nil:
		t.logged[what] = false
		t.Log().Info("The path's fault is over", "fault", string(what))
		return
	case !t.logged[what] && !errtext.NoDescriptors(err):
		if t.logged == nil {
			t.logged = map[Fault]bool{}
		}
		t.logged[what], level = true, slog.LevelWarn
	}
	t.Log().Log(context.Background(), level, "The path has a fault", "fault", string(what), "err", err)
}
