package stamp

import "oneway.example/exporter/probe"

// Hops are the numbers of routers of the present session.
func (p *Prober) Hops() (all [2]probe.Hops) {
	s := p.session.Load()
	if s == nil {
		return all
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		h := &s.account.Hops[i]
		all[i] = probe.Hops{Known: h.Last.Known, Routers: h.Last.Value, Changes: h.Changes}
	}
	return all
}

var _ probe.RouteSource = (*Prober)(nil)
