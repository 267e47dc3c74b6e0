package record

import (
	"math"
	"slices"

	"oneway.example/exporter/core/instant"
)

// Table has rows with named columns, recorded together: of a run, a report or a watcher.
type Table struct {
	Schema *Schema
	// Tags are the values of Schema.Tags.
	Tags []string
	// ID is the value of the field Schema.ID.
	ID string
	// Begin is the reference of the times of the rows.
	Begin instant.Time
	// Rows have an element for each of Schema.Columns. They are shared by all readers, which must not change them.
	Rows [][]int64
}

// Schema describes all tables of one kind: what an output makes of them.
type Schema struct {
	// Name is the measurement.
	Name string
	// Tags are the names of the tags, sorted.
	Tags []string
	// ID is the field with the id of the run or report, or the text of an event; empty: no such field. IDHelp describes it.
	ID, IDHelp string
	// Columns are the elements of a row in their order.
	Columns []Column
	// Time is the index of the column with the time of the row in nanoseconds after Table.Begin. TimeOnly: it is no field.
	Time     int
	TimeOnly bool
	// Repeats: a table may have the same rows as an earlier one, and each has points of its own.
	Repeats bool
}

// Column describes an element of a row.
type Column struct {
	// Name is the name in reports, with the unit at its end. A column whose name ends in _ns has nanoseconds, or NoTime.
	Name string
	// Field is the name of the field; empty: Name, with seconds in place of nanoseconds.
	Field string
	// Help describes the field; empty: it is this column of the run's report.
	Help string
	// Text returns the name of a value of an enumeration; nil: the element is a number.
	Text func(int64) string
	// Real: the element is a number of Real.
	Real bool
}

// Names are the names of the columns in their order.
func (s *Schema) Names() []string {
	names := make([]string, len(s.Columns))
	for i := range s.Columns {
		names[i] = s.Columns[i].Name
	}
	return names
}

// Column is the index of the column with this name, -1 if there is none.
func (s *Schema) Column(name string) int { return slices.Index(s.Names(), name) }

// Real is the element of a column with real numbers; NaN is an unknown one.
func Real(v float64) int64 { return int64(math.Float64bits(v)) }

// OfReal is the number that Real was made of.
func OfReal(element int64) float64 { return math.Float64frombits(uint64(element)) }
