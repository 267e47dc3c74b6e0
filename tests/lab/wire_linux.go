package lab

import (
	"errors"
	"fmt"
	"sync"

	"github.com/vishvananda/netlink"

	"oneway.example/exporter/core/sample"
)

// Wire is the link alone, between two interfaces of this process's network namespace that exist already, such as those of
// a container in two networks. It passes each frame of one to the other. The senders of frames must have turned their
// transmit offloads off.
type Wire struct {
	links       [2]*link
	removeProcs func()
	closeOnce   sync.Once
	closeErr    error
}

// NewWire starts a link; forward is from the client's interface to the server's. It needs CAP_NET_RAW.
func NewWire(client, server string, o Options) (*Wire, error) {
	if err := o.Profile.check(); err != nil {
		return nil, err
	}
	var index [2]int
	for i, name := range []string{client, server} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return nil, fmt.Errorf("lab: interface %q: %w", name, err)
		}
		index[i] = l.Attrs().Index
	}
	w := &Wire{}
	var errs [2]error
	w.links[sample.Forward], errs[0] = newLink(sample.Forward, index[0], index[1], o.Profile.Forward, &o)
	w.links[sample.Reverse], errs[1] = newLink(sample.Reverse, index[1], index[0], o.Profile.Reverse, &o)
	if err := errors.Join(errs[:]...); err != nil {
		for _, k := range w.links {
			if k != nil {
				k.close()
			}
		}
		return nil, err
	}
	w.removeProcs = addProcs(len(w.links))
	for _, k := range w.links {
		go k.run()
	}
	return w, nil
}

// SetProfile changes both directions for the packets that enter from now on. Packets inside keep their times.
func (w *Wire) SetProfile(p Profile) error {
	if err := p.check(); err != nil {
		return err
	}
	w.links[sample.Forward].next.Store(&p.Forward)
	w.links[sample.Reverse].next.Store(&p.Reverse)
	return nil
}

// Counts are those of Lab.Counts.
func (w *Wire) Counts(d sample.Direction) (classified, others Counts) {
	return w.links[d].pipe.log.totals()
}

// Err has every fault of the link itself so far; see Lab.Err.
func (w *Wire) Err() error {
	var all []error
	for d, k := range w.links {
		all = append(all, k.err(sample.Direction(d)))
	}
	return errors.Join(all...)
}

// Close ends the link and returns the previous Err.
func (w *Wire) Close() error {
	w.closeOnce.Do(func() {
		w.closeErr = w.Err()
		for _, k := range w.links {
			k.halt()
			k.close()
		}
		w.removeProcs()
	})
	return w.closeErr
}
