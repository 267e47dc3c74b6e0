package agent

import (
	"errors"
	"log/slog"
	"maps"
	"slices"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/agent/pathlabel"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
)

// defaults reports unknown types and keys, and values of a wrong type, in the defaults of probes, whether probes use them or not. The
// owner of the options checks the values with those of each probe.
func (m *maker) defaults(c *config.Config, env probe.Env) (found config.Problems) {
	env.Sink, env.Log, env.Scopes = metric.Discard{}, slog.New(slog.DiscardHandler), nil
	for _, name := range slices.Sorted(maps.Keys(c.Defaults)) {
		section := c.Defaults[name]
		kind, err := option.Select("type", name, m.options.Types.Probes)
		if wrong, unknown := errors.AsType[*option.Error](err); unknown {
			found = append(found, section.Problem("", "is for a type of probe: it "+wrong.Problem))
			continue
		}
		// Other errors are of options that only probes have, such as a token.
		_, _ = kind.New(env, probe.Target{Path: "defaults", Probe: name, Peer: "192.0.2.1"}, func(into ...any) error {
			err = section.DecodeAll(into...)
			return err
		})
		found = append(found, section.Problems(err)...)
	}
	return found
}

// labelTags are the labels of all paths by path, for outputs.
func (p *plan) labelTags() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, path := range p.paths {
		all[path.Name] = path.Labels
	}
	return all
}

// labels are the labels of all paths.
func (p *plan) labels() (all []pathlabel.Path) {
	for _, path := range p.paths {
		all = append(all, pathlabel.Path{Name: path.Name, Labels: path.Labels})
	}
	return all
}

// findSite finds the site of this host: by its key, else by a mesh. It must be a value of the label site.
func (p *plan) findSite(c *config.Config) config.Problems {
	p.site = c.MeshSite
	if !c.Site.Given() {
		return nil
	}
	if err := c.Site.Decode(&p.site); err != nil {
		return c.Site.Problems(err)
	}
	return c.Site.Problems(pathlabel.CheckValue("", p.site))
}
