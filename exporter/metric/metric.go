// Package metric is the one table of everything that oneway exports, and the
// interface by which measurements reach a backend.
//
// A name stands here once. Documentation, dashboards and rules take it from
// this table, so that a rename breaks the build and not a dashboard. Backends
// (Prometheus, line protocol, terminal) implement Sink; nothing here knows them.
package metric

// Kind is the type of a metric family.
type Kind uint8

// The kinds, as Prometheus and OpenMetrics have them.
const (
	Counter Kind = iota + 1
	Gauge
	Histogram
)

// String is the word of the exposition format.
func (k Kind) String() string {
	words := [...]string{"unknown", "counter", "gauge", "histogram"}
	if int(k) >= len(words) {
		return words[0]
	}
	return words[k]
}

// Desc describes one family.
type Desc struct {
	// Name is the full name, prefix and unit included.
	Name string
	Kind Kind
	// Help is one sentence: what is counted or measured, in which unit.
	Help string
	// Labels are the label names, in the order in which Sink.Series takes values.
	Labels []string
	// Buckets are the upper bounds of the classic buckets of a Histogram; nil: it has native ones only.
	Buckets []float64
	// Slim: profile Slim has it, too, a histogram without its classic buckets.
	Slim bool
	// Absent says when there is no series, and what that means.
	Absent string
	// Source names where the definition comes from: an RFC section, an ITU
	// clause, a paper's figure, a kernel version.
	Source string

	slim, standIn *Desc // of profile Slim; nil: it has none of it
}

// Sink takes measurements. Implementations are safe for concurrent use.
type Sink interface {
	// Series opens the series of d with these label values, given in the order
	// of d.Labels. A counter or histogram appears at once, with zero; a gauge
	// appears with its first Set. Opening the same series again returns the same
	// series; it disappears when each opener has closed it.
	Series(d *Desc, values ...string) Series
	// Update runs f such that a reader of the sink (a scrape) sees all of what f
	// does to series or nothing of it. f may open and close series, too; it must be
	// short, must not block and must not call Update.
	Update(f func())
}

// Series is one time series. Methods that do not fit the kind panic: that is
// a fault of the program, found by its first test.
type Series interface {
	// Add adds to a counter; delta must not be negative.
	Add(delta float64)
	// SetTotal brings a counter to a total that its source keeps: it adds by how much the
	// total is ahead of the highest one that this opener has given, which is zero at first.
	// A total that is not ahead, NaN among them, changes nothing: a counter never goes back.
	// Openers of one series each give totals of their own, and the counter is the sum of
	// them. An opener uses Add or SetTotal, not both. It does not allocate.
	SetTotal(total float64)
	// Set sets a gauge. NaN is no value, so it is Clear.
	Set(v float64)
	// Observe adds one observation to a histogram. It does not allocate.
	Observe(v float64)
	// ObserveWithExemplar is Observe, and sets the exemplar of the value's bucket to this
	// one label, which says where the value comes from (OpenMetrics 1.0, Exemplars); a sink
	// that keeps none has the observation alone. The last exemplar of each bucket is kept. A
	// label whose name and value together have more than MaxExemplarRunes characters is left
	// out. It may allocate.
	ObserveWithExemplar(v float64, label, value string)
	// Clear makes a gauge absent until the next Set: what is not known has no value.
	Clear()
	// Close ends the series: it disappears from the next scrape.
	Close()
}

// MaxExemplarRunes is how many characters all labels of an exemplar may have together,
// names and values (OpenMetrics 1.0, Exemplars).
const MaxExemplarRunes = 128

// RunIDL is the label of exemplars that names the run of a load test: its report's name.
const RunIDL = "run_id"

// Discard is a Sink that keeps nothing.
type Discard struct{}

// Series returns a series that keeps nothing.
func (Discard) Series(*Desc, ...string) Series { return discarded{} }

// Update runs f.
func (Discard) Update(f func()) { f() }

type discarded struct{}

func (discarded) Add(float64)                                 {}
func (discarded) SetTotal(float64)                            {}
func (discarded) Set(float64)                                 {}
func (discarded) Observe(float64)                             {}
func (discarded) Clear()                                      {}
func (discarded) ObserveWithExemplar(float64, string, string) {}
func (discarded) Close()                                      {}
