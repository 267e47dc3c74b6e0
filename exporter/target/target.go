// Package target is what a light probe sends to: a host, its address of the moment, and where packets to it
// leave this host.
//
// A probe embeds Options in its own, and gets a Target of them, which it follows:
//
//	Follow -> look the name up -> Open(address) -> measure ... the name has no such address any more
//	       <-------------------- measure's context ends <---------------------------------
package target

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"oneway.example/exporter/ctxtime"
)

// Target is a host that is probed. Its methods are safe for concurrent use.
type Target struct {
	host    string
	port    uint16
	options Options
	log     *slog.Logger
	lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)

	mu     sync.Mutex
	told   map[Fault]bool // those that were logged, and last
	reason string
}

// New checks the peer; the options have been checked. Nothing is looked up. An error is a *probe.OptionError.
func New(peer string, missingPort uint16, o Options, log *slog.Logger) (*Target, error) {
	host, port, err := Host(peer, missingPort)
	if err != nil {
		return nil, err
	}
	return &Target{
		host: host, port: port, options: o, log: log, lookup: net.DefaultResolver.LookupNetIP, told: map[Fault]bool{},
	}, nil
}

// Back-off of name resolution and of opening sockets.
const (
	minRetry = time.Second
	maxRetry = 30 * time.Second
)

// Open prepares to measure the peer at one address. What it returns measures until its context ends, and
// gives back what Open took; it is always called.
type Open func(ctx context.Context, peer netip.AddrPort) (measure func(context.Context), err error)

// Follow measures the host at its address of the moment until ctx ends. A name that does not resolve,
// and what cannot be opened, is tried again; failed is called after each look-up that gave no address.
// When the address that is measured is no longer among those of the name, measuring ends, and begins anew.
func (t *Target) Follow(ctx context.Context, failed func(), open Open) {
	for delay := minRetry; ctx.Err() == nil; {
		peer, err := t.look(ctx, netip.AddrPort{}, failed)
		if err == nil {
			delay = minRetry
			var measure func(context.Context)
			if measure, err = open(ctx, peer); err == nil {
				t.Tell(unopened, nil)
				t.lacks("")
				t.serve(ctx, peer, failed, measure)
				continue
			}
			if ctx.Err() == nil {
				t.Tell(unopened, err)
			}
		}
		t.lacks(err.Error())
		if !ctxtime.For(ctx, delay) {
			return
		}
		delay = min(2*delay, maxRetry)
	}
}

// serve measures until ctx ends or the name has another address.
func (t *Target) serve(ctx context.Context, peer netip.AddrPort, failed func(), measure func(context.Context)) {
	ctx, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	if !t.literal().IsValid() { // an address stays what it is
		watching.Go(func() {
			defer end()
			t.watch(ctx, peer, failed)
		})
	}
	measure(ctx)
	end()
	watching.Wait()
}

// watch looks the name up again and again. What cannot be looked up for the moment leaves things as they are.
func (t *Target) watch(ctx context.Context, peer netip.AddrPort, failed func()) {
	for ctxtime.For(ctx, t.options.ResolveInterval) {
		now, err := t.look(ctx, peer, failed)
		if ctx.Err() != nil {
			return
		}
		if err == nil && now != peer {
			t.log.Info("Address of the peer has changed", "old", peer.String(), "new", now.String())
			return
		}
	}
}

// look is Resolve, whose failure is counted and told.
func (t *Target) look(ctx context.Context, keep netip.AddrPort, failed func()) (netip.AddrPort, error) {
	peer, err := t.Resolve(ctx, keep)
	if ctx.Err() == nil {
		t.Tell(unresolved, err)
		if err != nil {
			failed()
		}
	}
	return peer, err
}

// Resolve finds an address that fits the options; among several, keep stays if it is one.
func (t *Target) Resolve(ctx context.Context, keep netip.AddrPort) (netip.AddrPort, error) {
	if addr := t.literal(); addr.IsValid() {
		if !t.options.Fits(addr) {
			return netip.AddrPort{}, fmt.Errorf("target: peer %s is not of family %s", t.host, t.options.Family)
		}
		return netip.AddrPortFrom(addr, t.port), nil
	}
	found, err := t.lookup(ctx, "ip", t.host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("target: peer %q: %w", t.host, err)
	}
	first := netip.AddrPort{}
	for _, a := range found {
		at := netip.AddrPortFrom(a.Unmap(), t.port)
		if at == keep {
			return keep, nil
		}
		if !first.IsValid() && t.options.Fits(at.Addr()) {
			first = at
		}
	}
	if !first.IsValid() {
		return first, fmt.Errorf("target: peer %q has no %s address", t.host, t.options.Family)
	}
	return first, nil
}

// literal is the host if it is an address; else the zero Addr.
func (t *Target) literal() netip.Addr {
	addr, _ := netip.ParseAddr(t.host)
	return addr.Unmap()
}

// Lacks says why the host cannot be measured for the moment; empty: nothing is known to hinder it.
func (t *Target) Lacks() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reason
}

func (t *Target) lacks(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reason = strings.TrimPrefix(reason, "target: ")
}

// Fault is what may keep a host from being measured as it should be: the attribute `fault` of the log.
type Fault string

const (
	unresolved Fault = "the peer's name gives no address"
	unopened   Fault = "it cannot be measured"
)

// Tell logs a fault (err is not nil) when it begins, and when it has ended. What hits all paths at
// one time, as long as no file descriptor is left, is for the agent to say.
func (t *Target) Tell(what Fault, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	level := slog.LevelDebug
	switch {
	case err == nil && !t.told[what]:
		return
	case err == nil:
		t.told[what] = false
		t.log.Info("The path's fault is over", "fault", string(what))
		return
	// The resolver's errors do not wrap their cause.
	case !t.told[what] && !strings.Contains(err.Error(), syscall.EMFILE.Error()):
		t.told[what], level = true, slog.LevelWarn
	}
	t.log.Log(context.Background(), level, "The path has a fault", "fault", string(what), "err", err)
}
