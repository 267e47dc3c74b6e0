package point

import (
	"slices"
	"strconv"
	"strings"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/metric"
)

// Table finds the place of a family in the schema. It is not safe for concurrent use. Make one with NewTable.
type Table struct {
	families map[string]*Family
	order    []*metric.Desc
	texts    map[string]lineprotocol.Value
}

// Family is the place of a family.
type Family struct {
	Desc *metric.Desc
	// Measurement is that of its points, Run that of its values of a run.
	Measurement, Run string

	buckets, runBuckets string // measurements of the classic buckets
	tags                []tagOf
	bucketTags          []tagOf // with le, whose label is -1
	facts               []factOf
	rank                int // index of label quantile_rank, or -1

	number, count, sum, bucket string            // fields
	ranked                     map[string]string // field by rank
	bounds                     []string          // values of tag le, the last one is +Inf
}

// tagOf is a tag with the index of its label.
type tagOf struct {
	key   string
	label int
}

// factOf is a field with the index of its label.
type factOf struct {
	tagOf
	kind lineprotocol.ValueKind
}

// maxRanks limits the ranks of one family.
const maxRanks = 32

// NewTable makes the table of the families of these groups.
func NewTable(groups []metric.Group) *Table {
	t := &Table{families: map[string]*Family{}, texts: map[string]lineprotocol.Value{}}
	for _, m := range Series(groups) {
		for _, c := range m.Columns {
			if f := t.families[c.Desc.Name]; f != nil {
				f.add(&m, &c)
				continue
			}
			f := &Family{Desc: c.Desc, rank: slices.Index(c.Desc.Labels, metric.QuantileL), ranked: map[string]string{}}
			for _, b := range c.Desc.Buckets {
				f.bounds = append(f.bounds, strconv.FormatFloat(b, 'g', -1, 64))
			}
			f.bounds = append(f.bounds, "+Inf")
			f.add(&m, &c)
			t.families[c.Desc.Name] = f
			t.order = append(t.order, c.Desc)
		}
	}
	return t
}

// add adds a column of the family.
func (f *Family) add(m *Measurement, c *Column) {
	var tags []tagOf
	for _, key := range m.Tags {
		tags = append(tags, tagOf{key, slices.Index(f.Desc.Labels, key)})
	}
	if c.Part == Bucket {
		f.buckets, f.runBuckets, f.bucketTags, f.bucket = m.Name, OfRun(m.Name), tags, c.Key
		return
	}
	f.Measurement, f.Run, f.tags = m.Name, OfRun(m.Name), tags
	switch c.Part {
	case Number, Bucket:
		f.number = c.Key
	case Count:
		f.count = c.Key
	case Sum:
		f.sum = c.Key
	case Fact:
		f.facts = append(f.facts, factOf{tagOf{c.Key, slices.Index(f.Desc.Labels, c.Key)}, c.Kind})
	}
}

// Family is the place of the family of this name; nil: it is not in the schema.
func (t *Table) Family(name string) *Family { return t.families[name] }

// Order lists the families such that those of one measurement are neighbors.
func (t *Table) Order() []*metric.Desc { return t.order }

// text is a label's value as a field. Few values repeat in each scrape, so they are kept.
func (t *Table) text(s string) lineprotocol.Value {
	v, known := t.texts[s]
	if !known {
		if len(t.texts) >= 1<<14 {
			clear(t.texts)
		}
		v = Text(s)
		t.texts[strings.Clone(s)] = v
	}
	return v
}

// fact appends a label's value as a field; a number that is none has no field.
func (t *Table) fact(to []Field, f *factOf, value string) []Field {
	if f.kind != lineprotocol.Int {
		return append(to, Field{f.key, t.text(value)})
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return to
	}
	return Int(to, f.key, n)
}

// field is the field of a counter or gauge with these labels; empty: its rank has no field.
func (f *Family) field(labels []string) string {
	if f.rank < 0 {
		return f.number
	}
	rank := labels[f.rank]
	key, known := f.ranked[rank]
	if !known && len(f.ranked) < maxRanks {
		key = Ranked(f.number, rank)
		f.ranked[strings.Clone(rank)] = key
	}
	return key
}
