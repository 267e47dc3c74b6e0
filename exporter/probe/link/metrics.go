package link

import (
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
)

// Fill tells others that a load test fills its link, and how much it sent: the table, and two metrics. It is for one goroutine. Make one
// with NewFill.
type Fill struct {
	links   *Table
	of      Use
	scope   *metric.Scope
	emptied func() // nil: the test does not fill the link
}

// NewFill returns the Fill of a test that does not run yet, which has the series of metric.TestRunning in the scope.
func NewFill(links *Table, of Use, scope *metric.Scope) *Fill {
	f := &Fill{links: links, of: of, scope: scope}
	f.show(false)
	return f
}

// Begin is called when the test begins to fill the link; it may be repeated during the test.
func (f *Fill) Begin() {
	if f.emptied == nil {
		f.emptied = f.links.Fill(f.of)
	}
	f.show(true)
}

// Refresh sets the metric of a test that fills the link again: another owner of its series may have changed it.
func (f *Fill) Refresh() {
	if f.emptied != nil {
		f.show(true)
	}
}

// End is called when the test no longer fills the link, or never has.
func (f *Fill) End() {
	if f.emptied != nil {
		f.emptied()
		f.emptied = nil
	}
	f.show(false)
}

// Sent counts IP bytes that a run sent in each direction. A direction without any gets no series by that.
func (f *Fill) Sent(forward, reverse int64) {
	for d, n := range map[sample.Direction]int64{sample.Forward: forward, sample.Reverse: reverse} {
		if n > 0 {
			f.scope.Series(metric.RunBytes, d.String()).Add(float64(n))
		}
	}
}

func (f *Fill) show(running bool) {
	f.scope.Set(metric.TestRunning, metric.Flag(running), f.of.Link)
}
