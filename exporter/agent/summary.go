package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/localzone"
	"oneway.example/exporter/core/metric"
	units "oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe"
)

// Summary is the size of a configuration, and what is suspicious in it.
type Summary struct {
	Paths, Probes, Outputs, Watchers int
	// Meshed is the number of the paths that meshes make.
	Meshed int
	// Modules are those of on-demand probes.
	Modules               int
	Reflector, LoadServer bool
	// Warnings have places as errors have, but the configuration is accepted with them.
	Warnings config.Problems
}

// PathSummary is a path of a configuration.
type PathSummary struct {
	Name, Peer string
	// Probes are the names of its probes, from Check only.
	Probes, Links []string
	Labels        map[string]string
}

// Check plans a configuration as an agent with these options does, without starting anything. It opens only the
// configuration and the files that it names. It returns the paths in the order of the configuration, those of meshes last.
func Check(o Options) (Summary, []PathSummary, error) {
	a, err := New(o)
	if err != nil {
		return Summary{}, nil, err
	}
	a.release()
	p := a.inForce
	probes := map[string][]string{}
	for _, j := range p.jobs {
		probes[j.target.Path] = append(probes[j.target.Path], j.target.Probe)
	}
	for i := range p.paths {
		p.paths[i].Probes = probes[p.paths[i].Name]
	}
	p.summary.Warnings = slices.Concat(p.summary.Warnings, p.unmade).Sort()
	return p.summary, p.paths, nil
}

// summarize is the summary of a plan without errors.
func summarize(c *config.Config, p *plan) Summary {
	s := Summary{
		Paths: len(p.paths), Meshed: p.meshed, Probes: len(p.jobs), Outputs: len(p.outputs.outputs), Watchers: len(p.watchers.watchers), Modules: len(p.onDemand.Modules),
		Reflector: p.reflector.task != nil, LoadServer: p.loadServer.task != nil,
	}
	p.unmade = append(p.warnState(c), p.watchers.missing()...)
	s.Warnings = slices.Concat(p.warnZone(c), p.shared.warnHolidays(c, time.Now()), p.warnMaintenance(), warnPeers(c), p.unbracketed, p.warnLinks(c)).Sort()
	return s
}

// warnZone warns of a time zone that is set and unknown: windows and the days of quotas would be in UTC.
func (p *plan) warnZone(c *config.Config) config.Problems {
	if p.shared.calendar.Zone != "" {
		return nil
	}
	if err := localzone.Host().Check(); err != nil {
		return config.Problems{{File: c.File, Text: errtext.Words(err)}}
	}
	return nil
}

// warnState warns of directories that this process's user cannot write, or that all users can, and of one of state that does not exist: quotas and reports
// are lost at a restart. The agent makes the directory of reports.
func (p *plan) warnState(c *config.Config) (found config.Problems) {
	if c.StateDir.Given() {
		found = warnDirectory(c.StateDir, "", p.shared.stateDir)
	}
	if c.Reports.Has("dir") {
		found = append(found, warnDirectory(c.Reports, "dir", p.shared.reports.Dir)...)
	}
	return found
}

// warnDirectory warns of the directory in a key of a section, or in the section itself (an empty key), if it is the one of state.
func warnDirectory(at config.Section, key, name string) (found config.Problems) {
	dir, err := filepath.Abs(name)
	if err != nil {
		dir = name
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		if key == "" {
			found = append(found, at.Problem(key, "is "+dir+", which does not exist; create it for the agent's user (systemd: StateDirectory=oneway)"))
		}
	case err == nil && !info.IsDir():
		found = append(found, at.Problem(key, "is "+dir+", which is no directory; name another one"))
	case err != nil:
		found = append(found, at.Problem(key, "cannot be used: "+errtext.Words(err)))
	default:
		if mode := info.Mode().Perm(); mode&0o002 != 0 {
			found = append(found, at.Problem(key, fmt.Sprintf("is %s, which all users can write (mode %#o): they can replace keys, quotas and reports in it; chmod 750", dir, mode)))
		}
		if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
			found = append(found, at.Problem(key, fmt.Sprintf("is %s, which the user with ID %d cannot write (%v); run this check as the agent's user, and give that user the directory (chown)", dir, os.Geteuid(), err)))
		}
	}
	return found
}

// warnPeers warns of IPv6 addresses that probably are an address and a port.
func warnPeers(c *config.Config) (found config.Problems) {
	for i := range c.Paths {
		at, key := c.Paths[i].PeerPlace()
		found = append(found, unbracketed(at, key, c.Paths[i].Peer)...)
	}
	return found
}

// unbracketed warns of a host that probably is an IPv6 address and a port.
func unbracketed(at config.Section, key, host string) config.Problems {
	meant := hostport.BracketsMeant(host)
	if meant == "" {
		return nil
	}
	return config.Problems{at.Problem(key, fmt.Sprintf("is the IPv6 address %s without a port; write %q if the last group is the port", host, meant))}
}

// maxShare is the share of the time that the load tests of a link may plan without a warning.
const maxShare = 1

// use is the use of a link by a load test of the agent.
type use struct {
	probe.LinkUse
	name  string // path/probe
	place config.Section
}

// uses are the uses of links by load tests, in the order of the configuration.
func (p *plan) uses(c *config.Config) (all []use) {
	next := 0 // of p.jobs, which are in the order of the configuration
	for i := range c.Paths {
		for j := range c.Paths[i].Probes {
			if filler, ok := p.jobs[next].running().(probe.LinkUser); ok {
				all = append(all, use{filler.UsedLink(), p.jobs[next].target.Path + "/" + p.jobs[next].target.Probe, c.Paths[i].Probes[j].Options})
			}
			next++
		}
	}
	return all
}

// lowerBytes is what lowers the bytes of a run, by the keys of load tests.
const lowerBytes = "lower the bytes of a run: its max_bytes, or where it has no such key its rates, times and counts"

// checkQuotas reports load tests that the quota of their link can never allow.
func (p *plan) checkQuotas(c *config.Config) (found config.Problems) {
	for _, u := range p.uses(c) {
		if quota := p.shared.quotaOf(u.Link); quota > 0 && u.Bytes > quota {
			need, limit := units.DistinctBytes(u.Bytes, quota)
			found = append(found, u.place.Problem("", fmt.Sprintf("needs %s for a run, and the quota of link %s is %s a day: every run would be skipped; raise quota_bytes, or %s", need, u.Link, limit, lowerBytes)))
		}
	}
	return found
}

// warnLinks warns of links that have no quota, of those whose load tests need more time than there is, and of paths with alerts that load
// tests keep silent.
func (p *plan) warnLinks(c *config.Config) (found config.Problems) {
	links := map[string][]use{}
	for _, u := range p.uses(c) {
		links[u.Link] = append(links[u.Link], u)
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		found = append(found, warnLink(name, links[name], p.shared.quotaOf(name))...)
	}
	warned := map[string]bool{}
	paths := p.pathLinks()
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		var all []use
		for _, name := range paths[path].all {
			all = append(all, links[name]...)
		}
		if text := warnSilent(path, all); text != "" && !warned[names(all)] {
			warned[names(all)] = true
			found = append(found, all[0].place.Problem("", text))
		}
	}
	return found
}

// quotaOf is the quota of a link; 0: none.
func (s *sharedSection) quotaOf(name string) int64 {
	for _, l := range s.links {
		if l.Name == name {
			return int64(l.Quota)
		}
	}
	return 0
}

// maxNamed limits the names in a message.
const maxNamed = 3

// names are the names of load tests in a message.
func names(all []use) string {
	var some []string
	for _, u := range all[:min(len(all), maxNamed)] {
		some = append(some, u.name)
	}
	text := strings.Join(some, ", ")
	if more := len(all) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// warnLink warns of the load tests of one link; a quota of 0 is none.
func warnLink(link string, all []use, quota int64) (found config.Problems) {
	share, runs, bytes := 0.0, 0, 0.0
	for _, u := range all {
		share += u.Share
		runs += u.Runs
		bytes += float64(u.Runs) * float64(u.Bytes)
	}
	if quota > 0 && bytes > float64(quota) {
		found = append(found, all[0].place.Problem("", fmt.Sprintf("plans, with all tests of its link, %s of up to %s a day in all (%s), and the quota of link %s is %s a day: it allows %d of %d runs of that size, the rest is skipped; raise quota_bytes or every, or %s",
			units.Counted(runs, "run", "runs"), units.Bytes.Format(bytes), names(all), link, units.Bytes.Format(float64(quota)), int(float64(quota)/bytes*float64(runs)), runs, lowerBytes)))
	}
	if quota == 0 {
		found = append(found, all[0].place.Problem("", fmt.Sprintf("fills link %s (%s) without a quota; limit the bytes of a day: links: [{name: %s, quota_bytes: 5GB}]", link, names(all), link)))
	}
	if share > maxShare {
		found = append(found, all[0].place.Problem("", fmt.Sprintf("and others need link %s for %s of the time (%s); one runs at a time, the rest is skipped: raise every", link, units.Ratio.Format(share), names(all))))
	}
	return found
}

// warnSilent is a warning of load tests that keep the alerts of a path silent; empty: they do not. Runs that are due independently of each
// other overlap by chance.
func warnSilent(path string, all []use) string {
	loud := 1.0
	for _, u := range all {
		loud *= max(0, 1-u.Share-metric.TestedRecent.Seconds()/u.Every.Seconds())
	}
	if 1-loud <= metric.SilencedRatio {
		return ""
	}
	return fmt.Sprintf("keeps the alerts of loss, delay and voice of path %s silent for %s of the time (%s): during a run and the %.0f minutes after it none begins; leave %.0f minutes between runs (every)",
		path, units.Ratio.Format(1-loud), names(all), metric.TestedRecent.Minutes(), metric.QuietTime.Minutes())
}
