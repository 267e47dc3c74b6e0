package pathstate

import "time"

const (
	// Recent is the time whose packets are judged, as the alerts of paths do; a slow probe has at least recentPackets in it. Where these are too
	// few, longer times as many decide.
	Recent        = 5 * time.Minute
	recentPackets = 20
	longer        = 12
	// Hold is how long a better state, or another reason of the same state, must last before it is said: the end of an outage and the
	// first data are said at once.
	Hold = time.Minute
	// AfterTest is the time after a load test whose packets do not count: they may be sent in it, or behind its queue.
	AfterTest = 10 * time.Second
	// SlowShare is the share of the packets with a delay above the limit from which the path is degraded: the p95 is then above it.
	SlowShare = 0.05
)

// Judge decides the state of one path. The zero value has no data. It is not safe for concurrent use.
type Judge struct {
	short, long window
	last        totals
	session     uint64
	begun       time.Duration
	// tested is the end of the time whose packets do not count.
	tested time.Duration
	// ended is when what is said ceased to apply; 0: it applies.
	ended time.Duration
	said  Reason
	known bool // totals of session are in last
	any   bool // something is said
}

// Reason is what was decided last: NoData before.
func (j *Judge) Reason() Reason {
	if !j.any {
		return NoData
	}
	return j.said
}

// Decide takes the facts at a time (monotonic), and returns why the path has its state. tested: a load test fills a link of the path.
func (j *Judge) Decide(now time.Duration, f *Facts, tested bool) Reason {
	j.count(now, f, tested)
	found := j.judge(now, f)
	if !f.Decided && !f.NotRunning && j.any {
		return j.said // a session begins, at another address
	}
	j.say(now, found)
	return j.said
}

// count adds what has changed. Packets beside a load test do not count.
func (j *Judge) count(now time.Duration, f *Facts, tested bool) {
	if j.begun == 0 {
		j.begun = now
	}
	if tested {
		j.tested = now + AfterTest
	}
	short := max(Recent, recentPackets*f.Interval)
	j.short.move(now-j.begun, short)
	j.long.move(now-j.begun, longer*short)
	all := f.totals()
	if !j.known || j.session != f.Session {
		j.last, j.session, j.known = totals{}, f.Session, true
	}
	var more changes
	for i := range all {
		more[i] = int32(all[i] - j.last[i])
	}
	j.last = all
	if j.tested == 0 || now >= j.tested {
		j.short.add(&more)
		j.long.add(&more)
	}
}

// found are the reasons that apply, in the order in which they are said.
type found struct {
	all [4]Reason
	n   int
}

func (f *found) add(why Reason) {
	f.all[f.n] = why
	f.n++
}

func alone(why Reason) found { return found{[4]Reason{why}, 1} }

// judge returns the reasons of the worst state.
func (j *Judge) judge(now time.Duration, f *Facts) found {
	short, long := j.short.sum(), j.long.sum()
	trips := short[answered] + short[unanswered]
	switch {
	case f.NotRunning:
		return alone(NotRunning)
	case f.Decided && !f.Replies:
		return alone(f.Silence)
	case f.OtherHost:
		return alone(OtherHost)
	case trips == 0 && j.tested > 0 && now < j.tested+Recent: // none of its packets count
		return alone(LoadTest)
	case !f.Decided, !f.Measured && j.Reason() == NoData, trips == 0:
		return alone(NoData)
	}
	var bad, open found
	add := func(o outcome, why, unless Reason) {
		switch o {
		case above:
			bad.add(why)
		case doubtful:
			open.add(unless)
		case within:
		}
	}
	if o := share(roundTrips(&short), roundTrips(&long), f.MaxLoss); o != within {
		for i, why := range [...]Reason{LossForward, LossReverse} {
			if f.Ways[i].LossKnown && share(losses(&short, i), losses(&long, i), f.MaxLoss) == above {
				bad.add(why)
			}
		}
		if bad.n == 0 {
			add(o, Loss, FewPackets)
		}
	}
	for i, why := range [...]Reason{DelayForward, DelayReverse} {
		o, unless := delay(f, i, &short, &long)
		add(o, why, unless)
	}
	switch {
	case bad.n > 0:
		return bad
	case open.n > 0:
		return open
	}
	return alone(None)
}

// roundTrips are those without a reply, except for the packets that a receiving host dropped.
func roundTrips(sum *[countsSize]float64) counted {
	n := max(0, sum[unanswered]-sum[dropped]-sum[ofWay+dropped])
	return counted{sum[answered] + n, n, n}
}

// losses are the losses of a direction; packets without an outcome may be lost.
func losses(sum *[countsSize]float64, way int) counted {
	s := sum[way*ofWay:]
	return counted{s[received] + s[lost] + s[undecided], s[lost], s[lost] + s[undecided]}
}

// delay judges the delays of a direction; why is why that is in doubt.
func delay(f *Facts, way int, short, long *[countsSize]float64) (o outcome, why Reason) {
	s, l := short[way*ofWay:], long[way*ofWay:]
	switch {
	case f.Clockless || s[delays] == 0:
		return within, None
	case f.ClockWrong:
		return doubtful, ClockWrong
	case f.MinimumWrong:
		return doubtful, PathMinimum
	}
	limits := func(more func(s []float64) float64) outcome {
		return share(counted{s[delays], s[slow], s[slow] + more(s)}, counted{l[delays], l[slow], l[slow] + more(l)}, SlowShare)
	}
	if o = limits(func(s []float64) float64 { return s[maybeSlow] + s[unbounded] }); o != doubtful {
		return o, None
	}
	switch {
	case limits(func(s []float64) float64 { return s[maybeSlow] }) == within:
		return o, f.Ways[way].Why
	case limits(func([]float64) float64 { return 0 }) == within:
		return o, BoundTooWide
	}
	return o, FewPackets
}

// say takes what applies now. A worse state, the end of an outage and the first data are said at once.
func (j *Judge) say(now time.Duration, all found) {
	is := all.all[0]
	for _, r := range all.all[:all.n] {
		if j.any && r == j.said {
			is = r // a reason stays as long as it applies
		}
	}
	said := j.Reason()
	atOnce := !j.any || is.State() > said.State() || said == NoData || said.State() == Down && is.State() < Down
	switch {
	case is == said && j.any:
		j.ended = 0
		return
	case !atOnce && j.ended == 0:
		j.ended = now
		return
	case !atOnce && now-j.ended < Hold:
		return
	}
	j.said, j.ended, j.any = is, 0, true
}
