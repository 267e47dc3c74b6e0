// Package listen opens the sockets of a server on several addresses: at once where that is possible, and later on the others,
// which this host may get (a virtual address of a pair of hosts, an interface that is not up yet).
package listen

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/core/ctxtime"
)

// RetryInterval is the interval at which an address without a socket is tried again.
const RetryInterval = 5 * time.Second

// Failed is an address without a socket, and the reason.
type Failed struct {
	Address netip.AddrPort
	Err     error
	index   int
}

// Addresses are the addresses of a server. Open comes first. The methods are safe for concurrent use.
type Addresses struct {
	log  *slog.Logger
	all  []netip.AddrPort
	open func(i int) error

	mu     sync.Mutex
	failed []Failed
}

// New makes the addresses of a server.
func New(log *slog.Logger, all []netip.AddrPort) *Addresses { return &Addresses{log: log, all: all} }

// Open opens the sockets of all addresses that permit it, and logs the others. It is an error if none does. open opens all
// sockets of address number i, or none; Retry calls it too.
func (a *Addresses) Open(open func(i int) error) error {
	a.open = open
	var failed []Failed
	var errs []error
	for i, one := range a.all {
		if err := a.open(i); err != nil {
			failed, errs = append(failed, Failed{one, err, i}), append(errs, err)
		}
	}
	if len(failed) == len(a.all) {
		return errors.Join(errs...)
	}
	for _, f := range failed {
		a.log.Warn("Cannot listen on an address; it is tried again", "address", f.Address.String(), "err", f.Err, "interval", RetryInterval)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = failed
	return nil
}

// Failed are the addresses without a socket at the moment.
func (a *Addresses) Failed() []Failed {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.failed)
}

// Retry tries the addresses without a socket until all have one or ctx ends.
func (a *Addresses) Retry(ctx context.Context) {
	for left := a.Failed(); len(left) > 0 && ctxtime.Sleep(ctx, RetryInterval); { // a port that another program frees has no event
		left = slices.DeleteFunc(left, func(f Failed) bool {
			if err := a.open(f.index); err != nil {
				return false
			}
			a.log.Info("Listens on the address now", "address", f.Address.String())
			return true
		})
		a.mu.Lock()
		a.failed = slices.Clone(left)
		a.mu.Unlock()
	}
}
