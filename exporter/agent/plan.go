package agent

import (
	"errors"
	"log/slog"
	"slices"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/agent/mesh"
	"oneway.example/exporter/agent/pathlabel"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/calibration"
	"oneway.example/exporter/probe/link"
)

// section is a part of the configuration that is decoded, checked and planned independently.
type section interface {
	// decode decodes its keys. Errors are of type config.Problems.
	decode(c *config.Config) error
	// plan checks it and adds its tasks. All sections are decoded before.
	plan(c *config.Config, m *maker) config.Problems
}

// plan is a checked configuration, ready to be put in force. It does not keep the file, which takes 2 kB a path, but
// the sections of which a task is made again after a failure.
type plan struct {
	paths      []PathSummary // of the configuration, in its order
	meshed     int           // paths that meshes make
	mesh       mesh.Expansion
	serves     bool // the configuration has a load server
	shared     sharedSection
	clock      clockSection
	watchers   watchersSection
	reflector  reflectorSection
	loadServer loadServerSection
	outputs    outputsSection
	onDemand   onDemandSection
	// calibration is nil if no file is configured.
	calibration *calibration.Table
	site        string              // of this host; empty: unknown
	links       map[string][]string // the configured links of paths that have some
	summary     Summary
	// unbracketed are warnings of options of load tests that are hosts.
	unbracketed config.Problems
	// unmade are warnings of what may come before an agent starts: a directory of state, a device.
	unmade config.Problems
	jobs   []job // of all probes, in the order of the configuration

	tasks   []*task         // all tasks: running and new ones
	adopted map[*task]*task // running tasks, by the new tasks whose secrets they get
}

func newPlan(c *config.Config, t Types) *plan {
	p := &plan{clock: clockSection{types: t.Clocks, watchers: t.Watchers}, serves: c.LoadServer.Given(), links: map[string][]string{}, adopted: map[*task]*task{}}
	p.watchers.clock, p.loadServer.shared, p.outputs.shared = &p.clock, &p.shared, &p.shared
	return p
}

// sections are in the order of their dependencies.
func (p *plan) sections() []section {
	return []section{&p.shared, &p.clock, &p.watchers, &p.reflector, &p.loadServer, &p.outputs, &p.onDemand}
}

// has reports whether the plan has a path of this name.
func (p *plan) has(path string) bool {
	return slices.ContainsFunc(p.paths, func(one PathSummary) bool { return one.Name == path })
}

// job is one probe of one path.
type job struct {
	*task
	kind    string
	profile metric.Profile
}

// plan reads and checks the configuration. It keeps running tasks of the same meaning, and makes all others without
// starting them.
func (a *Agent) plan() (*plan, error) {
	c, err := a.options.Load(a.options.ConfigFile)
	if c == nil {
		return nil, err
	}
	p, groups := newPlan(c, a.options.Types), a.options.Types.MetricGroups()
	own := len(c.Paths)
	made, undecoded := mesh.Expand(c, a.machine(), groups, a.options.Types.Tables())
	undecoded = append(config.Section{}.Problems(err), undecoded...)
	p.mesh = made
	p.meshed = len(c.Paths) - own
	for _, s := range p.sections() {
		undecoded = append(undecoded, config.Section{}.Problems(s.decode(c))...)
	}
	m := &maker{Agent: a, plan: p, groups: groups, meanings: map[string]*config.Section{}}
	var found config.Problems
	for _, s := range p.sections() {
		found = append(found, s.plan(c, m)...)
	}
	found = append(found, m.paths(c)...)
	found = append(found, checkLinks(c, p)...)
	if found = undecoded.With(found); len(found) > 0 {
		if found = found.Sort(); len(found) == made.Unfound {
			return nil, NotYet{found}
		}
		return nil, found
	}
	if found = p.checkQuotas(c); len(found) > 0 {
		return nil, found.Sort()
	}
	p.summary = summarize(c, p)
	return p, nil
}

// maker builds a plan.
type maker struct {
	*Agent
	plan *plan
	// groups are all metric families.
	groups []metric.Group
	// meanings are the options of the probes, by their fingerprints: a task keeps them for new runners, and thousands may have the
	// same.
	meanings map[string]*config.Section
}

// placer adds places in the file to errors.
type placer interface {
	Problems(err error) config.Problems
}

// probePlace is the placer of a probe; the peer is an option of its path, and config has reported one that is empty.
type probePlace struct {
	options config.Section
	path    *config.Path
}

func (p probePlace) Problems(err error) (found config.Problems) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			found = append(found, p.Problems(one)...)
		}
		return found
	}
	if wrong, ok := errors.AsType[*option.Error](err); ok && wrong.Key == probe.PeerKey {
		if p.path.Peer == "" {
			return nil
		}
		at, key := p.path.PeerPlace()
		return at.Problems(&option.Error{Key: key, Problem: wrong.Problem})
	}
	return p.options.Problems(err)
}

// place adds a task to the plan, or the running task of the same meaning, unless its section has errors.
func (m *maker) place(at placer, t *task, wrong ...error) (*task, config.Problems) {
	err := errors.Join(wrong...)
	if err != nil {
		return nil, at.Problems(err)
	}
	old := m.running[t.key]
	switch {
	case !old.same(t):
		r := m.options.retry
		if t.pause > 0 {
			r.most = min(r.most, t.pause)
		}
		old, t.unit = t, newUnit(t.logger, r, t.runner(m.sink))
		_, err = t.prepare(m.sink)
	case t.files:
		_, err = t.make(metric.Discard{}, nil, slog.New(slog.DiscardHandler))
	case t.renew != nil:
		m.plan.adopted[old] = t
	}
	m.plan.tasks = append(m.plan.tasks, old)
	return old, at.Problems(err)
}

// paths plans all paths.
func (m *maker) paths(c *config.Config) config.Problems {
	found := c.Check()
	if c.Paths == nil && c.Meshes == nil && !c.Reflector.Given() && !c.LoadServer.Given() && !c.Clock.Given() && !c.OnDemand.Given() && len(c.Watchers) == 0 {
		nothing := c.Reflector.Problem("", "and on_demand are all missing; there is nothing to do")
		nothing.Key = "paths, reflector, load_server, clock"
		found = append(found, nothing)
	}
	var file string
	err := c.CalibrationFile.Decode(&file)
	if err == nil && c.CalibrationFile.Given() && file != "" {
		m.plan.calibration, err = calibration.Load(file)
	}
	found = append(found, c.CalibrationFile.Problems(err)...)
	env := probe.Env{
		Log: m.log, Clock: m.clock, Pacer: m.pacer, Calibration: m.plan.calibration, Links: m.shared.links, Local: m.shared.local, Reports: m.shared.reports,
		Light: m.options.Light, Recorder: &m.recorder, HelperGroup: m.helperGroup,
	}
	usual, wrong := m.profile(c)
	found = append(append(found, wrong...), m.defaults(c, env)...)
	labels := pathlabel.NewChecker(m.groups, m.options.Types.Tables())
	found = append(found, m.plan.findSite(c)...)
	for i := range c.Paths {
		path := &c.Paths[i]
		if len(path.Links) > 0 {
			m.plan.links[path.Name] = path.Links
		}
		found = append(found, path.Place.Problems(labels.Check(path.Labels))...)
		m.plan.paths = append(m.plan.paths, PathSummary{Name: path.Name, Peer: path.Peer, Links: path.Links, Labels: path.Labels})
		ofPath, wrong := profileOf(path.Place, path.Profile, usual)
		found = append(found, wrong...)
		for j := range path.Probes {
			path.Probes[j].Options = path.Probes[j].Options.WithDefaults(c.Defaults[path.Probes[j].Type])
			ofProbe, wrong := profileOf(path.Probes[j].Options, path.Probes[j].Profile, ofPath)
			found = append(append(found, wrong...), m.probe(path, &path.Probes[j], ofProbe, &env)...)
		}
	}
	return found
}

// profile is the default profile of all probes.
func (m *maker) profile(c *config.Config) (metric.Profile, config.Problems) {
	name := metric.Full.String()
	err := c.Profile.Decode(&name)
	p, unknown := metric.ProfileByName(name)
	if err == nil && unknown != nil {
		err = option.Errorf("", "%v", unknown)
	}
	return p, c.Profile.Problems(err)
}

// profileOf is the profile of a section, or the usual one without a key.
func profileOf(of config.Section, name string, usual metric.Profile) (metric.Profile, config.Problems) {
	if name == "" {
		return usual, nil
	}
	p, err := metric.ProfileByName(name)
	if err != nil {
		return usual, of.Problems(option.Errorf("profile", "%v", err))
	}
	return p, nil
}

// probe plans one probe of a path.
func (m *maker) probe(path *config.Path, p *config.Probe, profile metric.Profile, env *probe.Env) config.Problems {
	if p.Type == "" {
		return nil // reported by config
	}
	kind, err := option.Select("type", p.Type, m.options.Types.Probes)
	if err != nil {
		return p.Options.Problems(err)
	}
	options, meaning := &p.Options, p.Options.Fingerprint()
	t := &task{
		key: path.Name + "\x00" + p.Name, target: probe.Target{Path: path.Name, Probe: p.Name, Peer: path.Peer}, log: m.log,
	}
	filled := "" // a link of the path that the test does not fill may change while it runs
	if test, ok := kind.(probe.LoadTest); ok {
		t.target.Link = firstLink(path.Links)
		filled = link.Filled(options.Text(test.LinkKey()), t.target.Link, t.target.Path)
		if key := test.HostKey(); key != "" {
			m.plan.unbracketed = m.plan.unbracketed.With(unbracketed(p.Options, key, options.Text(key)))
		}
	}
	t.identity = [...]string{p.Type, path.Peer, meaning, env.Calibration.Fingerprint(), profile.String(), filled}
	t.make = func(sink metric.Sink, scopes *metric.Scopes, _ *slog.Logger) (runner, error) {
		env := *env
		env.Sink, env.Profile, env.Scopes = sink, profile, scopes
		return kind.New(env, t.target, options.DecodeAll)
	}
	at := probePlace{p.Options, path}
	planned, wrong := m.placeTyped(at, options, kind, t)
	also := append(withoutEffect(kind, p.Options, profile), m.checkLoadTest(kind, p.Options)...)
	if len(wrong) > 0 {
		var peer error
		if checker, ok := kind.(probe.PeerChecker); ok {
			peer = checker.CheckPeer(path.Peer)
		}
		return wrong.With(at.Problems(peer)).With(also)
	}
	if m.meanings[meaning] == nil {
		m.meanings[meaning] = options
	}
	options = m.meanings[meaning] // errors have been found at their own place
	m.plan.jobs = append(m.plan.jobs, job{planned, p.Type, profile})
	return also
}

// placeTyped is place for a task of a type of a registry. If some options cannot be decoded, the type has made nothing, and each of the
// others is checked by its description.
func (m *maker) placeTyped(at placer, options *config.Section, kind option.Documented, t *task) (*task, config.Problems) {
	planned, found := m.place(at, t)
	all, into := structsOf(kind)
	if len(found) == 0 || len(into) == 0 || options.DecodeAll(into...) == nil {
		return planned, found
	}
	var wrong []error
	for _, o := range all {
		wrong = append(wrong, option.Check(o))
	}
	return planned, found.With(at.Problems(errors.Join(wrong...)))
}

// structsOf are the structs of a type's options; into has the same ones for a decoder.
func structsOf(kind option.Documented) (all []option.Described, into []any) {
	_, all = kind.Document()
	for _, o := range all {
		into = append(into, o)
	}
	return all, into
}

// withoutEffect are the keys of a probe that its type or its profile ignores.
func withoutEffect(t probe.Type, options config.Section, profile metric.Profile) (found config.Problems) {
	wrong := func(options config.Section, keys []string, why string) {
		for _, key := range keys {
			if options.Has(key) {
				found = append(found, options.Problem(key, "has no effect "+why))
			}
		}
	}
	if full, ok := t.(probe.FullOnly); ok && profile == metric.Slim {
		// The defaults of the type may be for other probes, of profile full.
		wrong(options.Own(), full.FullKeys(), "with profile slim; remove it, or use profile full for this probe")
	}
	if sharing, ok := t.(probe.Sharing); ok {
		wrong(options, sharing.UnusedKeys(), "on probes of type "+t.Name()+"; remove it")
	}
	return found
}
