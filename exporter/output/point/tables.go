package point

import (
	"cmp"
	"slices"
	"strings"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
)

// field is what a point has of a column of a table.
type field struct {
	Column
	index       int // of the element in a row
	text        func(int64) string
	nanoseconds bool
}

// fieldsOf are the fields of a table's rows, in the order of columns.
func fieldsOf(s *record.Schema) (all []field) {
	for i, c := range s.Columns {
		if s.TimeOnly && i == s.Time {
			continue
		}
		f := field{Column: Column{Key: cmp.Or(c.Field, c.Name), Kind: lineprotocol.Int, Help: c.Help}, index: i, text: c.Text}
		help := "Column " + c.Name + " of the run's report (json.md)."
		base, ns := strings.CutSuffix(c.Name, "_ns")
		switch {
		case c.Text != nil:
			f.Kind = lineprotocol.String
		case c.Real:
			f.Kind = lineprotocol.Float
		case ns:
			f.nanoseconds, f.Kind, f.Key = true, lineprotocol.Float, cmp.Or(c.Field, base+"_seconds")
			help = strings.TrimSuffix(help, ".") + ", in seconds."
		}
		f.Help = cmp.Or(f.Help, help)
		all = append(all, f)
	}
	return all
}

// measurementOf describes the points of tables: fields of a report are in its order, others in the order of keys.
func measurementOf(s *record.Schema) Measurement {
	m := Measurement{Name: s.Name, Group: RawTitle, Tags: s.Tags}
	for _, f := range fieldsOf(s) {
		m.Columns = append(m.Columns, f.Column)
	}
	if s.ID != "" {
		m.Columns = append(m.Columns, Column{Key: s.ID, Kind: lineprotocol.String, Help: s.IDHelp})
	}
	if s.Columns[len(s.Columns)-1].Help != "" {
		slices.SortFunc(m.Columns, func(a, b Column) int { return cmp.Compare(a.Key, b.Key) })
	}
	return m
}

// Table emits the rows of a table.
func (r *Raw) Table(from *record.Table, emit func(*Point)) {
	s, fields := from.Schema, r.fields[from.Schema]
	if fields == nil {
		fields = fieldsOf(s)
		r.fields[s] = fields
	}
	tags := make([]Tag, len(s.Tags))
	for i, key := range s.Tags {
		tags[i] = Tag{key, from.Tags[i]}
	}
	p := r.begin(s.Name, tags...)
	newest, shift := r.times.of(p), instant.Time(0)
	if s.Repeats {
		newest, shift = &last{}, r.shift(p, from)
	}
	id := Text(from.ID)
	for _, row := range from.Rows {
		p.At = newest.unique(from.Begin + instant.Time(row[s.Time]) + shift)
		p.Fields = p.Fields[:0]
		if s.ID != "" {
			p.Fields = append(p.Fields, Field{s.ID, id})
		}
		if p.Fields = r.appendElements(p.Fields, fields, row); len(p.Fields) > 0 {
			emit(p)
		}
	}
}

// appendElements appends the known elements of a row.
func (r *Raw) appendElements(to []Field, fields []field, row []int64) []Field {
	for i := range fields {
		f := &fields[i]
		v := row[f.index]
		switch {
		case f.text != nil:
			to = append(to, Field{f.Key, r.texts.text(f.text(v))})
		case f.nanoseconds && v != record.NoTime:
			to = Float(to, f.Key, seconds(v))
		case f.nanoseconds:
		case f.Kind == lineprotocol.Float:
			to = Float(to, f.Key, record.OfReal(v))
		default:
			to = Int(to, f.Key, v)
		}
	}
	return to
}
