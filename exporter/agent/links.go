package agent

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/agent/eventlog"
	"oneway.example/exporter/agent/incident"
	"oneway.example/exporter/agent/maintenance"
	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/probe/quota"
	"oneway.example/exporter/probe/report"
)

const (
	// linksFile is the file of the quotas in the state directory, reportsDir the directory of reports.
	linksFile = "links.json"
	// maintenanceFile is the file of the maintenance windows that were added.
	maintenanceFile = "maintenance.json"
	reportsDir      = "reports"
	// quotaInterval is the interval at which quotas and the times of load tests are published: midnight or a clock step
	// renews quotas without a call.
	quotaInterval = time.Second
)

// Limits of reports.
const (
	minReportBytes = 64 << 10
	maxReportRuns  = 100_000
)

// sharedSection has the keys of what all paths and load tests of this host share: the sections calendar, maintenance, state_dir, links and reports.
type sharedSection struct {
	calendar calendarOptions
	local    localday.Calendar
	stateDir string
	work     []maintenanceOptions
	windows  []maintenance.Window
	links    []linkOptions
	reports  reportOptions
}

// linkOptions are the keys of a link.
type linkOptions struct {
	Name  string         `yaml:"name"`
	Quota option.Bytes   `yaml:"quota_bytes"`
	Place config.Section `yaml:",place"`
}

// reportOptions are the keys of reports.
type reportOptions struct {
	Dir      string       `yaml:"dir"`
	MaxBytes option.Bytes `yaml:"max_bytes"`
	MaxRuns  int          `yaml:"max_runs"`
}

func (s *sharedSection) decode(c *config.Config) error {
	option.SetDefaults(&s.reports)
	return errors.Join(c.Calendar.Decode(&s.calendar), c.StateDir.Decode(&s.stateDir), c.Maintenance.Decode(&s.work), c.Links.Decode(&s.links), c.Reports.Decode(&s.reports))
}

func (s *sharedSection) plan(c *config.Config, _ *maker) config.Problems {
	var state, reports []error
	if c.StateDir.Given() && s.stateDir == "" {
		state = append(state, option.Errorf("", "is empty; name a directory, such as /var/lib/oneway, or leave the key out"))
	}
	r := &s.reports
	switch given := c.Reports.Has; {
	case given("dir") && r.Dir == "":
		reports = append(reports, option.Errorf("dir", "is empty; name a directory, such as /var/lib/oneway/reports, or leave the key out"))
	default:
		reports = append(reports, option.Missing(c.Reports.Given() && r.Dir == "" && s.stateDir == "", "dir", "reports need it without state_dir"))
	}
	reports = append(reports, option.Check(r))
	s.stateDir, r.Dir = c.StateDir.Path(s.stateDir), c.Reports.Path(r.Dir)
	if r.Dir == "" && s.stateDir != "" {
		r.Dir = filepath.Join(s.stateDir, reportsDir)
	}
	local, calendar := s.calendar.calendar(c.Calendar)
	s.local = local
	return slices.Concat(calendar, s.checkMaintenance(), c.StateDir.Problems(errors.Join(state...)), c.Reports.Problems(errors.Join(reports...)), s.checkLinks())
}

func (s *sharedSection) checkLinks() (found config.Problems) {
	seen := map[string]int{}
	for i := range s.links {
		l := &s.links[i]
		if !l.Place.Given() {
			continue // it could not be decoded
		}
		errs := []error{option.Check(l)}
		if first, twice := seen[l.Name]; twice {
			errs = append(errs, option.Errorf("name", "is %q, which is also the name of links[%d]; names must differ", l.Name, first))
		} else if option.Name("name", l.Name) == nil {
			seen[l.Name] = i
		}
		if l.Place.Has("quota_bytes") && l.Quota == 0 { // a link without the key has no limit
			errs = append(errs, option.Errorf("quota_bytes", "is 0; it must be above 0, or leave the key out for no limit"))
		}
		found = append(found, l.Place.Problems(errors.Join(errs...))...)
	}
	return found
}

// shared is what all load tests of this host share, including those of the load server: the links with their quotas, and
// the reports. It persists over reloads: a run under way keeps its link.
type shared struct {
	log      *slog.Logger
	sink     metric.Sink
	quota    *quota.Store // of the links
	links    *link.Table
	events   *eventlog.Log
	tested   *testedPaths
	states   *pathStates
	routes   *routes
	work     *plannedWork
	misnamed *misnamed
	reports  *report.Store
	local    *localday.Clock

	mu     sync.Mutex
	wanted *sharedSection
	series *metric.Scope // of the quotas; nil: not published
}

// newShared opens no file; put does.
func newShared(sink metric.Sink, to *record.Recorder, log *slog.Logger) *shared {
	local := &localday.Clock{}
	store := quota.New(quota.Options{Log: log.With("component", "links"), Now: local.Now})
	links, events, wrong := link.NewTable(store), eventlog.New(sink, to), &misnamed{log: log}
	return &shared{
		log: log, sink: sink, quota: store, links: links, events: events, tested: newTestedPaths(links, sink, events), states: newPathStates(sink, events, wrong), routes: newRoutes(events),
		work: newPlannedWork(sink, events, local.Now, log.With("component", "maintenance")), misnamed: wrong, reports: report.Open(report.Options{}), local: local, wanted: &sharedSection{},
	}
}

// put puts a configuration in force. Errors of a file or directory stop nothing: links and reports log them.
func (s *shared) put(c *sharedSection) {
	var options []link.Options
	for _, l := range c.links {
		options = append(options, link.Options{Name: l.Name, QuotaBytes: int64(l.Quota)})
	}
	if err := s.links.SetLinks(options); err != nil {
		s.log.Error("Links not changed", "err", err)
	}
	file, work := "", ""
	if c.stateDir != "" {
		file, work = filepath.Join(c.stateDir, linksFile), filepath.Join(c.stateDir, maintenanceFile)
	}
	s.local.Set(c.local)
	s.work.book.Put(c.windows, work)
	s.quota.SetFile(file)
	s.reports.Configure(report.Options{
		Dir: c.reports.Dir, MaxBytes: int64(c.reports.MaxBytes), MaxRuns: c.reports.MaxRuns, Log: s.log.With("component", "reports"),
	})
	s.follow(c, metric.NewScope(s.sink))
}

// follow publishes the quotas of c in new series before it closes the old ones, so that no series is interrupted; with a
// nil scope there are no new ones.
func (s *shared) follow(c *sharedSection, series *metric.Scope) {
	s.mu.Lock()
	old := s.series
	s.wanted, s.series = c, series
	s.mu.Unlock()
	s.publish()
	if old != nil {
		old.Close()
	}
}

// publish sets the quotas of configured links, whether they are saved, and the local calendar of their days.
func (s *shared) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.series == nil {
		return
	}
	s.series.Update(func() {
		publishCalendar(s.wanted.local, s.series, time.Now())
		for _, l := range s.wanted.links {
			u := s.links.Usage(l.Name)
			s.series.Set(metric.QuotaUsed, float64(u.Used), l.Name)
			s.series.SetIf(metric.QuotaLimit, float64(u.Limit), l.Quota > 0, l.Name)
			s.series.SetIf(metric.QuotaLeft, float64(u.Left), l.Quota > 0, l.Name)
		}
		if s.wanted.stateDir != "" {
			saved := 1.0
			if s.quota.Saved() != nil {
				saved = 0
			}
			s.series.Set(metric.QuotaSaved, saved, "links")
		}
	})
}

// Run updates the published quotas until ctx ends.
func (s *shared) Run(ctx context.Context) error {
	ticker, saving := time.NewTicker(quotaInterval), time.NewTicker(metric.QuotaSaveInterval)
	defer ticker.Stop()
	defer saving.Stop()
	for {
		select {
		case <-ctx.Done():
			s.follow(s.wanted, nil)
			return nil
		case <-ticker.C:
			s.publish()
			s.tested.publish()
			s.states.publish(s.tested.affected())
			s.routes.publish()
			s.work.publish()
		case <-saving.C:
			s.quota.Keep()
		}
	}
}

// LinkStatus is the status of a link that is configured or was used today.
type LinkStatus struct {
	Name string `json:"name"`
	// Limit is the quota of a day in IP bytes, 0 if there is none; Used is the part used today, Left the rest of the
	// limit; nil: no limit.
	Limit int64  `json:"quota_limit_bytes,omitempty"`
	Used  int64  `json:"quota_used_bytes"`
	Left  *int64 `json:"quota_left_bytes,omitempty"`
	// Holder is the test that uses the link since Since; empty: none.
	Holder string    `json:"holder,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// UsedUp reports whether a quota is used up.
func (l LinkStatus) UsedUp() bool { return l.Left != nil && *l.Left == 0 }

// ReportsStatus is the status of the reports of load-test runs.
type ReportsStatus struct {
	// Dir is the directory of the reports; empty: reports are not stored.
	Dir string `json:"dir,omitempty"`
	// Runs is the number of stored runs; their files take Bytes.
	Runs  int   `json:"runs"`
	Bytes int64 `json:"stored_bytes"`
	// Failed is the number of failed reports since the start, Error the error of the last report; empty if it succeeded.
	Failed uint64 `json:"failed_writes"`
	Error  string `json:"error,omitempty"`
}

func (s *shared) show(into *Status) {
	s.links.Each(func(name string, u quota.Usage) {
		l := LinkStatus{Name: name, Limit: u.Limit, Used: u.Used}
		if l.Limit > 0 {
			l.Left = &u.Left
		}
		holder, since, _ := s.links.Holder(name)
		l.Holder, l.Since = holder, since.UTC()
		into.Links = append(into.Links, l)
	})
	stats := s.reports.Stats()
	into.Reports = ReportsStatus{Dir: stats.Dir, Runs: stats.Runs, Bytes: stats.Bytes, Failed: stats.Failed}
	if stats.Error != nil {
		into.Reports.Error = stats.Error.Error()
	}
}

// Reports returns the store of the runs of load tests.
func (a *Agent) Reports() *report.Store { return a.shared.reports }

// StoreIncident makes a report of the last minutes of a light probe; see incident.Supervisor.Store.
func (a *Agent) StoreIncident(path, probe string) (report.Header, error) {
	return a.incident.Store(path, probe)
}

// storesIncidents: the probe records its packets. In profile slim it does not: the number of such probes makes the memory for
// incidents too large.
func (j *job) storesIncidents() bool {
	_, records := j.running().(probe.IncidentSource)
	return records && j.profile == metric.Full
}

// incidentPaths are the probes of a plan that store incidents.
func incidentPaths(p *plan) (all []incident.Path) {
	for _, j := range p.jobs {
		if j.storesIncidents() {
			all = append(all, incident.Path{Path: j.target.Path, Probe: j.target.Probe, Peer: j.target.Peer})
		}
	}
	return all
}
