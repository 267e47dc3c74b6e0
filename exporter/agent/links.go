package agent

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"oneway.example/exporter/config"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/report"
	"oneway.example/exporter/sched"
)

// linksFile is the budgets' in the state directory.
const linksFile = "links.json"

const (
	// budgetInterval is how often budgets are published: midnight renews them, and a
	// stepped clock may, with nobody calling.
	budgetInterval = time.Second
	// saveInterval is how often it is tried again to save them.
	saveInterval = 10 * time.Second
)

// runsShown is how many of the last runs are part of a Status.
const runsShown = 20

// sharedKeeper keeps what all heavy tests of this host share, their own and the
// responder's: the links with their budgets, and the reports. Both outlive every
// reload: a run under way goes on holding its link.
type sharedKeeper struct {
	log     *slog.Logger
	sink    metric.Sink
	links   *sched.Links
	reports *report.Store

	mu   sync.Mutex
	stop func() // ends the publishing
	dir  string // of the reports
}

// newSharedKeeper opens no file; apply does.
func newSharedKeeper(sink metric.Sink, log *slog.Logger) (*sharedKeeper, error) {
	links, err := sched.NewLinks(sched.LinksOptions{Log: log.With("component", "links")})
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	reports, err := report.Open(report.Options{})
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	return &sharedKeeper{log: log, sink: sink, links: links, reports: reports, stop: func() {}}, nil
}

// apply puts a configuration in force. What is wrong with a file or a directory
// stops nothing: links and reports log it themselves.
func (k *sharedKeeper) apply(ctx context.Context, c *config.Config) {
	var options []sched.LinkOptions
	for _, l := range c.Links {
		options = append(options, sched.LinkOptions{Name: l.Name, BudgetBytes: int64(l.Budget)})
	}
	if err := k.links.SetLinks(options); err != nil {
		k.log.Error("Links not changed", "err", err)
	}
	file := ""
	if c.StateDir != "" {
		file = filepath.Join(c.StateDir, linksFile)
	}
	k.links.SetStateFile(file)
	if err := k.reports.Configure(report.Options{
		Dir: c.Reports.Dir, MaxBytes: int64(c.Reports.MaxBytes), MaxRuns: c.Reports.MaxRuns, Log: k.log.With("component", "reports"),
	}); err != nil {
		k.log.Error("Reports' settings not changed", "err", err)
	}
	stop := k.publish(ctx, options, file != "") // before the old series end, so that none disappears
	k.mu.Lock()
	stop, k.stop = k.stop, stop
	k.dir = c.Reports.Dir
	k.mu.Unlock()
	stop()
}

// end ends what apply has begun.
func (k *sharedKeeper) end() {
	k.mu.Lock()
	stop := k.stop
	k.stop = func() {}
	k.mu.Unlock()
	stop()
}

// budget is the series of one link.
type budget struct {
	limited           bool
	limit, used, left metric.Series
}

func (b budget) set(u sched.Usage) {
	b.used.Set(float64(u.Used))
	if b.limited {
		b.limit.Set(float64(u.Limit))
		b.left.Set(float64(u.Left))
	}
}

// budgets are the series of all links.
type budgets struct {
	links  *sched.Links
	byName map[string]budget
	saved  metric.Series // nil: nothing is to be saved
}

func (k *sharedKeeper) budgets(options []sched.LinkOptions, saves bool) *budgets {
	all := &budgets{links: k.links, byName: make(map[string]budget, len(options))}
	for _, o := range options {
		b := budget{limited: o.BudgetBytes > 0, used: k.sink.Series(metric.BudgetUsed, o.Name)}
		if b.limited {
			b.limit, b.left = k.sink.Series(metric.BudgetLimit, o.Name), k.sink.Series(metric.BudgetLeft, o.Name)
		}
		all.byName[o.Name] = b
	}
	if saves {
		all.saved = k.sink.Series(metric.BudgetSaved, "links")
	}
	return all
}

func (all *budgets) set() {
	for name, b := range all.byName {
		b.set(all.links.Usage(name))
	}
	if all.saved == nil {
		return
	}
	all.saved.Set(1)
	if all.links.Saved() != nil {
		all.saved.Set(0)
	}
}

func (all *budgets) close() {
	for _, b := range all.byName {
		b.used.Close()
		if b.limited {
			b.limit.Close()
			b.left.Close()
		}
	}
	if all.saved != nil {
		all.saved.Close()
	}
}

// publish shows the budgets of configured links, and whether they are saved, until the
// stop that it returns.
func (k *sharedKeeper) publish(ctx context.Context, options []sched.LinkOptions, saves bool) (stop func()) {
	all := k.budgets(options, saves)
	k.sink.Update(all.set)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker, saving := time.NewTicker(budgetInterval), time.NewTicker(saveInterval)
		defer ticker.Stop()
		defer saving.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				k.sink.Update(all.set)
			case <-saving.C:
				if k.links.Saved() != nil {
					_ = k.links.Save() // the gauge and the log tell
				}
			}
		}
	}()
	return func() {
		cancel()
		<-ended
		all.close()
	}
}

// LinkStatus is about one link that is configured or was used today.
type LinkStatus struct {
	Name string
	// Limit is the budget of a day in IP octets, 0 if there is none; Used was moved
	// today, Left is left of the limit.
	Limit, Used, Left int64
	// Holder is the test that has the link now, since Since; empty: none.
	Holder string
	Since  time.Time
}

// ReportsStatus is about the runs of heavy tests and their reports.
type ReportsStatus struct {
	// Dir keeps them; empty: nothing does.
	Dir string
	// Runs are kept; their files take Bytes.
	Runs  int
	Bytes int64
	// Failed reports since the start, and why the last one did; empty if it did not.
	Failed uint64
	Error  string
	// Last runs, newest first.
	Last []report.Header
}

func (k *sharedKeeper) status() (links []LinkStatus, reports ReportsStatus) {
	k.links.Each(func(name string, u sched.Usage) {
		l := LinkStatus{Name: name, Limit: u.Limit, Used: u.Used}
		if l.Limit > 0 {
			l.Left = u.Left
		}
		l.Holder, l.Since, _ = k.links.Holder(name)
		links = append(links, l)
	})
	k.mu.Lock()
	reports.Dir = k.dir
	k.mu.Unlock()
	stats := k.reports.Stats()
	reports.Runs, reports.Bytes, reports.Failed, reports.Last = stats.Runs, stats.Bytes, stats.Failed, k.reports.Last(runsShown)
	if stats.Error != nil {
		reports.Error = stats.Error.Error()
	}
	return links, reports
}

// Reports has the runs of heavy tests.
func (a *Agent) Reports() *report.Store { return a.shared.reports }
