package scene

import (
	"math"
	"math/rand/v2"
	"time"

	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/sample"
)

// Weather is the state of a path, from hour to hour. Make one with Scene.Weather; it is not safe for concurrent use.
type Weather struct {
	scene    *Scene
	path     *Path
	calendar localday.Calendar
	rng      *rand.Rand
	// noise is the slow state of the queue, an autoregressive process of hours.
	noise float64
	ways  [2]way
	// The next faults.
	outages []Span
	bursts  []Burst
	slow    bool // in the hours of Effect
}

// way is one direction in the present hour.
type way struct {
	floor, queue float64 // in ns: of the shortest delay, and the mean above it
	losing       bool
}

// Weather begins the weather of a path.
func (s *Scene) Weather(p *Path, calendar localday.Calendar) *Weather {
	return &Weather{scene: s, path: p, calendar: calendar, rng: s.rng("packets of " + p.Name), outages: s.Outages[p.Name], bursts: s.Bursts[p.Name]}
}

// access is the one-way delay without a queue and the mean queue of an access network, in ms.
func access(name string) (floor, queue, loss float64) {
	switch name {
	case "lte":
		return 22, 6, 4e-4
	case "umts":
		return 65, 18, 2e-3
	case "wifi":
		return 4, 2.5, 1e-3
	}
	return 1.5, 0.3, 5e-5
}

// Busy hours by local time: 18:00 to 22:00.
const (
	busyFrom  = 18
	busyUntil = 22
)

// Hour begins an hour of local time.
func (w *Weather) Hour(begin time.Time) {
	local := w.calendar.Local(begin)
	day := w.calendar.DayType(begin)
	p := w.path
	w.noise = 0.9*w.noise + 0.08*w.rng.NormFloat64()
	queue := math.Exp(w.noise)
	evening := local.Hour() >= busyFrom && local.Hour() < busyUntil && day == localday.Weekday
	w.slow = p.Kind == Effect && evening
	switch {
	case day != localday.Weekday:
		queue *= p.Weekend
	case evening:
		queue *= p.Busy
	}
	year := 2 * math.Pi * float64(local.YearDay()) / 365.25
	factor := 1 + p.Season*math.Cos(year)
	if w.slow {
		factor *= 1.2
		queue *= 1.2
	}
	near, nearQueue, _ := access(p.From.Access)
	far, farQueue, _ := access(p.To.Access)
	floor := (near + far + math.Abs(p.From.East-p.To.East)) * factor * 1e6
	for _, r := range w.scene.Routes[p.Name] {
		if !r.At.After(begin) {
			floor += float64(r.Step)
		}
	}
	// The uplink of an access network is the slower one.
	w.ways[sample.Forward] = way{floor: floor * 1.04, queue: (nearQueue*1.3 + farQueue) * queue * 1e6, losing: w.ways[sample.Forward].losing}
	w.ways[sample.Reverse] = way{floor: floor, queue: (nearQueue + farQueue*1.3) * queue * 1e6, losing: w.ways[sample.Reverse].losing}
	for len(w.outages) > 0 && !w.outages[0].End.After(begin) {
		w.outages = w.outages[1:]
	}
	for len(w.bursts) > 0 && !w.bursts[0].End.After(begin) {
		w.bursts = w.bursts[1:]
	}
}

// Packet is what happened to a packet and its reply.
type Packet struct {
	Forward, Reverse time.Duration
	// Lost tells in which direction it was lost, if it was.
	Lost   bool
	LostIn sample.Direction
}

// Packet is the next packet, sent at t.
func (w *Weather) Packet(t time.Time) (v Packet) {
	for i := 0; i < len(w.outages) && !w.outages[i].Begin.After(t); i++ {
		if w.outages[i].Has(t) {
			return Packet{Lost: true, LostIn: sample.Forward}
		}
	}
	share := 0.0
	for i := 0; i < len(w.bursts) && !w.bursts[i].Begin.After(t); i++ {
		if w.bursts[i].Has(t) {
			share = w.bursts[i].Share
		}
	}
	for _, dir := range sample.Directions() {
		if w.lost(dir, share) {
			return Packet{Lost: true, LostIn: dir}
		}
	}
	v.Forward, v.Reverse = w.delay(sample.Forward), w.delay(sample.Reverse)
	return v
}

// lost decides about a packet of one direction. Losses have runs (Gilbert 1960): a run ends with a packet with a chance of a half.
func (w *Weather) lost(dir sample.Direction, share float64) bool {
	_, _, near := access(w.path.From.Access)
	_, _, far := access(w.path.To.Access)
	p := near + far + share
	state := &w.ways[dir].losing
	if *state {
		*state = w.rng.Float64() < 0.5
	} else {
		*state = w.rng.Float64() < p/2
	}
	return *state
}

// delay is of one packet: the floor, and a queue that is empty for a fifth of the packets and much longer for one in a hundred.
func (w *Weather) delay(dir sample.Direction) time.Duration {
	way := &w.ways[dir]
	queue := w.rng.ExpFloat64() * way.queue
	switch x := w.rng.Float64(); {
	case x < 0.2:
		queue *= 0.05
	case x > 0.99:
		queue *= 6
	}
	return time.Duration(way.floor + queue)
}

// Throughput is of a run in the present hour, in bytes per second.
func (w *Weather) Throughput() float64 {
	r := w.path.Runs
	v := r.Mean + r.Spread*w.rng.NormFloat64()
	if w.slow {
		v *= 0.8
	}
	return max(v, r.Mean/10) / 8
}

// Bound is the clock error bound of a site at t.
func (s *Scene) Bound(site string, t time.Time) time.Duration {
	const usual = 150 * time.Microsecond
	if site != s.WorseClock || !s.WorseClockSpan.Has(t) {
		return usual
	}
	done := float64(t.Sub(s.WorseClockSpan.Begin)) / float64(s.WorseClockSpan.End.Sub(s.WorseClockSpan.Begin))
	return usual + time.Duration(done*float64(20*time.Millisecond)).Truncate(time.Microsecond)
}
