package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
)

const (
	// lossTimeout is the light probe's loss_timeout.
	lossTimeout = 2 * time.Second
	// hostSlack is the time within which both agents have counted a received packet, whatever else runs on this
	// machine: a reply waits at most a second and a half for its transmit timestamp, and a process may occupy a core
	// for longer than a second.
	hostSlack = 3 * time.Second
	// lateDoubt is the range around loss_timeout in which the agent, whose clocks have a bound, may count a packet as
	// lost or not.
	lateDoubt = 20 * time.Millisecond
	// stampTolerance is the tolerance of a round trip, which has no bound of its own: four kernel timestamps, 25 us
	// each.
	stampTolerance = 100 * time.Microsecond
	// ratingTolerance is the tolerance of R, 0..100: packets within the delays' bound of a playout buffer's end may be
	// counted as late or not, a fifth of a point each.
	ratingTolerance = 0.5
)

// lightRows reads all values of the light probe from Prometheus, and the truth of the same packets from the link's log.
//
// Counters cover all packets up to one scrape, which the counter of packets sent identifies. The outcome of the last
// packets is still open: the truth's span is the log's counts with and without them. Delays, R and the round trip are
// of a window, the session's first: see window.
func (s *stack) lightRows(ctx context.Context, profile lab.Profile) []row {
	w := s.firstWindow(ctx)
	var counts [2]map[string]float64
	for _, d := range sample.Directions() {
		counts[d] = s.counters(ctx, d)
	}
	s.settle(ctx, profile)
	log := newPathLog(s.network)
	var rows []row
	for i, link := range []lab.Link{profile.Forward, profile.Reverse} {
		d := sample.Direction(i)
		found := append(s.windowRows(ctx, d, link, log, w), countRows(d, link, log, counts[d])...)
		found = append(found, s.qualityRows(ctx, d, link, log, w)...)
		rows = append(rows, s.explained(ctx, found, d.String())...)
	}
	r := row{
		Name: "round_trip_time_min_seconds", Direction: "both", Configured: (profile.Forward.Delay + profile.Reverse.Delay).Seconds(), Measured: s.value(ctx, `oneway_round_trip_time_min_seconds{`+selector+`}`), Unit: "seconds",
		Tolerance: stampTolerance.Seconds(), Why: "four kernel timestamps, 25 us each",
	}
	if w != nil {
		trips := log.roundTrips(*w)
		r.Truth = trips.least()
	}
	return judged(append(rows, s.explained(ctx, []row{r}, "")...))
}

// explained adds the agent's reason to rows without a value.
func (s *stack) explained(ctx context.Context, rows []row, direction string) []row {
	reason := ""
	for i := range rows {
		if rows[i].Measured != nil {
			continue
		}
		if reason == "" {
			reason = s.lightReason(ctx, direction)
		}
		rows[i].Reason = reason
	}
	return rows
}

// settle waits until no counted packet is inside the link.
func (s *stack) settle(ctx context.Context, p lab.Profile) {
	longest := p.Forward.Delay + p.Forward.Jitter + p.Reverse.Delay + p.Reverse.Jitter + 2*lab.HoldTimeout
	timer := time.NewTimer(longest + time.Second)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// firstWindow finds the end of the session's first window; nil if there has been none.
func (s *stack) firstWindow(ctx context.Context) *window {
	shown := s.points(ctx, `oneway_round_trip_time_min_seconds{`+selector+`}`)
	if len(shown) == 0 {
		return nil
	}
	w := window{maybe: shown[0].at}
	for _, p := range s.points(ctx, `oneway_packets_sent_total`+of(sample.Forward)) {
		if p.at < shown[0].at {
			w.sure = p.at.Add(-hostSlack)
		}
	}
	for _, p := range s.points(ctx, `scrape_duration_seconds{job="oneway",instance="client"}`) {
		if p.at == shown[0].at { // its end is at an unknown time within that scrape interval
			w.maybe = w.maybe.Add(time.Duration(p.value * 1e9))
		}
	}
	return &w
}

// windowRows are the delays of the first window.
func (s *stack) windowRows(ctx context.Context, d sample.Direction, link lab.Link, log *pathLog, w *window) []row {
	bound := orZero(s.value(ctx, `oneway_delay_error_bound_seconds`+of(d)))
	least := row{Name: "delay_min_seconds", Direction: d.String(), Configured: link.Delay.Seconds(), Measured: s.value(ctx, `oneway_delay_min_seconds`+of(d)), Bound: bound, Unit: "seconds", Why: "the bound is all that a delay may be off"}
	median := row{Name: "delay_median_seconds", Direction: d.String(), Configured: (link.Delay + link.Jitter/2).Seconds(), Measured: s.value(ctx, `oneway_delay_quantile_seconds`+strings.Replace(of(d), `}`, `,quantile_rank="0.5"}`, 1)), Bound: bound, Unit: "seconds", Why: least.Why}
	if w != nil {
		m := log.members(d, *w)
		least.Truth, median.Truth = m.least(), m.median()
	}
	return []row{least, median}
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// countRows are the counters of a direction.
func countRows(d sample.Direction, link lab.Link, log *pathLog, v map[string]float64) []row {
	lossConfigured := 1 - (1-link.Loss)*(1-link.Corrupt)
	const exact = "whole numbers: the agent's lie between the log's with and without the packets not yet decided"
	loss := row{Name: "loss_ratio", Configured: lossConfigured}
	duplicated, corrupted := row{Name: "duplicated_ratio", Configured: link.Duplicate}, row{Name: "corrupted_ratio", Configured: link.Corrupt}
	rows := []*row{&loss, &duplicated, &corrupted}
	for _, r := range rows {
		r.Direction, r.Unit, r.Why = d.String(), "ratio", exact
	}
	unaccounted := row{Name: "packets_unaccounted", Direction: d.String(), Unit: "packets", Why: "what entered the link = received + lost + dropped by the receiving host + outstanding, exactly"}
	have := func(names ...string) bool {
		for _, n := range names {
			if _, ok := v[n]; !ok {
				return false
			}
		}
		return true
	}
	if have("sent") {
		settled, all, lost := log.counted(d, uint64(v["sent"]))
		between := func(r *row, of float64, measured, low, high uint64) {
			value := float64(measured) / of
			r.Measured, r.Truth = &value, &span{float64(low) / of, float64(high) / of}
		}
		if have("received", "lost") && v["received"]+v["lost"] > 0 {
			between(&loss, v["received"]+v["lost"], uint64(v["lost"]), lost[0], lost[1])
		}
		if have("received", "duplicated") && v["received"] > 0 {
			between(&duplicated, v["received"], uint64(v["duplicated"]), settled.Duplicated, all.Duplicated)
		}
		if have("received", "corrupted") && v["received"]+v["corrupted"] > 0 {
			between(&corrupted, v["received"]+v["corrupted"], uint64(v["corrupted"]), settled.Corrupted, all.Corrupted)
		}
		if have("received", "lost", "host_dropped", "outstanding") {
			left := float64(all.Sent) - v["received"] - v["lost"] - v["host_dropped"] - v["outstanding"]
			unaccounted.Measured = &left
		}
	}
	if n := log.drawn(d); link.LossBurst == 0 {
		for r, p := range map[*row]float64{
			&loss: chance(n.lost, n.passed, link.Loss), &duplicated: chance(n.duplicated, n.delivered, link.Duplicate), &corrupted: chance(n.corrupted, n.delivered, link.Corrupt),
		} {
			r.Chance = &p
		}
	}
	return []row{unaccounted, loss, duplicated, corrupted}
}

// qualityRows are the timestamps' coverage and R.
func (s *stack) qualityRows(ctx context.Context, d sample.Direction, link lab.Link, log *pathLog, w *window) []row {
	r := s.value(ctx, `oneway_voice_r_factor{`+selector+fmt.Sprintf(`,direction=%q,codec="G.711-PLC",model="g107",buffer="adaptive"}`, d))
	voice := row{
		Name: "voice_r_factor", Direction: d.String(), Configured: expectedR(link, 1-(1-link.Loss)*(1-link.Corrupt)), Measured: r, Unit: "R",
		Tolerance: ratingTolerance, Why: "packets at the playout buffer's end",
	}
	if w != nil {
		voice.Truth = log.rating(d, *w)
	}
	return []row{{
		Name: "stamp_coverage_ratio", Direction: d.String(), Configured: 1, Measured: s.coverage(ctx, d), Unit: "ratio",
		Tolerance: 0.001 + link.Loss, Why: "kernel timestamps at both ends of 99.9 % of packets; a lost reply may lose one; the link's log has no timestamps",
	}, voice}
}

// coverage is the share of a direction's samples with two kernel timestamps (T1 and T2; T3 and T4); nil if there are
// none.
func (s *stack) coverage(ctx context.Context, d sample.Direction) *float64 {
	out := math.Inf(1)
	for _, event := range map[sample.Direction][2]string{sample.Forward: {"t1", "t2"}, sample.Reverse: {"t3", "t4"}}[d] {
		v := s.value(ctx, fmt.Sprintf(`sum(oneway_timestamps_total{%s,event=%q,origin=~"kernel|hardware|follow_up"}) / (sum(oneway_timestamps_total{%[1]s,event=%[2]q}) + (sum(oneway_timestamps_missing_total{%[1]s,event=%[2]q}) or vector(0)))`, selector, event))
		if v == nil {
			return nil
		}
		out = min(out, *v)
	}
	return &out
}
