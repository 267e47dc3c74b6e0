// Package metric has the metric families that several packages use, the list of all families, and the interface between measurements and
// a backend.
//
// Each name is defined once: here, or in the directory of the Type that declares it (Declarer). Documentation, dashboards and
// rules read the descriptors, so that a rename that they do not follow breaks the build. Backends (Prometheus, line protocol, terminal) implement Sink; this package imports none.
package metric

import (
	"slices"
	"strings"
)

// Kind is the type of a metric family.
type Kind uint8

// The kinds, as in Prometheus and OpenMetrics.
const (
	Counter Kind = iota + 1
	Gauge
	Histogram
)

// String is the type name in the exposition format.
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
	// More: the configuration of an agent chooses further labels; see With.
	More bool
	// Buckets are the upper bounds of the classic buckets of a Histogram; nil means native buckets only.
	Buckets []float64
	// NativeOnly: a Histogram without classic buckets, which is not exported to scrapes that accept no native histograms.
	NativeOnly bool
	// Fine: the native buckets of a Histogram are 2.2 % wide (schema 5), else 9 % (schema 3).
	Fine bool
	// Slim includes the family in profile Slim, a histogram without its classic buckets.
	Slim bool
	// ClassicOnly: exported only to scrapes that accept no native histograms.
	ClassicOnly bool
	// NoCreated: exported without a created timestamp.
	NoCreated bool
	// Values are the possible values of the labels that have a fixed set.
	Values Values
	// Absent states when the family has no series, and what that means.
	Absent string
	// Source is the source of the definition: an RFC section, an ITU clause, a figure of a paper, a kernel version.
	Source string

	slim, slimClassicOnly *Desc // in profile Slim, see In and Quantile; nil: not in that profile
}

// With is the descriptor with further labels, after its own: one pointer for all series that a sink has at a time.
func (d *Desc) With(labels ...string) *Desc {
	one := *d
	one.Labels = append(slices.Clip(d.Labels), labels...)
	return &one
}

// Values lists the values of labels, by label. An entry is a value, or a value and its meaning: "late: sent too late".
type Values map[string][]string

// Words is the value of a label as words: "no stamp" for no_stamp.
func Words(value string) string { return strings.ReplaceAll(value, "_", " ") }

// Allows reports whether value is a listed value of label; any value of a label without a list is.
func (v Values) Allows(label, value string) bool {
	names := v.Names(label)
	return names == nil || slices.Contains(names, value)
}

// Names returns the listed values of label, without their meanings; nil: label has no list.
func (v Values) Names(label string) (names []string) {
	for _, entry := range v[label] {
		name, _, _ := strings.Cut(entry, ":")
		names = append(names, name)
	}
	return names
}

// Sink receives measurements. Implementations are safe for concurrent use.
type Sink interface {
	// Series opens the series of d with these label values, in the order of d.Labels. A counter or histogram is exported
	// at once, with zero; a gauge is exported from its first Set. Opening the same series again returns the same series; it
	// ends when all openers have closed it.
	Series(d *Desc, values ...string) Series
	// Update runs f such that a reader of the sink (a scrape) sees either all or none of the changes of f. f may open
	// and close series; it must be short, must not block and must not call Update.
	Update(f func())
}

// Series is one time series. Methods that do not fit the kind panic, since that is a programming error.
type Series interface {
	// Add adds to a counter; delta must not be negative.
	Add(delta float64)
	// SetTotal sets a counter to the total of its source: it adds the difference to the highest total that this opener
	// has set, initially zero. A lower total or NaN changes nothing, since a counter never decreases. Each opener of a
	// series sets its own totals, and the counter is their sum. An opener uses Add or SetTotal, not both. It does not
	// allocate.
	SetTotal(total float64)
	// Set sets a gauge. NaN has the effect of Clear.
	Set(v float64)
	// Observe adds one observation to a histogram. It does not allocate.
	Observe(v float64)
	// ObserveWithExemplar is Observe, and sets the exemplar of the value's bucket to this one label (OpenMetrics 1.0,
	// Exemplars); a sink without exemplars keeps the observation only. Each bucket keeps its last exemplar. A label whose
	// name and value together exceed MaxExemplarRunes characters is left out. It may allocate.
	ObserveWithExemplar(v float64, label, value string)
	// Clear makes a gauge absent until the next Set.
	Clear()
	// Close ends the series: the next scrape does not contain it.
	Close()
}

// MaxExemplarRunes is the limit for the characters of all labels of an exemplar, names and values (OpenMetrics 1.0,
// Exemplars).
const MaxExemplarRunes = 128

// RunIDL is the label of exemplars with the run of a load test, by the name of its report.
const RunIDL = "run_id"

// Discard is a Sink that discards everything.
type Discard struct{}

// Series returns a series that discards everything.
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
