package agent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"

	"oneway.example/exporter/agent/mesh"
	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/probe"
)

// machine is this host, with the names by which the plan in force knows it; the caller of a running agent holds reloading.
func (a *Agent) machine() mesh.Machine {
	on := a.options.machine()
	if a.inForce != nil {
		on.Known = a.inForce.mesh.Known
	}
	return on
}

// NotYet is the error of a configuration that can be used when this host has an address of the hosts of its mesh.
type NotYet struct{ error }

// Unwrap returns the problems.
func (e NotYet) Unwrap() error { return e.error }

// watchNames looks for names of hosts that give the address of another one, from time to time: each prober resolves its name again by itself.
func (a *Agent) watchNames(ctx context.Context) {
	for ctxtime.Sleep(ctx, a.options.meshPause) {
		a.mu.Lock()
		p := a.inForce
		a.mu.Unlock()
		a.shared.misnamed.look(p, a.options.machine().Addresses)
	}
}

// misnamed are the paths of meshes whose peer's name gives the address of another host, which they measure then.
type misnamed struct {
	log *slog.Logger

	mu  sync.Mutex
	all map[string]string // what is wrong, by path
}

// look finds these paths at present, and logs which are new and which are over. Of two names with one address, it names the second. own are the
// addresses of this host.
func (m *misnamed) look(p *plan, own []netip.Addr) {
	found, right := map[string]string{}, map[string]bool{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range p.mesh.Named {
		hosts := maps.Clone(one.Hosts)
		for _, j := range p.jobs {
			host := one.Peers[j.target.Path]
			sender, ok := j.running().(probe.Addressed)
			if host == "" || !ok {
				continue
			}
			if !sender.Address().IsValid() { // not known at present, such as after a reload
				if was := m.all[j.target.Path]; was != "" {
					found[j.target.Path] = was
				}
				continue
			}
			right[j.target.Path] = true
			name, port, _ := hostport.Split(j.target.Peer, hostport.Reflector)
			at := netip.AddrPortFrom(sender.Address().Unmap(), port)
			if port == one.Port && (at.Addr().IsLoopback() || slices.Contains(own, at.Addr())) {
				hosts[at] = one.Own
			}
			switch other := hosts[at]; other {
			case "":
				hosts[at] = host
			case host:
			default:
				found[j.target.Path] = fmt.Sprintf("the name %s of host %s has the address %s, which is also of host %s in %s: one of them is wrong, and the path may measure the other host",
					name, host, at, other, filepath.Base(one.File))
			}
		}
	}
	for path, why := range found {
		if m.all[path] != why {
			m.log.Warn("Two hosts of a mesh have one address", "path", path, "reason", why)
		}
	}
	for path := range m.all {
		if found[path] == "" && right[path] {
			m.log.Info("The host of a mesh has an address of its own again", "path", path)
		}
	}
	m.all = found
}

// reason is what is wrong with the address of a path's peer; empty: nothing.
func (m *misnamed) reason(path string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[path]
}
