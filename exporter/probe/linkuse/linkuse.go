// Package linkuse tells others that a load test fills its link, and how much it sent: the table of links, and two metrics.
package linkuse

import (
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probe/link"
)

// Use is the use of a link by the runs of one load test. It is for one goroutine. Make one with New.
type Use struct {
	links   *link.Table
	of      link.Use
	scope   *metric.Scope
	emptied func() // nil: the test does not fill the link
}

// New returns the use of a test that does not run yet, which has the series of metric.TestRunning in the scope.
func New(links *link.Table, of link.Use, scope *metric.Scope) *Use {
	u := &Use{links: links, of: of, scope: scope}
	u.show(false)
	return u
}

// Begin is called when the test begins to fill the link; it may be repeated during the test.
func (u *Use) Begin() {
	if u.emptied == nil {
		u.emptied = u.links.Fill(u.of)
	}
	u.show(true)
}

// Refresh sets the metric of a test that fills the link again: another owner of its series may have changed it.
func (u *Use) Refresh() {
	if u.emptied != nil {
		u.show(true)
	}
}

// End is called when the test no longer fills the link, or never has.
func (u *Use) End() {
	if u.emptied != nil {
		u.emptied()
		u.emptied = nil
	}
	u.show(false)
}

// Sent counts IP bytes that a run sent in each direction. A direction without any gets no series by that.
func (u *Use) Sent(forward, reverse int64) {
	for d, n := range map[sample.Direction]int64{sample.Forward: forward, sample.Reverse: reverse} {
		if n > 0 {
			u.scope.Series(metric.RunBytes, d.String()).Add(float64(n))
		}
	}
}

func (u *Use) show(running bool) {
	u.scope.Set(metric.TestRunning, metric.Flag(running), u.of.Link)
}
