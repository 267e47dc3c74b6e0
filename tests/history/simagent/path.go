package simagent

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/history/scene"
)

// residence is the time of a packet in the reflector.
const residence = 60 * time.Microsecond

// path is a path of an agent.
type path struct {
	of      *scene.Path
	weather *scene.Weather
	// shift is when in an interval its packets are sent.
	shift   time.Duration
	replay  *stamp.Replay
	tcp     *tcpSeries // nil: it has no runs
	hour    time.Time  // the begin of the present one
	minutes [60]bool   // of it, in which there was a reply
	packet  sample.Packet
	state   *pathState
}

// pathState is the state of a path, as the agent decides it.
type pathState struct {
	begun         time.Time
	judge         pathstate.Judge
	state, reason metric.Series
}

// decide decides the state after a packet. A run fills the link of its path.
func (p *path) decide(at time.Time) {
	f := p.replay.Facts()
	p.state.judge.Decide(at.Sub(p.state.begun), &f, p.tcp != nil && p.running(at))
}

// running reports whether a run of the path is under way.
func (p *path) running(at time.Time) bool {
	every := 24 * time.Hour / time.Duration(p.of.Runs.PerDay)
	end := at.Add(runLength).Truncate(every).Add(7*time.Minute + p.shift)
	return !at.After(end) && end.Sub(at) < runLength
}

// publish sets the series.
func (s *pathState) publish() {
	why := s.judge.Reason()
	s.state.Set(float64(why.State()))
	s.reason.Set(float64(why))
}

// send sends the packets from at until before until. The clocks of both ends are apart by a third of their bounds.
func (p *path) send(at, until time.Time, interval time.Duration, bounds [2]sample.Bound) {
	shift := p.shift % interval
	next := at.Add(-shift).Truncate(interval).Add(shift)
	for next.Before(at) {
		next = next.Add(interval)
	}
	apart := (bounds[0].Error - bounds[1].Error) / 3
	for ; next.Before(until); next = next.Add(interval) {
		v := p.weather.Packet(next)
		if v.Lost {
			p.replay.Lost(v.LostIn)
			p.decide(next)
			continue
		}
		t1 := instant.FromTime(next)
		t2 := t1.Add(v.Forward + apart)
		t3 := t2.Add(residence)
		p.packet.T1 = sample.Stamp{At: t1, Origin: sample.Kernel}
		p.packet.T2 = sample.Stamp{At: t2, Origin: sample.Kernel}
		p.packet.T3 = sample.Stamp{At: t3, Origin: sample.FollowUp}
		p.packet.T4 = sample.Stamp{At: t3.Add(v.Reverse - apart), Origin: sample.Kernel}
		p.packet.Local, p.packet.Remote = bounds[0], bounds[1]
		p.replay.Answered(&p.packet)
		p.decide(next)
		if minute := int(next.Sub(p.hour) / time.Minute); minute < len(p.minutes) {
			p.minutes[minute] = true
		}
	}
}

// tcpSeries are the series of the TCP runs of a path.
type tcpSeries struct {
	scope  *metric.Scope
	values *loadtest.Values
}

// open opens the series that exist before the first run.
func (s *tcpSeries) open(every time.Duration) {
	s.scope.Set(metric.RunInterval, every.Seconds())
	s.scope.Series(metric.Runs, "completed", "ok")
	for _, result := range metric.RunResults.Values.Names(metric.ResultL) {
		s.scope.Series(metric.RunResults, result)
	}
	s.scope.Series(metric.TCPRunThroughput, sample.Reverse.String())
}

// runs performs the runs from at until before until. A run takes a minute; it ends within the time in which it began.
func (p *path) runs(at, until time.Time, calendar localday.Calendar, w Watcher) error {
	if p.tcp == nil {
		return nil
	}
	every := 24 * time.Hour / time.Duration(p.of.Runs.PerDay)
	for next := at.Truncate(every).Add(7*time.Minute + p.shift); next.Before(until); next = next.Add(every) {
		if next.Before(at) {
			continue
		}
		if err := w.Run(p.run(next, calendar)); err != nil {
			return err
		}
	}
	return nil
}

// runLength is how long a run takes.
const runLength = time.Minute

func (p *path) run(end time.Time, calendar localday.Calendar) *record.Result {
	s, throughput := p.tcp, p.weather.Throughput()
	s.scope.Series(metric.Runs, "completed", "ok").Add(1)
	s.scope.Series(metric.RunResults, "completed").Add(1)
	id := fmt.Sprintf("%s-tcp-%s", end.UTC().Format("20060102T150405Z"), p.of.Name)
	values := s.values.ReplaceRecorded(id, func(v *loadtest.Values) {
		_, offset := calendar.Local(end).Zone()
		s.scope.Set(metric.RunLast, float64(end.UnixNano())/1e9)
		s.scope.Set(metric.RunUTCOffset, float64(offset))
		s.scope.SetIf(metric.RunHoliday, metric.Flag(calendar.DayType(end) == localday.Holiday), calendar.Holidays() != nil)
		v.Set(metric.RunDuration, runLength.Seconds())
		v.Set(metric.TCPThroughput, throughput, sample.Reverse.String())
		v.Observe(metric.TCPRunThroughput, throughput, sample.Reverse.String())
	})
	return &record.Result{
		Path: p.of.Name, Probe: "tcp", Run: id, Begin: instant.FromTime(end.Add(-runLength)),
		LocalHour: calendar.Local(end).Hour(), DayType: calendar.DayType(end), Values: values,
	}
}

// Delays are the delays forward of all answered packets of a path without runs in a scene without named days: the truth of its series.
func Delays(s *scene.Scene, of *scene.Path) (all []time.Duration) {
	a, err := New(s, of.From, metric.Slim, nil)
	if err != nil {
		return nil
	}
	for _, p := range a.paths {
		if p.of.Name != of.Name {
			continue
		}
		for begin := s.Begin.Add(a.phase); begin.Before(s.End.Add(a.phase)); begin = begin.Add(time.Hour) {
			p.weather.Hour(begin)
			for t := begin.Truncate(usualInterval).Add(p.shift % usualInterval); t.Before(begin.Add(time.Hour)); t = t.Add(usualInterval) {
				if _, running := a.change(t, t.Add(1)); !running {
					continue
				}
				if v := p.weather.Packet(t); !v.Lost {
					all = append(all, v.Forward)
				}
			}
		}
	}
	return all
}
