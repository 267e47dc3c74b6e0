package agent

import (
	"context"
	"slices"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/agent/mesh"
	"oneway.example/exporter/core/ctxtime"
)

// machine is this host, with the names by which the plan in force knows it; the caller of a running agent holds reloading.
func (a *Agent) machine() mesh.Machine {
	on := a.options.machine()
	if a.inForce != nil {
		on.Known = a.inForce.mesh.Known
	}
	return on
}

// warnAbsent warns of meshes in whose file this host is not found yet.
func (p *plan) warnAbsent() (found config.Problems) {
	for _, one := range p.mesh.Absent {
		found = append(found, one.Warning...)
	}
	return found
}

// watchSelf reloads the configuration when this host gets an address by which a mesh finds it. A plan is reloaded once: if the
// file has errors by then, its user reloads it.
func (a *Agent) watchSelf(ctx context.Context) {
	var tried *plan
	for ctxtime.Sleep(ctx, a.options.selfPause) {
		a.mu.Lock()
		p := a.inForce
		a.mu.Unlock()
		if p == tried || len(p.mesh.Absent) == 0 {
			continue
		}
		if on := a.options.machine(); slices.ContainsFunc(p.mesh.Absent, func(one mesh.Absent) bool { return one.Found(on) }) {
			a.log.Info("This host has an address of the hosts of a mesh now; the configuration is reloaded")
			tried = p
			_ = a.Reload() // it logs its error
		}
	}
}
