// Package scene is the mesh whose history is made: its sites, its paths, and what happens to them in each hour. All of it follows from a
// seed: the same seed and times give the same packets.
package scene

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"oneway.example/exporter/core/localday"
)

// Site is a place with an agent.
type Site struct {
	// Name is the label site and, with the port of agents, the label instance.
	Name string
	// Access is the kind of its access network: fiber, lte, wifi or umts.
	Access string
	// Zone is its time zone.
	Zone string
	// Holidays has the days of its list of holidays, as dates; empty: there is no list.
	Holidays []string `json:"-"`
	// East is its place on a line around the world, in ms of light in fiber, one way.
	East float64
}

// Sites are the sites of the mesh, in the order in which paths are added.
func Sites() []Site {
	return []Site{
		{Name: "berlin", Access: "fiber", Zone: "Europe/Berlin", East: 0, Holidays: days("01-01", "05-01", "10-03", "12-25", "12-26")},
		{Name: "newyork", Access: "lte", Zone: "America/New_York", East: -38, Holidays: days("01-01", "07-04", "11-26", "12-25")},
		{Name: "kolkata", Access: "umts", Zone: "Asia/Kolkata", East: 42, Holidays: days("01-26", "08-15", "10-02")},
		{Name: "kathmandu", Access: "wifi", Zone: "Asia/Kathmandu", East: 45},
		{Name: "seoul", Access: "fiber", Zone: "Asia/Seoul", East: 70, Holidays: days("01-01", "03-01", "08-15", "10-03", "12-25")},
	}
}

// days are these days of the years that a history may have.
func days(monthDays ...string) (all []string) {
	for year := 2020; year <= 2040; year++ {
		for _, d := range monthDays {
			all = append(all, fmt.Sprintf("%d-%s", year, d))
		}
	}
	return all
}

// Kind is what a path shows.
type Kind string

// The kinds.
const (
	// Ordinary paths have seasons, busy hours or quiet weekends by their access.
	Ordinary Kind = "ordinary"
	// Effect is 20 % slower from 18:00 to 22:00 on weekdays, in delay and in throughput, and does not know the time otherwise.
	Effect Kind = "effect"
	// Constant does not know the time at all: neither hours nor days nor seasons, faults or routes.
	Constant Kind = "constant"
)

// Runs are the TCP runs of a path.
type Runs struct {
	// PerDay is their number a day, at equal times; 0: there are none.
	PerDay int
	// Mean and Spread (standard deviation) are of the throughput of a run, in bits per second.
	Mean, Spread float64
}

// Path is a path of the mesh.
type Path struct {
	Name     string
	From, To Site
	Kind     Kind
	// Busy is the factor of the queue in the busy hours of weekdays, Weekend is its factor on weekends; 1: no difference.
	Busy, Weekend float64
	// Season is the amplitude of the yearly drift of the floor, as a share of it.
	Season float64
	Runs   Runs
}

// Labels are the labels of the path, as a configuration gives them: site and access are of the remote host, as in a mesh.
func (p *Path) Labels() map[string]string {
	return map[string]string{"site": p.To.Name, "access": p.To.Access, "from_site": p.From.Name, "from_access": p.From.Access, "shows": string(p.Kind)}
}

// Paths are the first paths of the mesh: each site to each other one, the sites in turn; at most 20.
func Paths(most int) (all []Path) {
	sites := Sites()
	for step := 1; step < len(sites); step++ {
		for i, from := range sites {
			to := sites[(i+step)%len(sites)]
			p := Path{Name: from.Name + "-to-" + to.Name, From: from, To: to, Kind: Ordinary, Busy: 1, Weekend: 1, Season: 0.04}
			switch from.Access {
			case "lte", "umts":
				p.Busy, p.Weekend = 3, 1.4
			case "wifi":
				p.Busy, p.Weekend = 1.6, 0.5
			}
			all = append(all, p)
		}
	}
	for i := range all {
		switch all[i].Name {
		case "berlin-to-newyork":
			all[i].Kind, all[i].Runs = Effect, Runs{24, 0.9e6, 0.1e6} // one a minute of New Reno each hour (Halepovic 2008, figure 15)
		case "newyork-to-kolkata":
			all[i].Kind, all[i].Runs = Constant, Runs{48, 341e3, 27e3} // each half an hour (WPI 2006, figures 2 and 3)
		case "kolkata-to-kathmandu", "seoul-to-berlin":
			all[i].Runs = Runs{24, 0.9e6, 0.1e6}
		}
		if all[i].Kind != Ordinary {
			all[i].Busy, all[i].Weekend, all[i].Season = 1, 1, 0
		}
	}
	return all[:min(most, len(all))]
}

// Span is a time from Begin until before End.
type Span struct {
	Begin, End time.Time
}

// Has reports whether t is in it.
func (s Span) Has(t time.Time) bool { return !t.Before(s.Begin) && t.Before(s.End) }

// Overlaps reports whether both have a time in common.
func (s Span) Overlaps(o Span) bool { return s.Begin.Before(o.End) && o.Begin.Before(s.End) }

// Route is a change of route: from At on the floor of both directions differs by Step.
type Route struct {
	At   time.Time
	Step time.Duration
}

// Burst is a time with losses.
type Burst struct {
	Span
	// Share is the share of the packets that are lost, in bursts.
	Share float64
}

// Scene is a mesh with its faults within a time.
type Scene struct {
	Span
	Seed  uint64
	Paths []Path
	// Outages, Bursts and Routes are by the name of the path, in the order of time.
	Outages map[string][]Span
	Bursts  map[string][]Burst
	Routes  map[string][]Route
	// Off are the times in which an agent does not run, by site: restarts take a minute, a gap days.
	Off map[string][]Span
	// WorseClock is the site whose clock has a growing error bound, and when.
	WorseClock     string
	WorseClockSpan Span
	// Named are the UTC days with a packet a second and a scrape each 15 s; at a site they begin at its first full hour.
	Named []time.Time
}

// rng is a source of random numbers for one purpose.
func (s *Scene) rng(purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(s.Seed, h.Sum64()))
}

// New makes a scene of the first paths of the mesh over a number of days until end, a UTC midnight, with at most a number of named days.
func New(seed uint64, paths, howMany, named int, end time.Time) *Scene {
	end = end.UTC().Truncate(24 * time.Hour)
	s := &Scene{
		Span: Span{end.AddDate(0, 0, -howMany), end}, Seed: seed, Paths: Paths(paths),
		Outages: map[string][]Span{}, Bursts: map[string][]Burst{}, Routes: map[string][]Route{}, Off: map[string][]Span{},
		WorseClock: "kathmandu",
	}
	s.WorseClockSpan = Span{s.at(0.55), s.at(0.75)}
	shared := s.spans(s.rng("site outages"), 400, 20*time.Minute, 2*time.Hour)
	for i := range s.Paths {
		if p := &s.Paths[i]; p.Kind != Constant {
			s.faults(p)
			if p.From.Name == "kathmandu" || p.To.Name == "kathmandu" {
				s.Outages[p.Name] = append(s.Outages[p.Name], shared...)
				slices.SortFunc(s.Outages[p.Name], func(a, b Span) int { return a.Begin.Compare(b.Begin) })
			}
		}
	}
	for _, site := range Sites() {
		rng := s.rng("restarts of " + site.Name)
		s.Off[site.Name] = s.spans(rng, 80, 20*time.Second, 90*time.Second)
	}
	if howMany >= 100 {
		gap := Span{s.at(0.3).Truncate(time.Hour).Add(17 * time.Minute), s.at(0.3).Truncate(time.Hour).Add(3*24*time.Hour + 41*time.Minute)}
		off := slices.DeleteFunc(s.Off["kathmandu"], gap.Overlaps)
		s.Off["kathmandu"] = append(off, gap)
		slices.SortFunc(s.Off["kathmandu"], func(a, b Span) int { return a.Begin.Compare(b.Begin) })
	}
	s.Named = s.namedDays(named)
	return s
}

// at is a time within the scene.
func (s *Scene) at(share float64) time.Time {
	return s.Begin.Add(time.Duration(share * float64(s.End.Sub(s.Begin)))).Truncate(time.Second)
}

// spans are times without overlap, one in so many days on average, of a length between two.
func (s *Scene) spans(rng *rand.Rand, everyDays float64, least, most time.Duration) (all []Span) {
	for t := s.Begin; ; {
		t = t.Add(time.Duration(rng.ExpFloat64()*everyDays*24*float64(time.Hour)) + 3*time.Hour).Truncate(time.Second)
		length := least + time.Duration(rng.Float64()*float64(most-least)).Truncate(time.Second)
		if !t.Add(length).Before(s.End) {
			return all
		}
		all = append(all, Span{t, t.Add(length)})
		t = t.Add(length)
	}
}

// faults adds the faults of a path.
func (s *Scene) faults(p *Path) {
	rng := s.rng("faults of " + p.Name)
	s.Outages[p.Name] = s.spans(rng, 60, 5*time.Minute, 3*time.Hour)
	for _, span := range s.spans(rng, 12, 2*time.Minute, 40*time.Minute) {
		s.Bursts[p.Name] = append(s.Bursts[p.Name], Burst{span, 0.05 + 0.25*rng.Float64()})
	}
	if p.Kind == Effect {
		return
	}
	for _, span := range s.spans(rng, 130, time.Minute, 2*time.Minute) {
		step := time.Duration((4 + 12*rng.Float64()) * float64(time.Millisecond)).Truncate(time.Microsecond)
		if rng.IntN(2) == 0 {
			step = -step / 2
		}
		s.Routes[p.Name] = append(s.Routes[p.Name], Route{span.Begin, step})
	}
}

// namedDays are the last day, the days on which a zone changes its clock, and others at equal distances.
func (s *Scene) namedDays(most int) (all []time.Time) {
	add := func(t time.Time) {
		day := t.UTC().Truncate(24 * time.Hour)
		if s.Has(day) && !slices.ContainsFunc(all, day.Equal) && len(all) < most {
			all = append(all, day)
		}
	}
	add(s.End.Add(-time.Hour))
	for _, site := range Sites() {
		zone, err := time.LoadLocation(site.Zone)
		if err != nil {
			continue
		}
		for day := s.Begin; day.Before(s.End); day = day.Add(24 * time.Hour) {
			if _, before := day.In(zone).Zone(); before != offset(day.Add(24*time.Hour), zone) {
				add(day)
			}
		}
	}
	for i := 1; len(all) < most && i < 4*most; i++ {
		add(s.at(float64(i) / float64(4*most) * 0.99))
		add(s.at(1 - float64(i)/float64(most+1)))
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

func offset(t time.Time, zone *time.Location) int {
	_, o := t.In(zone).Zone()
	return o
}

// Calendar is the calendar of a site.
func Calendar(site Site) (localday.Calendar, error) {
	holidays, err := holidaysOf(site)
	if err != nil {
		return localday.Calendar{}, err
	}
	c, err := localday.New(site.Zone, holidays)
	if err != nil {
		return c, fmt.Errorf("scene: zone of %s %w", site.Name, err)
	}
	return c, nil
}
