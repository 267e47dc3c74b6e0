// Package incident keeps the last minutes of the packets of each light probe, so that the packets of a path before
// and during a fault are available one by one.
//
// # Stored packets
//
// A ring for each probe of a path holds number, send time, outcome, both delays with their bounds or the reason why
// there are none, and the round trip: 20 to 26 bytes a packet. It holds the last 10 minutes, in at most 96 KiB:
// enough for 6 packets a second, or for somewhat more than a minute of 50 packets a second. All rings together take
// at most 32 MiB, and less if the memory limit requires it (memlimit.Buffer); above some 340
// busy probes each has less.
//
// # Reports
//
// A report is made on request, and when delay or loss rises above its baseline. Packets are judged in windows of at
// least 10 s and 30 packets.
//
// Delay, of each direction and of the round trip, is represented by the window's median, which neither a few late
// packets nor a heavy tail changes: half of the window must be late. Its baseline is 256 upper ends of delays
// (delay plus bound) of the last hour, replaced at random such that there are fewer of older ones. The delay has
// risen when the median less the median bound exceeds both the quantile 0.98 of the baseline, and the baseline's
// median by a quarter of it and by 2 ms. This subtracts what the clocks' bounds may explain, so that a clock that
// varies within its bound is no incident. A window with a delay that is negative by more than its bound, which proves
// a clock wrong, has no delays of a direction, nor do those within sample.FaultTime after it. The round trip has no such bound, and is judged even if the clocks are
// not trusted. Order statistics do not depend on the distribution of the noise: the median of 30 independent delays
// exceeds that quantile by chance in one of some 10^9 windows, that of 24, the fewest, in one of 10^8.
//
// Loss is the window's share of packets without a reply within the loss timeout. It has risen when it is at least 1
// % of the packets above the baseline (the last hour, by exponential weights), and so many losses are improbable at
// the baseline's ratio: by at most exp(-23), some 10^-10 (Chernoff's bound). Packets lost together are one event,
// so the exponent is divided by the baseline's index of dispersion, the sum of the squares of its bursts' lengths
// over its losses. If the lengths of bursts have no limit, long ones are incidents.
//
// There is no judgment before a baseline of 5 minutes. A window in which a load test used a link of the path, or
// that began less than 10 s after one, does not count. Delays of different eras of the clocks have no difference: a
// step restarts their baselines. While a quantity is above its baseline, the baseline does not change, and the
// quantity makes no further report. It is back after a window near the baseline (delay: less than half of the
// increase; loss: not distinguishable from it). After 30 minutes above it a new baseline begins.
//
// # Floors
//
// The floor of a path is its smallest round trip, which no clock changes. It has moved when the smallest round trip of each of three
// blocks of 5 minutes is above, or below, the median of these of the hour before by more than 5 ms and a fifth of it. A block has at
// least 10 packets, and no load test on a link of the path. After it, these three blocks are all that is known of the path.
//
// # Limits of reports
//
// A path makes at most one report in 10 minutes, whatever the quantity; all paths together make at most 20 at one
// time, and one a minute after that. Reports of this kind take at most a part of the directory (report.IncidentShare).
package incident

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"oneway.example/exporter/agent/eventlog"
	"oneway.example/exporter/core/event"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/memlimit"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/report"
)

// Span is the time of the packets that a report has.
const Span = 10 * time.Minute

// Limits of memory.
const (
	perPath  = 96 << 10 // bytes of a ring
	allPaths = 32 << 20 // of all rings, less if the memory limit requires it: memlimit.Buffer
	smallest = 512      // bytes of a ring, for any number of rings
)

// Limits of rates.
const (
	takeInterval    = 100 * time.Millisecond
	pathInterval    = 10 * time.Minute // between triggered reports of a path
	allInterval     = time.Minute      // between those of all paths
	allBurst        = 20
	requestInterval = 10 * time.Second // between those on request
	requestBurst    = 6
)

// queue is the number of packets that may wait for a Supervisor, a megabyte; 40,000 a second fit.
const queue = 4096

// batchPackets is how many packets are taken from the queue at one time.
const batchPackets = 256

// listener is the metric label's value for the packets that a Supervisor misses.
const listener = "incident"

// Errors of Store.
var (
	// ErrUnknown: there is no such light probe, the path has several and none was named, or its profile is slim.
	ErrUnknown = errors.New("incident: no such light probe, the path has several and none was named, or its profile is slim")
	// ErrNoPackets: the probe has sent nothing in the last minutes.
	ErrNoPackets = errors.New("incident: no packets were sent in the last minutes")
	// ErrTooMany: the requests exceed one in requestInterval.
	ErrTooMany = fmt.Errorf("incident: too many requests; one in %v is allowed", requestInterval)
	// ErrNoDirectory: reports are not stored.
	ErrNoDirectory = errors.New("incident: reports.dir is empty; it must be a directory")
)

// Path is a light probe of a path whose packets are kept.
type Path struct {
	// Path and Probe are the metric labels; Peer is as configured.
	Path, Probe, Peer string
}

// Options of a Supervisor; all but Events are required.
type Options struct {
	Recorder *record.Recorder
	Reports  *report.Store
	Sink     metric.Sink
	// Tested returns the paths that load tests of the last seconds affect, and when each was last affected.
	Tested func() map[string]time.Time
	// Events receives what happens to the paths; nil: nobody does.
	Events *eventlog.Log
	Log    *slog.Logger
}

// Supervisor keeps the last minutes of light probes' packets. Its methods are safe for
// concurrent use. Make one with New.
type Supervisor struct {
	options             Options
	space               int // bytes of all rings
	requests, triggered *rate.Limiter

	mu    sync.Mutex
	paths map[name]*path
}

type name struct{ path, probe string }

// path is the state of one probe.
type path struct {
	Path
	ring  ring
	judge judge
	floor floor
	// restarts is the number of restarts of the remote end, by the last packet; seen: there was one.
	restarts uint64
	seen     bool
	reported time.Time
	series   *metric.Scope
}

// New makes a supervisor without paths.
func New(o Options) *Supervisor {
	return &Supervisor{
		options: o, space: memlimit.Buffer(allPaths), paths: map[name]*path{},
		triggered: rate.NewLimiter(rate.Every(allInterval), allBurst), requests: rate.NewLimiter(rate.Every(requestInterval), requestBurst),
	}
}

// SetPaths sets the probes. Packets of remaining ones are kept.
func (s *Supervisor) SetPaths(all []Path) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.paths
	s.paths = make(map[name]*path, len(all))
	for _, p := range all {
		key := name{p.Path, p.Probe}
		one := old[key]
		if one == nil {
			one = &path{series: metric.NewScope(s.options.Sink, p.Path, p.Probe)}
		}
		one.Path = p
		s.paths[key] = one
		delete(old, key)
	}
	for _, gone := range old {
		gone.series.Close()
	}
}

// Run keeps packets until ctx ends.
func (s *Supervisor) Run(ctx context.Context) error {
	packets := s.listen(nil, true) // nil: there are no paths
	defer func() { packets = s.listen(packets, false) }()
	missed := s.options.Sink.Series(metric.SamplesDropped, listener)
	defer missed.Close()
	writing := make(chan *piece, allBurst)
	var writer sync.WaitGroup
	defer writer.Wait()
	defer close(writing)
	writer.Go(func() {
		for p := range writing {
			_ = s.write(p) // the store logs and counts errors
		}
	})
	ticker := time.NewTicker(takeInterval)
	defer ticker.Stop()
	batch := make([]record.Packet, batchPackets)
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			s.pause()
			if packets = s.listen(packets, true); packets == nil {
				continue
			}
			for n := len(batch); n == len(batch); {
				var lost uint64
				n, lost = packets.Take(batch)
				missed.Add(float64(lost))
				s.submit(s.take(batch[:n], now), writing)
			}
		}
	}
}

// listen opens the listener of packets if there are paths that need it, and closes it if there are none.
func (s *Supervisor) listen(to *record.Listener[record.Packet], wanted bool) *record.Listener[record.Packet] {
	s.mu.Lock()
	wanted = wanted && len(s.paths) > 0
	s.mu.Unlock()
	switch {
	case wanted && to == nil:
		return s.options.Recorder.Packets().Listen(queue)
	case !wanted && to != nil:
		to.Close()
		return nil
	}
	return to
}

// submit queues reports for writing, unless too many are queued.
func (s *Supervisor) submit(found []*piece, writing chan<- *piece) {
	for _, p := range found {
		select {
		case writing <- p:
		default:
			s.options.Log.Warn("Incident not stored, too many reports are being written", "path", p.header.Path, "probe", p.header.Probe)
		}
	}
}

// pause pauses the judgment of paths that a load test affects.
func (s *Supervisor) pause() {
	tested := s.options.Tested()
	if len(tested) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.paths {
		if last, ok := tested[p.Path.Path]; ok {
			p.judge.pause(last)
			p.floor.pause()
		}
	}
}

// take stores packets, and returns the reports that they trigger.
func (s *Supervisor) take(packets []record.Packet, now time.Time) (found []*piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	share := max(min(perPath, s.space/max(len(s.paths), 1)), smallest)
	for i := range packets {
		p := &packets[i]
		one := s.paths[name{p.Path, p.Probe}]
		if one == nil {
			continue
		}
		r := rowOf(p)
		one.ring.add(&r, share)
		left := one.judge.add(p, now)
		s.tell(one, p, left, now)
		if len(left) > 0 && now.Sub(one.reported) >= pathInterval && s.triggered.AllowN(now, 1) {
			one.reported = now
			found = append(found, one.piece(left[0].Quantity, left, now))
		}
	}
	return found
}

// tell publishes the events that a packet shows: the quantities that have left their baseline, a floor that has moved, and a restart of the remote end.
func (s *Supervisor) tell(one *path, p *record.Packet, left []deviation, now time.Time) {
	if len(left) > 0 {
		s.risen(p.Path, left, now)
	}
	if f, changed := one.floor.add(p, now); changed {
		s.options.Events.OfPath(event.FloorChanged, p.Path, f.since, fmt.Sprintf("The smallest round trip is %s, before %s.", unit.Duration(f.after), unit.Duration(f.before)))
	}
	if one.seen && p.Restarts > one.restarts {
		s.options.Events.OfPath(event.RemoteRestarted, p.Path, now, "The reflector at the other end restarted.")
	}
	one.restarts, one.seen = p.Restarts, true
}

// risen publishes the quantities that have left their baseline.
func (s *Supervisor) risen(name string, left []deviation, now time.Time) {
	var texts [2][]string // delay, loss
	for _, d := range left {
		i := 0
		if d.Quantity == loss {
			i = 1
		}
		texts[i] = append(texts[i], d.String())
	}
	for i, kind := range [...]event.Kind{event.DelayRisen, event.LossRisen} {
		if len(texts[i]) > 0 {
			s.options.Events.OfPath(kind, name, now, strings.Join(texts[i], "; "))
		}
	}
}

// Store makes a report of the last minutes on request. The probe may be empty if the path has only one light probe.
// The error is one of this package, or that of writing the report.
func (s *Supervisor) Store(pathName, probeName string) (report.Header, error) {
	if s.options.Reports.Stats().Dir == "" {
		return report.Header{}, ErrNoDirectory
	}
	p, err := s.request(pathName, probeName)
	if err != nil {
		return report.Header{}, err
	}
	return p.header, s.write(p)
}

func (s *Supervisor) request(pathName, probeName string) (*piece, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*path
	for key, one := range s.paths {
		if key.path == pathName && (probeName == "" || key.probe == probeName) {
			found = append(found, one)
		}
	}
	switch {
	case len(found) != 1:
		return nil, fmt.Errorf("%w: path %.80q, probe %.80q", ErrUnknown, pathName, probeName)
	case len(found[0].ring.blocks) == 0:
		return nil, ErrNoPackets
	case !s.requests.Allow():
		return nil, ErrTooMany
	}
	return found[0].piece(report.OnRequest, nil, time.Now()), nil
}

// write writes a report and counts it.
func (s *Supervisor) write(p *piece) error {
	h := &p.header
	s.record(p)
	if err := s.options.Reports.Write(*h, p.body); err != nil {
		return fmt.Errorf("incident: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.paths[name{h.Path, h.Probe}]; one != nil { // it may have been removed
		one.series.Series(metric.IncidentReports, p.body.Trigger).Add(1)
	}
	s.options.Log.Info("Incident stored", "path", h.Path, "probe", h.Probe, "trigger", p.body.Trigger, "id", h.ID, "why", h.Why())
	return nil
}

// record passes the packets of a report to the recorder.
func (s *Supervisor) record(p *piece) {
	if to := s.options.Recorder.Tables(); to.HasListeners() {
		rows := p.body.Rows.of.rows()
		slices.SortStableFunc(rows, bySent)
		t := record.Table{Schema: record.IncidentPackets, Tags: []string{p.header.Path, p.header.Probe}, ID: p.header.ID}
		for i := range rows {
			t.Rows = append(t.Rows, rows[i][:])
		}
		to.Record(&t)
	}
}

func bySent(a, b row) int { return cmp.Compare(a[record.IncidentSent], b[record.IncidentSent]) }

// piece is a report to be written.
type piece struct {
	header report.Header
	body   Body
}

// Body is the body of a report.
type Body struct {
	// Trigger is delay, loss or request; Deviations are the quantities that have left their baseline.
	Trigger    string      `json:"trigger"`
	Deviations []Deviation `json:"deviations,omitempty"`
	// Begin is the reference of sent_ns.
	Begin instant.Time `json:"begin_ns"`
	// Columns names the elements of a row, Rows has a row for each packet.
	Columns []string `json:"columns"`
	Rows    table    `json:"rows"`
}

// piece returns the report of the path's ring, which is not empty. The supervisor's lock is held.
func (p *path) piece(trigger string, left []deviation, now time.Time) *piece {
	kept := ring{blocks: slices.Clone(p.ring.blocks)}
	rows := kept.rows()
	begin, end := instant.Time(slices.MinFunc(rows, bySent)[record.IncidentSent]), instant.Time(slices.MaxFunc(rows, bySent)[record.IncidentSent])
	why, deviations := []string{}, []Deviation{}
	for _, d := range left {
		why, deviations = append(why, d.String()), append(deviations, d.document())
	}
	h := report.Header{
		ID: report.NewID(now, nil), Path: p.Path.Path, Probe: p.Probe, Kind: report.Incident, Peer: p.Peer,
		Begin: begin.Time(), End: end.Time(), Result: report.Completed, Reason: trigger, Error: strings.Join(why, "; "),
		Summary: []report.Line{{Quantity: "packets", Numbers: []report.Number{{Value: new(float64(len(rows)))}}}},
	}
	return &piece{h, Body{Trigger: trigger, Deviations: deviations, Begin: begin, Columns: record.IncidentPackets.Names(), Rows: table{kept, begin}}}
}
