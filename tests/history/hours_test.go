package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"

	"oneway.example/exporter/core/hourrow"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/hours"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/point/series"
	"oneway.example/exporter/output/promsink"
	"oneway.example/tests/history/recorded"
	"oneway.example/tests/influx"
)

// tick is the time between two scrapes, and two points; perTick are the packets between them.
const (
	tick    = 10 * time.Second
	perTick = 15
)

// sequence is an agent with one path whose packets are known. Prometheus scrapes it, and InfluxDB has its points.
type sequence struct {
	t        *testing.T
	location *time.Location
	rules    *recorded.Evaluator
	series   map[string]*recorded.Series
	recorded map[string]float64 // values of rules, by row and field
	convert  *series.Converter
	encoder  point.Encoder
	lines    bytes.Buffer

	sink  *promsink.Sink
	scope *metric.Scope
	hours *hours.Hours
	n     int                // packets in all
	sent  map[string]float64 // packets of each local hour, by its begin
	// killed is the hour in which a process was killed.
	killed string
}

func newSequence(t *testing.T, zone string) *sequence {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	s := &sequence{t: t, location: location, series: map[string]*recorded.Series{}, recorded: map[string]float64{}, convert: series.New(families.All()), sent: map[string]float64{}}
	if s.rules, err = recorded.New(s.take, true); err != nil {
		t.Fatal(err)
	}
	return s
}

// fieldsOfRules are the fields of rows that a rule is for.
func fieldsOfRules() map[string]string {
	of := map[string]string{
		rules.LongIncrease(metric.PacketsSent): "packets_sent", rules.LongIncrease(metric.PacketsLost): "packets_lost", rules.LongIncrease(metric.PacketsReceived): "packets_received",
		rules.LongBuckets(metric.Delay): hourrow.Delays, rules.LongDelayMin.Name: "delay_min_seconds", rules.LongDelayMax.Name: "delay_max_seconds",
		rules.LongBound.Name: "delay_error_bound_seconds", rules.LongMeasured.Name: "measured_minutes", rules.LongUp.Name: "up_minutes",
		rules.LongRMin.Name: "voice_r_factor_min", rules.LongRBelow70.Name: "minutes_below_70", rules.LongRBelow80.Name: "minutes_below_80",
	}
	return of
}

// take has the samples of a rule.
func (s *sequence) take(l labels.Labels, floats []promql.FPoint, _ []promql.HPoint) error {
	field := fieldsOfRules()[l.Get(model.MetricNameLabel)]
	if field == "" {
		return nil
	}
	if le := l.Get("le"); le != "" && le != "+Inf" {
		field += "_le_" + strings.ReplaceAll(le, ".", "_")
	}
	for _, p := range floats {
		begin := time.UnixMilli(p.T).Add(-time.Hour).UTC().Format(time.RFC3339)
		s.recorded[strings.Join([]string{begin, l.Get("day_type"), l.Get("hour"), l.Get("zone"), field}, " ")] = p.F
	}
	return nil
}

// start starts a process of the agent.
func (s *sequence) start() {
	s.reload()
	s.hours = hours.New(tick, s.write)
}

// reload begins all series again, in the same process.
func (s *sequence) reload() {
	s.sink = promsink.New(promsink.Options{NoNative: true})
	s.scope = metric.NewScope(s.sink, "p", "stamp")
	for _, d := range []*metric.Desc{metric.PacketsSent, metric.PacketsLost, metric.PacketsReceived} {
		s.scope.Series(d, "forward").Add(0)
	}
}

// read publishes the packets since the last reading, and lets both stores have the series.
func (s *sequence) read(at time.Time, packets int) {
	_, offset := at.In(s.location).Zone()
	least, most, lost := math.Inf(1), 0.0, 0
	for range packets {
		s.n++
		if s.n%7 == 0 {
			lost++
			continue
		}
		d := 0.0007 * math.Pow(1.6, float64(s.n%16)) * (1 + float64(at.Unix()/3600%5)/10)
		s.scope.Series(metric.Delay, "forward").Observe(d)
		least, most = min(least, d), max(most, d)
	}
	s.scope.Series(metric.PacketsSent, "forward").Add(float64(packets))
	s.scope.Series(metric.PacketsLost, "forward").Add(float64(lost))
	s.scope.Series(metric.PacketsReceived, "forward").Add(float64(packets - lost))
	if packets > 0 {
		s.scope.Set(metric.DelayMin, least, "forward")
		s.scope.Set(metric.DelayMax, most, "forward")
		s.scope.Set(metric.DelayErrorBound, 1e-6*float64(s.n%1000), "forward")
		s.scope.Set(metric.VoiceR, float64(60+s.n/100%30), "forward", "G.711", "g107", "none")
		s.scope.Set(metric.ProbeUp, metric.Flag(s.n/500%4 > 0))
	}
	own := metric.NewScope(s.sink)
	own.Set(metric.UTCOffset, float64(offset), s.location.String())
	begin := at.Add(-1).In(s.location)
	begin = begin.Add(-time.Duration(begin.Minute())*time.Minute - time.Duration(begin.Second())*time.Second - time.Duration(begin.Nanosecond()))
	s.sent[begin.UTC().Format(time.RFC3339)] += float64(packets)
	s.scrape(at)
	s.hours.Begin(instant.FromTime(at))
	if err := s.convert.Convert(s.sink, instant.FromTime(at), s.hours.Add); err != nil {
		s.t.Fatal(err)
	}
	s.hours.End()
}

// scrape appends the series to the memory of the rules, with classic buckets, by Prometheus' parser.
func (s *sequence) scrape(at time.Time) {
	var b bytes.Buffer
	if err := s.sink.Expose(&b, expfmt.NewFormat(expfmt.TypeProtoDelim)); err != nil {
		s.t.Fatal(err)
	}
	p := textparse.NewProtobufParser(b.Bytes(), true, true, false, false, labels.NewSymbolTable())
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		_, _, v := p.Series()
		if !s.rules.Wants(l.Get(model.MetricNameLabel)) {
			continue
		}
		l = labels.NewBuilder(l).Set("job", job).Set("instance", "a").Labels()
		one := s.series[l.String()]
		if one == nil {
			one = s.rules.Open(l)
			s.series[l.String()] = one
		}
		one.Append(at.UnixMilli(), v, nil, nil)
	}
}

func (s *sequence) write(p *point.Point) {
	line, err := s.encoder.Append(nil, p)
	if err != nil {
		s.t.Fatal(err)
	}
	s.lines.Write(line)
}

// load writes the points to a real InfluxDB that deploy/influxdb made, and runs its continuous queries for that time.
func load(t *testing.T, server *influx.Server, lines []byte, from, to time.Time) {
	t.Helper()
	server.Write(t, "raw", string(lines))
	const week = 7 * 24 * time.Hour
	for _, table := range point.HourTables() {
		query := server.Query("", "SHOW CONTINUOUS QUERIES")
		i := slices.IndexFunc(query, func(row []any) bool { return row[0] == table.Name })
		_, statement, _ := strings.Cut(query[i][1].(string), " BEGIN ")
		statement = strings.TrimSuffix(statement, " END")
		for begin := from; begin.Before(to); begin = begin.Add(week) { // a year at once takes longer than a request may
			end := begin.Add(week)
			if to.Before(end) {
				end = to
			}
			server.Query("oneway", strings.Replace(statement, " GROUP BY", fmt.Sprintf(" WHERE time >= '%s' AND time < '%s' GROUP BY", begin.Format(time.RFC3339), end.Format(time.RFC3339)), 1))
		}
	}
}

// newInflux is a real InfluxDB 1.8.10 whose raw points are kept for ever, since the sequences are of any year.
func newInflux(t *testing.T) *influx.Server {
	t.Helper()
	server := influx.New(t, false)
	server.Start()
	influx.Create(t, server)
	server.Query("oneway", `ALTER RETENTION POLICY "raw" ON "oneway" DURATION INF SHARD DURATION 4w`)
	server.Query("oneway", `ALTER RETENTION POLICY "long" ON "oneway" DURATION INF SHARD DURATION 26w`)
	return server
}

// rows are the fields of the long rows, by begin, kind of day, hour, zone and field.
func rows(server *influx.Server) map[string]float64 {
	all := map[string]float64{}
	for _, table := range point.HourTables() {
		keys := []string{point.DayTypeTag, point.LocalHourTag, point.ZoneTag}
		for i := range table.Columns {
			keys = append(keys, table.Columns[i].Key)
		}
		for _, row := range server.Query("oneway", `SELECT "`+strings.Join(keys, `", "`)+`" FROM "long"."`+table.Name+`"`) {
			begin := time.Unix(0, int64(row[0].(float64))).UTC().Truncate(time.Hour / 4).Format(time.RFC3339)
			for i, v := range row[4:] {
				if v != nil {
					all[fmt.Sprint(begin, " ", row[1], " ", row[2], " ", row[3], " ", keys[i+3])] = v.(float64)
				}
			}
		}
	}
	return all
}

// TestRowsOfHoursAreTheHoursOfTheRules: a known sequence in two zones, with a reload, a restart, a gap of hours and the end of daylight saving time. Of hours
// in which the agent ran, InfluxDB has what the rules record in the engine of Prometheus, and it has the packets that were sent.
func TestRowsOfHoursAreTheHoursOfTheRules(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "Asia/Kathmandu"} {
		t.Run(zone, func(t *testing.T) {
			s := newSequence(t, zone)
			begin := time.Date(2026, 10, 24, 20, 0, 0, 0, time.UTC)
			if zone == "Asia/Kathmandu" {
				begin = begin.Add(15 * time.Minute)
			}
			at := func(d time.Duration) time.Time { return begin.Add(d) }
			s.start()
			s.read(at(0), 0)
			restart, reload, off, on, end := at(2*time.Hour+20*time.Minute+40*time.Second), at(90*time.Minute), at(6*time.Hour+10*time.Minute), at(8*time.Hour+27*time.Minute), at(14*time.Hour)
			for now := at(tick); !now.After(end); now = now.Add(tick) {
				switch {
				case now.After(off) && now.Before(on):
					continue
				case now.Equal(off): // it is stopped
					s.read(now, perTick)
					s.hours.Flush()
					continue
				case now.Equal(restart) || now.Equal(on): // it was killed before the restart
					s.start()
					s.read(now, 0)
					continue
				case now.Equal(reload):
					s.reload()
				}
				s.read(now, perTick)
			}
			if err := s.rules.Evaluate(at(time.Hour), end, true); err != nil {
				t.Fatal(err)
			}
			server := newInflux(t)
			load(t, server, s.lines.Bytes(), begin.Add(-time.Hour), end.Add(time.Hour))
			s.killed = at(2 * time.Hour).Format(time.RFC3339)
			s.compare(rows(server), map[string]bool{
				at(0).Format(time.RFC3339):             true, // the first delays came after the first scrape
				at(2 * time.Hour).Format(time.RFC3339): true, at(time.Hour).Format(time.RFC3339): true,
				at(6 * time.Hour).Format(time.RFC3339): true, at(8 * time.Hour).Format(time.RFC3339): true,
			})
		})
	}
}

// compare compares the rows with the rules, and the packets of all rows with those that were sent. In broken hours a counter restarted: the
// rules extrapolate then, by less than the packets of 2 scrapes, and a process that is killed has not written its last minute.
func (s *sequence) compare(rows map[string]float64, broken map[string]bool) {
	s.t.Helper()
	hours, compared, brokenHours := map[string]bool{}, 0, map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(s.recorded)) {
		want := s.recorded[key]
		begin, _, _ := strings.Cut(key, " ")
		got, found := rows[key]
		switch {
		case broken[begin]:
			brokenHours[begin] = true
			if strings.Contains(key, "packets_") || strings.Contains(key, "delays") {
				got = 0
				for quarter := range 4 {
					t, _ := time.Parse(time.RFC3339, begin)
					got += rows[strings.Replace(key, begin, t.Add(time.Duration(quarter)*time.Hour/4).Format(time.RFC3339), 1)]
				}
				if math.Abs(got-want) > 2*perTick && (begin != s.killed || got > want || got < want-6*perTick) {
					s.t.Errorf("%s: %v, rule %v", key, got, want)
				}
			}
		case !found || math.Abs(got-want) > 1e-9*math.Abs(want):
			s.t.Errorf("%s: %v (%v), rule %v", key, got, found, want)
		default:
			compared++
			hours[begin] = true
		}
	}
	total := map[string]float64{}
	for key, v := range rows {
		if strings.HasSuffix(key, " packets_sent") {
			begin, _, _ := strings.Cut(key, " ")
			t, _ := time.Parse(time.RFC3339, begin)
			local := t.In(s.location)
			total[t.Add(-time.Duration(local.Minute())*time.Minute).UTC().Format(time.RFC3339)] += v
		}
	}
	for begin, want := range s.sent {
		unsaved := 0.0 // of at most a minute
		if begin == s.killed {
			unsaved = want - total[begin]
		}
		if want != total[begin]+unsaved || unsaved < 0 || unsaved > 4*perTick {
			s.t.Errorf("hour from %s: %v packets in InfluxDB, want %v", begin, total[begin], want)
		}
	}
	if len(hours) < 8 || len(brokenHours) < 2 || compared < 8*15 {
		s.t.Errorf("%d values of %d hours compared, and of %d broken ones", compared, len(hours), len(brokenHours))
	}
	s.t.Logf("%d values of %d whole hours are equal", compared, len(hours))
}
