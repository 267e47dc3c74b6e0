// Package hours makes one row an hour of each path from the points of its series: counts, buckets, extremes and minutes, with the local
// hour, the kind of day and the zone as tags, since InfluxQL has no time zones. The rows mean what the recording rules oneway:long:... of
// Prometheus mean (exporter/core/rules), so that months and years of both stores are sums of the same hours.
//
// A row is of a local hour from its full hour on, or of a part of it: the agent starts, the clock is stepped back. Its time is the begin. It
// is emitted each minute, with the same time and tags, so that a store replaces it, and a process that is killed loses at most a minute. Sums over rows are exact: the increases of counters between two readings, and of a counter that restarted its new value. What was counted
// before the first reading of a process is not of any row.
package hours

import (
	"slices"
	"strconv"
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/output/point"
)

// calendarMeasurement has the local time of the agent, in these fields.
const (
	calendarMeasurement = point.Prefix + "agent_calendar"
	offsetField         = "utc_offset_seconds"
	holidayField        = "holiday"
)

const (
	hour   = instant.Time(time.Hour)
	minute = instant.Time(time.Minute)
	// emitEach is the time between two rows of an hour.
	emitEach = minute
)

// Hours makes the rows of an agent. Call Begin, Add with each point of the series, and End, for each instant. It is not safe for concurrent use.
// Make one with New.
type Hours struct {
	emit    func(*point.Point)
	sources map[string]*source // by measurement of the points
	tables  []point.HourTable
	rows    map[string]*row
	order   []*row
	key     []byte
	point   point.Point

	at, last instant.Time // of the readings
	ticks    uint32       // number of them
	minute   instant.Time // of the last reading, from 1970
	extremes bool         // the readings have each window
	gap      bool         // the packets since the last readings are of an unknown hour
	mostGap  instant.Time // longest time over a full hour whose packets are of the hour of its end
	changed  bool         // since the last rows
	emitted  instant.Time // when, in units of emitEach
	newest   instant.Time // begin of the latest rows

	calendar, now calendar
	piece         piece
}

// calendar is the local time of the agent.
type calendar struct {
	known   bool
	zone    string
	offset  instant.Time
	holiday bool
}

// piece is the part of an hour that rows are of.
type piece struct {
	open    bool
	labeled bool
	missed  bool         // windows were not read: the extremes of the others are none of all packets
	hour    instant.Time // the begin of the local hour
	begin   instant.Time
	tags    [3]point.Tag // day_type, local_hour, zone
}

// source is where points of a measurement belong.
type source struct {
	table   int
	columns []int
}

// row is the present state of a row.
type row struct {
	table  *point.HourTable
	tags   []point.Tag // of the path
	cells  []cell
	inHour bool   // it has a reading in the piece
	seen   uint32 // the last tick with a reading
}

// cell is the state of a field.
type cell struct {
	now      float64 // of a counter; else the extreme of the present minute
	before   float64 // of a counter, at the last instant
	value    float64 // of the piece
	emitted  float64 // of value
	read     uint32  // the last tick with a value of a counter; 0: none
	known    bool
	inMinute bool // now is of the present minute
}

// mostInterval is the longest time between two readings for rows with extremes: the default of the key window of the probe stamp, whose extremes are
// of its last window (less with an interval of packets below 153 us). Longer ones leave out windows, and limits of quantiles that follow from extremes would be wrong.
const mostInterval = 10 * time.Second

// lateReading is the time between two readings after which a window of that length was not read.
const lateReading = instant.Time(mostInterval + time.Second)

// New makes an Hours for readings with a time between them. emit receives the rows; they are valid during the call.
func New(interval time.Duration, emit func(*point.Point)) *Hours {
	h := &Hours{emit: emit, sources: map[string]*source{}, tables: point.HourTables(), rows: map[string]*row{}, extremes: interval <= mostInterval, mostGap: instant.Time(max(5*time.Minute, 2*interval))}
	for i := range h.tables {
		t := &h.tables[i]
		if !h.extremes {
			t.Columns = slices.DeleteFunc(t.Columns, func(c point.HourColumn) bool { return c.Extreme })
		}
		for k, c := range t.Columns {
			s := h.sources[c.Measurement]
			if s == nil {
				s = &source{table: i}
				h.sources[c.Measurement] = s
			}
			s.columns = append(s.columns, k)
		}
	}
	return h
}

// Begin begins the readings of an instant. It emits the rows of an hour that has ended.
func (h *Hours) Begin(at instant.Time) {
	h.at = at
	h.ticks++
	h.now = calendar{}
	of := floor(at-1, minute)
	if of != h.minute {
		h.endMinute()
		h.minute = of
	}
	other := h.hourOf() != h.piece.hour
	h.gap = h.last > 0 && other && at-h.last > h.mostGap
	if h.piece.open && (at <= h.last || other) {
		h.end()
	}
	if !h.piece.open && h.calendar.known {
		h.begin()
	}
	if h.extremes && h.last > 0 && at-h.last > lateReading && !h.piece.missed {
		h.Cut(at) // the row of the time before keeps its extremes
		h.piece.missed = true
	}
}

// hourOf is the begin of the local hour of the readings: those at a full hour are of the hour before.
func (h *Hours) hourOf() instant.Time {
	return floor(h.at-1+h.calendar.offset, hour)*hour - h.calendar.offset
}

func floor(t, unit instant.Time) instant.Time {
	n := t / unit
	if t%unit < 0 {
		n--
	}
	return n
}

// begin begins rows, at the full hour if none of the hour came before them.
func (h *Hours) begin() {
	h.piece = piece{open: true, hour: h.hourOf(), begin: h.at}
	if full := h.piece.hour; h.last > 0 && h.last <= full && full > h.newest { // the hour was read from its begin on
		h.piece.begin = full
	}
}

// end emits the last rows of the hour, and forgets paths that it did not have.
func (h *Hours) end() {
	if h.changed {
		h.rowsNow()
	}
	h.piece = piece{}
	kept := h.order[:0]
	for _, r := range h.order {
		if !r.inHour && r.seen+1 < h.ticks {
			delete(h.rows, string(keyOf(h.key[:0], r.table.Name, r.tags)))
			continue
		}
		r.inHour = false
		for i := range r.cells {
			c := &r.cells[i]
			c.value, c.emitted, c.known, c.inMinute = 0, 0, false, false
		}
		kept = append(kept, r)
	}
	clear(h.order[len(kept):])
	h.order = kept
}

// Add adds a point of the series of the instant.
func (h *Hours) Add(p *point.Point) {
	if p.Measurement == calendarMeasurement {
		h.addCalendar(p)
		return
	}
	s := h.sources[p.Measurement]
	if s == nil {
		return
	}
	t, bound := &h.tables[s.table], ""
	h.key = append(h.key[:0], t.Name...)
	for _, tag := range p.Tags {
		if tag.Key == point.BucketTag {
			bound = tag.Value
			continue
		}
		h.key = append(append(h.key, 0), tag.Value...)
	}
	r := h.rows[string(h.key)]
	if r == nil {
		r = &row{table: t, cells: make([]cell, len(t.Columns))}
		for _, tag := range p.Tags {
			if tag.Key != point.BucketTag {
				r.tags = append(r.tags, tag)
			}
		}
		h.rows[string(h.key)] = r
		h.order = append(h.order, r)
	}
	r.seen = h.ticks
	for _, i := range s.columns {
		if t.Columns[i].Bound != bound {
			continue
		}
		for k := range p.Fields {
			if f := &p.Fields[k]; f.Key == t.Columns[i].Field {
				h.read(r, i, numberOf(f))
			}
		}
	}
}

func keyOf(to []byte, name string, tags []point.Tag) []byte {
	to = append(to, name...)
	for _, t := range tags {
		to = append(append(to, 0), t.Value...)
	}
	return to
}

func numberOf(f *point.Field) float64 {
	switch f.Value.Kind() {
	case lineprotocol.Int:
		return float64(f.Value.IntV())
	case lineprotocol.Float:
		return f.Value.FloatV()
	default:
		return 0
	}
}

func (h *Hours) addCalendar(p *point.Point) {
	for _, t := range p.Tags {
		if t.Key == point.ZoneTag {
			h.now.zone = t.Value
		}
	}
	for i := range p.Fields {
		switch f := &p.Fields[i]; f.Key {
		case offsetField:
			h.now.known, h.now.offset = true, instant.Time(numberOf(f)*1e9)
		case holidayField:
			h.now.holiday = numberOf(f) > 0
		}
	}
}

// read adds a value.
func (h *Hours) read(r *row, i int, v float64) {
	c, of := &r.cells[i], &r.table.Columns[i]
	if of.Role == point.Increases {
		c.now, c.read = v, h.ticks
		return
	}
	if !h.piece.open {
		return
	}
	switch of.Role {
	case point.Smallest:
		if !c.known || v < c.value {
			c.value = v
		}
	case point.Largest:
		if !c.known || v > c.value {
			c.value = v
		}
	case point.Total:
		c.value += v
	case point.Readings:
		c.value++
	case point.Minutes, point.MinutesUp:
		if !c.inMinute || v > c.now {
			c.now = v
		}
		c.inMinute = true
	case point.MinutesBelow:
		if !c.inMinute || v < c.now {
			c.now = v
		}
		c.inMinute = true
	case point.Increases:
	}
	c.known, r.inHour, h.changed = true, true, true
}

// ofMinute is the contribution of the present minute.
func (c *cell) ofMinute(of *point.HourColumn) float64 {
	switch {
	case !c.inMinute:
	case of.Role == point.Minutes, of.Role == point.MinutesUp && c.now > 0, of.Role == point.MinutesBelow && c.now < of.Limit:
		return 1
	}
	return 0
}

func (h *Hours) endMinute() {
	for _, r := range h.order {
		for i := range r.cells {
			c := &r.cells[i]
			c.value += c.ofMinute(&r.table.Columns[i])
			c.inMinute = false
		}
	}
}

// End ends the readings of the instant, and emits the rows once a minute.
func (h *Hours) End() {
	h.calendar = h.now
	if h.calendar.known && !h.piece.open {
		h.begin()
	}
	h.label()
	for _, r := range h.order {
		for i := range r.cells {
			h.count(r, i)
		}
	}
	h.last = h.at
	if part := floor(h.at, emitEach); part != h.emitted {
		if h.emitted = part; h.changed {
			h.rowsNow()
		}
	}
}

// count adds the increase of a counter. One that this process did not read an instant ago is new, and has counted from 0.
func (h *Hours) count(r *row, i int) {
	c := &r.cells[i]
	if r.table.Columns[i].Role != point.Increases || c.read == 0 {
		return
	}
	if c.read != h.ticks { // it is absent
		c.read = 0
		return
	}
	d := c.now - c.before
	if d < 0 {
		d = c.now
	}
	c.before = c.now
	if h.ticks == 1 || !h.piece.open || h.gap {
		return // counted since an unknown time
	}
	c.value += d
	c.known, r.inHour, h.changed = true, true, true
}

// label sets the tags of the rows, once: the first readings of the hour have its calendar.
func (h *Hours) label() {
	if !h.piece.open || h.piece.labeled || !h.calendar.known {
		return
	}
	local := (h.at - 1 + h.calendar.offset).Time()
	day := localday.TypeOf(local.Weekday(), h.calendar.holiday)
	h.piece.labeled = true
	h.piece.tags = [3]point.Tag{{Key: point.DayTypeTag, Value: string(day)}, {Key: point.LocalHourTag, Value: strconv.Itoa(local.Hour())}, {Key: point.ZoneTag, Value: h.calendar.zone}}
}

// Cut makes rows of a new piece from the next instant on: the tags of paths changed, and rows with the new tags must not repeat what those with
// the former ones have.
func (h *Hours) Cut(at instant.Time) {
	if !h.piece.open || at <= h.piece.begin {
		return
	}
	h.piece.begin = at
	for _, r := range h.order {
		for i := range r.cells {
			c := &r.cells[i]
			if r.table.Columns[i].Operation() == point.BySum {
				c.value -= c.emitted
			} else {
				c.value, c.known = 0, false
			}
			c.emitted = 0
		}
	}
}

// Flush emits the rows of the present hour: the process ends.
func (h *Hours) Flush() {
	if h.changed && h.piece.open {
		h.rowsNow()
	}
}

func (h *Hours) rowsNow() {
	h.changed = false
	if !h.piece.labeled {
		return
	}
	h.newest = max(h.newest, h.piece.begin)
	for _, r := range h.order {
		if r.inHour {
			h.row(r)
		}
	}
}

// row emits a row.
func (h *Hours) row(r *row) {
	p := &h.point
	p.Measurement, p.At, p.Fields = r.table.Name, h.piece.begin, p.Fields[:0]
	p.Tags = merged(p.Tags[:0], r.tags, h.piece.tags[:])
	for i := range r.cells {
		c, of := &r.cells[i], &r.table.Columns[i]
		if !c.known || of.Extreme && h.piece.missed {
			continue
		}
		v := c.value + c.ofMinute(of)
		c.emitted = v
		if of.Kind == lineprotocol.Int {
			p.Fields = point.Int(p.Fields, of.Key, int64(v))
		} else {
			p.Fields = point.Float(p.Fields, of.Key, v)
		}
	}
	if len(p.Fields) > 0 {
		h.emit(p)
	}
}

// merged appends two lists of tags in the order of keys.
func merged(to, a, b []point.Tag) []point.Tag {
	for len(a) > 0 || len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].Key < b[0].Key {
			to, a = append(to, a[0]), a[1:]
			continue
		}
		to, b = append(to, b[0]), b[1:]
	}
	return to
}
