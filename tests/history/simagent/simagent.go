// Package simagent is an agent in simulated time: the estimators and series of its paths come from the program (stamp.Replay,
// loadtest.Values, promsink), its packets are of a scene, and nothing sleeps or sends.
package simagent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/agent/pathlabel"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/history/scene"
)

// The paces of a path: most days have a packet in 10 s and windows of an hour, which end at its full hours; the named days have a packet a
// second, windows of 20 s, as an agent has by default, and a scrape each 15 s.
const (
	usualInterval = 10 * time.Second
	namedInterval = time.Second
	namedWindow   = 20 * time.Second
	Scrape        = 15 * time.Second
)

// Watcher sees the agent.
type Watcher interface {
	// Scrape is called with the series as they are at a time. Where full is set, it is the end of a local hour, or of the agent's life;
	// otherwise it is one of the scrapes of a named day.
	Scrape(at time.Time, sink *promsink.Sink, full bool) error
	// Calendar is called in the middle of each local hour in which the agent runs and is not scraped otherwise.
	Calendar(at time.Time, sink *promsink.Sink) error
	// Minutes is called at the end of each local hour without scrapes within it, with the minutes in which the agent measured, and by path
	// in which it had a reply.
	Minutes(at time.Time, measured int, up map[string]int) error
	// Run is called at the end of each run of a load test, which is recorded.
	Run(result *record.Result) error
	// Started is called when the agent starts: its series are new ones.
	Started()
}

// Agent is the agent of a site. Make one with New.
type Agent struct {
	scene    *scene.Scene
	site     scene.Site
	phase    time.Duration
	profile  metric.Profile
	calendar localday.Calendar
	watcher  Watcher
	paths    []*path
	life     *life // nil: it does not run
	off      []scene.Span
}

// Instance is the label instance of the agent of a site.
func Instance(site scene.Site) string { return site.Name + ":9861" }

// New makes the agent of a site, with the paths of the scene that begin there. It runs from the begin of the scene on.
func New(s *scene.Scene, site scene.Site, profile metric.Profile, w Watcher) (*Agent, error) {
	calendar, err := scene.Calendar(site)
	if err != nil {
		return nil, err
	}
	phase, err := scene.Phase(site)
	if err != nil {
		return nil, err
	}
	a := &Agent{scene: s, site: site, phase: phase, profile: profile, calendar: calendar, watcher: w, off: s.Off[site.Name]}
	for i := range s.Paths {
		if p := &s.Paths[i]; p.From.Name == site.Name {
			a.paths = append(a.paths, &path{of: p, weather: s.Weather(p, calendar), shift: time.Duration(137*(i+1)) * time.Millisecond * 7})
		}
	}
	return a, nil
}

// Paths is the number of its paths.
func (a *Agent) Paths() int { return len(a.paths) }

// Phase is how long after a full hour of UTC its full hours are.
func (a *Agent) Phase() time.Duration { return a.phase }

// Day simulates the 24 hours that begin at its first full hour of a UTC day.
func (a *Agent) Day(day time.Time) error {
	named := slices.ContainsFunc(a.scene.Named, day.Equal)
	for hour := range 24 {
		begin := day.Add(a.phase + time.Duration(hour)*time.Hour)
		for _, p := range a.paths {
			p.weather.Hour(begin)
			p.hour, p.minutes = begin, [60]bool{}
		}
		if err := a.hour(begin, named); err != nil {
			return err
		}
	}
	return nil
}

// hour simulates a local hour, in parts in which the agent runs or does not.
func (a *Agent) hour(begin time.Time, named bool) error {
	end := begin.Add(time.Hour)
	var measured [60]bool // by minute: a minute in which the agent ran in part is measured
	for at := begin; at.Before(end); {
		until, running := a.change(at, end)
		if !running {
			a.life, at = nil, until
			continue
		}
		if err := a.run(at, until, end, named); err != nil {
			return err
		}
		for minute := int(at.Sub(begin).Minutes()); begin.Add(time.Duration(minute) * time.Minute).Before(until); minute++ {
			measured[minute] = true
		}
		if until.Before(end) { // it stops
			if err := a.endWindow(until); err != nil {
				return err
			}
		}
		at = until
	}
	if named || a.life == nil {
		return nil
	}
	up := map[string]int{}
	for _, p := range a.paths {
		up[p.of.Name] = count(p.minutes)
	}
	return a.watcher.Minutes(end, count(measured), up)
}

func count(minutes [60]bool) (n int) {
	for _, one := range minutes {
		if one {
			n++
		}
	}
	return n
}

// change is until when the agent runs, or does not, from a time on; at most until end.
func (a *Agent) change(at, end time.Time) (until time.Time, running bool) {
	for _, off := range a.off {
		switch {
		case !off.End.After(at):
		case off.Has(at):
			return earlier(off.End, end), false
		case off.Begin.Before(end):
			return off.Begin, true
		default:
			return end, true
		}
	}
	return end, true
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// run simulates a part of an hour in which the agent runs.
func (a *Agent) run(at, until, end time.Time, named bool) error {
	if a.life == nil {
		if err := a.start(at); err != nil {
			return err
		}
	}
	a.life.pace(named)
	if named {
		return a.runNamed(at, until)
	}
	middle := end.Add(-time.Hour / 2)
	if at.Before(middle) && until.After(middle) {
		if err := a.packets(at, middle); err != nil {
			return err
		}
		a.life.publish(a, middle)
		if err := a.watcher.Calendar(middle, a.life.sink); err != nil {
			return err
		}
		at = middle
	}
	if err := a.packets(at, until); err != nil {
		return err
	}
	if until.Before(end) {
		return nil
	}
	return a.endWindow(until)
}

// endWindow ends the windows of all paths, and has the agent scraped.
func (a *Agent) endWindow(at time.Time) error {
	for _, p := range a.paths {
		p.replay.EndWindow()
	}
	a.life.publish(a, at)
	return a.watcher.Scrape(at, a.life.sink, true)
}

// runNamed simulates a part of a named day: a scrape each 15 s, a window each 20 s.
func (a *Agent) runNamed(at, until time.Time) error {
	const step = 5 * time.Second
	for at.Before(until) {
		next := earlier(at.Truncate(step).Add(step), until)
		if err := a.packets(at, next); err != nil {
			return err
		}
		if next.Truncate(namedWindow).Equal(next) {
			for _, p := range a.paths {
				p.replay.EndWindow()
			}
		}
		if next.Truncate(Scrape).Equal(next) {
			a.life.publish(a, next)
			if err := a.watcher.Scrape(next, a.life.sink, next.Equal(until)); err != nil {
				return err
			}
		}
		at = next
	}
	return nil
}

// packets sends the packets and runs of all paths from at until before until.
func (a *Agent) packets(at, until time.Time) error {
	for _, p := range a.paths {
		bounds := [2]sample.Bound{
			{Error: a.scene.Bound(p.of.From.Name, at), Reason: sample.OK}, {Error: a.scene.Bound(p.of.To.Name, at), Reason: sample.OK},
		}
		a.life.clock.bound = bounds[0]
		p.send(at, until, a.life.interval, bounds)
		if err := p.runs(at, until, a.calendar, a.watcher); err != nil {
			return err
		}
	}
	return nil
}

// life is the agent between a start and a stop.
type life struct {
	sink     *promsink.Sink
	clock    *monitor
	scope    *metric.Scope
	clocks   *metric.Scope
	labels   pathlabel.Series
	interval time.Duration
	now      time.Time
}

// start starts the agent at a time.
func (a *Agent) start(at time.Time) error {
	l := &life{clock: &monitor{}, now: at}
	l.sink = promsink.New(promsink.Options{NoClassic: true, Now: func() time.Time { return l.now }})
	l.scope, l.clocks = metric.NewScope(l.sink), metric.NewScope(l.sink, "static")
	l.clock.bound = sample.Bound{Error: a.scene.Bound(a.site.Name, at), Reason: sample.OK}
	a.life = l
	o := stamp.DefaultOptions()
	o.Interval, o.Window = usualInterval, time.Hour
	var labeled []pathlabel.Path
	for i, p := range a.paths {
		scope := a.profile.Scope(l.sink, p.of.Name, "stamp")
		peer := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), 862)
		replay, err := stamp.NewReplay(o, peer, l.clock, scope)
		if err != nil {
			return fmt.Errorf("simagent: path %s: %w", p.of.Name, err)
		}
		p.replay, p.tcp = replay, nil
		p.state = &pathState{begun: at, state: l.sink.Series(metric.PathState, p.of.Name, "stamp"), reason: l.sink.Series(metric.PathStateReason, p.of.Name, "stamp")}
		if p.of.Runs.PerDay > 0 {
			tcp := a.profile.Scope(l.sink, p.of.Name, "tcp")
			p.tcp = &tcpSeries{scope: tcp, values: loadtest.NewValues(a.profile.Scope(l.sink, p.of.Name, "tcp"))}
			p.tcp.open(24 * time.Hour / time.Duration(p.of.Runs.PerDay))
		}
		labeled = append(labeled, pathlabel.Path{Name: p.of.Name, Labels: p.of.Labels()})
	}
	l.labels.Publish(l.sink, "", labeled)
	l.publish(a, at)
	a.watcher.Started()
	return a.watcher.Scrape(at, l.sink, true)
}

// pace sets the pace of the day.
func (l *life) pace(named bool) {
	l.interval = usualInterval
	if named {
		l.interval = namedInterval
	}
}

// publish updates all series.
func (l *life) publish(a *Agent, at time.Time) {
	l.now = at
	window := time.Hour
	if l.interval == namedInterval {
		window = namedWindow
	}
	for _, p := range a.paths {
		p.replay.Pace(l.interval, window)
		p.replay.Publish()
		p.state.publish()
	}
	local := a.calendar.Local(at)
	_, offset := local.Zone()
	zone := a.calendar.Zone()
	l.scope.Update(func() {
		l.scope.Set(metric.UTCOffset, float64(offset), zone)
		if list := a.calendar.Holidays(); list != nil {
			l.scope.Set(metric.Holiday, metric.Flag(a.calendar.DayType(at) == localday.Holiday), zone)
			l.scope.Set(metric.HolidaysEnd, float64(list.Last(local.Location()).Unix()))
		}
		l.clocks.Set(metric.ClockSynchronized, 1)
		l.clocks.Set(metric.ClockErrorBound, l.clock.bound.Error.Seconds())
		for _, state := range clock.States() {
			l.clocks.Set(metric.ClockState, metric.Flag(state == clock.Synchronized), state.String())
		}
	})
}

// monitor is a clock whose bound the scene knows.
type monitor struct{ bound sample.Bound }

// Quality is the bound at the present packet.
func (m *monitor) Quality(instant.Time) clock.Quality {
	return clock.Quality{State: clock.Synchronized, Bound: m.bound}
}

// Run does nothing.
func (m *monitor) Run(context.Context) error { return nil }
