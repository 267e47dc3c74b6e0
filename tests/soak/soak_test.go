package soak

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/tests/await"
	"oneway.example/tests/lab"
	"oneway.example/tests/program"
	"oneway.example/tests/testseed"
)

const (
	// scrapeEvery is the interval of the scrapes.
	scrapeEvery = 5 * time.Second
	// recovery is how long after a fault its path may be down: a reply comes within a second,
	// what is in the queue or held back within another; the rest is for a busy machine.
	recovery = 6 * time.Second
	// settling is before the first fault and after the last.
	settling = 20 * time.Second
	// published is how old what a scrape shows may be: a path's counts are published once a second.
	published = 2 * time.Second
	// judged is the least time over which a slope is asserted: in less, the first faults of
	// their kinds still fill histograms that were empty.
	judged = 8 * time.Minute
	// heapGrowth is the part of itself that what is alive may grow by in the later half of the run, however
	// long that is: all that is filled for the first time is filled by then, but for the rarest
	// buckets of histograms.
	heapGrowth = 0.05
	// rssGrowth is that of the resident set, which has pages of the program's file that are used for the
	// first time as well, and what the allocator cannot give back.
	rssGrowth = 0.2
)

// record is what the scrapes of one agent have shown.
type record struct {
	mu                           sync.Mutex
	rss, heap, files, goroutines []point
	descriptors, tasks           float64 // the least before the first fault; tasks are goroutines
	scrapes, failed, quiet       int
	up                           map[string]int // of the quiet scrapes, by path
	longest                      time.Duration
	unconserved, all             int
}

func TestSoak(t *testing.T) {
	lasts := duration(t)
	seed := testseed.Of(t)
	s := newSite(t, seed)
	clients, servers := &record{up: map[string]int{}}, &record{up: map[string]int{}}
	await.That(t, "every path is up", func() bool {
		now, err := s.client.scrape(t.Context())
		return err == nil && countUp(now) == voices
	})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var watchers sync.WaitGroup
	watchers.Go(func() { s.watch(ctx, clients, func() *agent { return s.client }) })
	watchers.Go(func() { s.watch(ctx, servers, s.server.Load) })
	s.pause(settling)
	clients.settled()
	servers.settled()
	s.storm(lasts)
	s.pause(settling)
	cancel()
	watchers.Wait()

	await.That(t, "every path is up again", func() bool {
		now, err := s.client.scrape(t.Context())
		return err == nil && countUp(now) == voices
	})
	table := newTable()
	s.coverage(clients, table)
	s.accounts(table)
	for _, a := range []struct {
		name string
		*record
		now func() *agent
	}{{"client", clients, func() *agent { return s.client }}, {"server", servers, s.server.Load}} {
		s.memory(a.name+" heap", a.heap, heapGrowth, lasts, table)
		s.memory(a.name+" RSS", a.rss, rssGrowth, lasts, table)
		s.level(a.name, a.record, a.now(), table)
	}
	s.words()
	t.Logf("seed %d, %v of faults; %d scrapes of the client and %d of the server, the longest %v and %v\n%s",
		seed, lasts, clients.scrapes, servers.scrapes, clients.longest.Round(time.Millisecond), servers.longest.Round(time.Millisecond), table)
}

// storm makes faults until the time is over: all of them in an order by chance, and again. The server is
// killed in the first half only, so that its memory in the second is that of one process.
func (s *site) storm(lasts time.Duration) {
	begin := time.Now()
	var deck []fault
	for time.Since(begin) < lasts && s.t.Context().Err() == nil {
		if len(deck) == 0 {
			deck = faults()
			s.random.Shuffle(len(deck), func(i, k int) { deck[i], deck[k] = deck[k], deck[i] })
		}
		next := deck[0]
		deck = deck[1:]
		if next.name == killed && time.Since(begin) > lasts*2/5 {
			continue
		}
		s.fault(next)
		s.pause(s.between(10*time.Second, 16*time.Second))
	}
}

// watch scrapes an agent until ctx ends.
func (s *site) watch(ctx context.Context, r *record, which func() *agent) {
	tick := time.NewTicker(scrapeEvery)
	defer tick.Stop()
	for {
		begin := time.Now()
		now, err := which().scrape(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			s.keep(r, now)
		case which() == s.client || !s.disturbed(stopped, begin, time.Now(), 0) && !s.disturbed(killed, begin, time.Now(), 0):
			s.t.Errorf("a scrape at %s failed, and no fault explains it: %v", begin.Format(time.TimeOnly), err)
		default:
			r.failed++
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// keep adds a scrape to the record, and asserts what holds in each.
func (s *site) keep(r *record, now *scrape) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scrapes++
	r.longest = max(r.longest, now.end.Sub(now.begin))
	r.rss = append(r.rss, point{now.begin, now.rss})
	r.heap = append(r.heap, point{now.begin, now.heap})
	r.files = append(r.files, point{now.begin, now.descriptors})
	r.goroutines = append(r.goroutines, point{now.begin, now.goroutines})
	for name, p := range now.paths {
		for i, d := range p.directions {
			r.all++
			if d.conserved() {
				continue
			}
			if r.unconserved++; r.unconserved <= 10 {
				s.t.Errorf("%s, direction %d: sent %v, received %v, lost %v, dropped by hosts %v, outstanding %v", name, i, d.sent, d.received, d.lost, d.hostDropped, d.outstanding)
			}
		}
	}
	if s.disturbed("", now.begin, now.end, recovery) {
		return
	}
	r.quiet++
	for name, p := range now.paths {
		if p.up {
			r.up[name]++
		}
	}
}

// settled keeps the level of descriptors and goroutines before the first fault: without a run of a load
// test, which some scrapes have seen.
func (r *record) settled() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.descriptors, r.tasks = least(r.files), least(r.goroutines)
}

func least(all []point) float64 {
	l := math.Inf(1)
	for _, p := range all {
		l = min(l, p.value)
	}
	return l
}

func countUp(s *scrape) (n int) {
	for _, p := range s.paths {
		if p.up {
			n++
		}
	}
	return n
}

// coverage asserts that paths were up while nothing was wrong. One that is down in a quarter of those scrapes
// has not come back from some fault in time.
func (s *site) coverage(r *record, b *table) {
	lowest := r.quiet
	for i := range voices {
		up := r.up[name(i)]
		if lowest = min(lowest, up); up*4 < r.quiet*3 {
			s.t.Errorf("%s was up in %d of %d scrapes without a fault", name(i), up, r.quiet)
		}
	}
	b.row("paths up, without a fault", "", fmt.Sprintf("%d of %d scrapes at the least", lowest, r.quiet), "", ">= 3/4", verdict(lowest*4 >= r.quiet*3))
	b.row("sent = received + lost + ...", "", fmt.Sprintf("%d of %d not", r.unconserved, r.all), "", "0", verdict(r.unconserved == 0))
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAILED"
}

// accounts holds what the client counts against what the link has counted before and after the scrape.
// What was counted meanwhile makes no difference once they agree.
func (s *site) accounts(b *table) {
	var wrong []string
	var before, after [2]map[uint64]lab.Counts
	var now *scrape
	for deadline := time.Now().Add(program.Timeout); ; {
		before = s.truth()
		s.pause(published)
		var err error
		if now, err = s.client.scrape(s.t.Context()); err != nil {
			s.t.Error(err)
			return
		}
		s.pause(100 * time.Millisecond) // what was sent before the scrape has reached the link
		after = s.truth()
		if wrong = s.compare(now, before, after); len(wrong) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for i, w := range wrong {
		if i < 10 {
			s.t.Error(w)
		}
	}
	b.row("paths against the link's count", "", fmt.Sprintf("%d of %d statements wrong", len(wrong), 7*len(unsharedPaths())), "", "0", verdict(len(wrong) == 0))
	for i, d := range []string{"forward", "reverse"} {
		var told direction
		for _, p := range now.paths {
			told.sent += p.directions[i].sent
			told.received += p.directions[i].received
			told.lost += p.directions[i].lost
			told.hostDropped += p.directions[i].hostDropped
		}
		b.row(d+" packets", "", fmt.Sprintf("sent %.0f, received %.0f, lost %.0f, dropped by hosts %.0f", told.sent, told.received, told.lost, told.hostDropped), "", "", "")
	}
}

// compare tells what the link contradicts. It cannot tell what a host has dropped; but what did not
// arrive was not received, and what is lost did not arrive or came while the server was away.
func (s *site) compare(now *scrape, before, after [2]map[uint64]lab.Counts) (wrong []string) {
	arrived := func(c lab.Counts) float64 { return float64(c.Delivered - c.Corrupted) }
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range unsharedPaths() {
		p, key := now.paths[name(i)], uint64(i)
		if p == nil {
			wrong = append(wrong, name(i)+" is not exported")
			continue
		}
		forward, reverse := p.directions[0], p.directions[1]
		early, late := [2]lab.Counts{before[0][key], before[1][key]}, [2]lab.Counts{after[0][key], after[1][key]}
		missing := func(d int) float64 { return float64(late[d].Entered) - arrived(early[d]) + float64(s.gaps[key]) }
		for _, one := range []struct {
			what   string
			holds  bool
			a, b   float64
			number int
		}{
			{"sent forward, and what entered before the scrape", forward.sent >= float64(early[0].Entered), forward.sent, float64(early[0].Entered), i},
			{"sent forward, and what entered until after it", forward.sent <= float64(late[0].Entered), forward.sent, float64(late[0].Entered), i},
			{"received forward, and what arrived", forward.received <= arrived(late[0]), forward.received, arrived(late[0]), i},
			{"lost forward, and what did not arrive or came while the server was away", forward.lost <= missing(0), forward.lost, missing(0), i},
			{"sent reverse, and what entered", reverse.sent <= float64(late[1].Entered), reverse.sent, float64(late[1].Entered), i},
			{"received reverse, and what arrived", reverse.received <= arrived(late[1]), reverse.received, arrived(late[1]), i},
			{"lost reverse, and what did not arrive or came while the server was away", reverse.lost <= missing(1), reverse.lost, missing(1), i},
		} {
			if !one.holds {
				wrong = append(wrong, fmt.Sprintf("%s: %s: %v, %v", name(i), one.what, one.a, one.b))
			}
		}
	}
	return wrong
}

// memory asserts that a quantity does not grow by more than a part of itself in the later half of the run. Four standard errors are given to
// chance.
func (s *site) memory(what string, all []point, growth float64, lasts time.Duration, b *table) {
	if len(all) == 0 {
		s.t.Errorf("%s: no scrape", what)
		return
	}
	slope, deviation, ok := fit(all)
	bound := growth * all[len(all)/2].value / (lasts / 2).Seconds()
	said := "not judged: needs " + judged.String()
	switch {
	case !ok:
		said = "not judged: too few scrapes"
	case lasts >= judged:
		grows := slope-4*deviation > bound
		said = verdict(!grows)
		if grows {
			s.t.Errorf("%s grows by %s a minute (+- %s), more than %s", what, mib(60*slope), mib(60*deviation), mib(60*bound))
		}
	}
	b.row(what, mib(all[0].value), mib(all[len(all)-1].value), mib(60*slope)+" +- "+mib(60*deviation), mib(60*bound), said)
}

// level asserts that descriptors and goroutines come back to where they were. A run of a load test, or an
// attacker's connection that is about to end, may take some for a while.
func (s *site) level(who string, r *record, a *agent, b *table) {
	if math.IsInf(r.descriptors, 0) {
		s.t.Errorf("%s: no scrape before the first fault", who)
		return
	}
	const files, goroutines = 5, 10 // connections of scrapes, and a lookup
	var now *scrape
	back := func() bool {
		return now.descriptors <= r.descriptors+files && now.goroutines <= r.tasks+goroutines
	}
	for deadline := time.Now().Add(program.Timeout); ; s.pause(time.Second) {
		var err error
		if now, err = a.scrape(s.t.Context()); err != nil {
			s.t.Error(err)
			return
		}
		if back() || time.Now().After(deadline) {
			break
		}
	}
	for _, row := range []struct {
		what               string
		begin, end, margin float64
	}{{"descriptors", r.descriptors, now.descriptors, files}, {"goroutines", r.tasks, now.goroutines, goroutines}} {
		ok := row.end <= row.begin+row.margin
		if !ok {
			s.t.Errorf("%s has %v %s, %v before the first fault", who, row.end, row.what, row.begin)
		}
		b.row(who+" "+row.what, fmt.Sprint(row.begin), fmt.Sprint(row.end), "", fmt.Sprint(row.begin+row.margin), verdict(ok))
	}
}

// words asserts that no agent has panicked, nor reported an error that no fault explains: those of a state
// directory that cannot be written.
func (s *site) words() {
	explained := []string{"is not kept", "is not stored", "not kept", "cannot be kept", "cannot be removed"}
	for _, said := range append(s.said, s.client.Stderr.String(), s.server.Load().Stderr.String()) {
		for line := range strings.Lines(said) {
			bad := strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic") || strings.HasPrefix(line, "fatal error")
			for _, e := range explained {
				if bad && strings.Contains(line, e) && strings.Contains(line, "read-only file system") {
					bad = false
				}
			}
			if bad {
				s.t.Errorf("a line of the log that no fault explains: %.500s", line)
			}
		}
	}
}
