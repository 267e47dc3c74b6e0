package slareport

import (
	"fmt"
	"io"
	"math"
	"testing"

	"oneway.example/exporter/serve/promapi"
	"oneway.example/exporter/serve/slareport"
)

const dayMinutes = 24 * 60

// perMinute writes a sample for each minute of two days, from a minute on.
func perMinute(w io.Writer, from int, name, labels string, v func(minute int) int) {
	fmt.Fprintf(w, "# TYPE %s unknown\n", name)
	for i := from; i < 2*dayMinutes; i++ {
		fmt.Fprintf(w, "%s{%sjob=\"oneway\",instance=\"a:9862\",path=\"berlin\",probe=\"stamp\"} %d %d\n", name, labels, v(i), begin().Unix()+int64(i)*60)
	}
}

// known writes the buckets of delays of 10 ms, and that the path is measured.
func known(w io.Writer, up, delays func(minute int) int) {
	perMinute(w, 0, "oneway_probe_up", "", up)
	perMinute(w, 0, "oneway_probe_interval_seconds", "", func(int) int { return 1 })
	fmt.Fprintln(w, "# TYPE oneway_delay_seconds_bucket unknown")
	for _, le := range []string{"0.005", "0.02", "0.05", "0.1", "0.3", "1.25", "+Inf"} {
		for i := range 2 * dayMinutes {
			n := delays(i)
			if le == "0.005" {
				n = 0
			}
			fmt.Fprintf(w, "oneway_delay_seconds_bucket{direction=\"forward\",le=%q,job=\"oneway\",instance=\"a:9862\",path=\"berlin\",probe=\"stamp\"} %d %d\n",
				le, n, begin().Unix()+int64(i)*60)
		}
	}
}

// upper fails unless the upper limits of p95 forward of the rows are these.
func upper(t *testing.T, s *promapi.Server, by slareport.By, want ...float64) {
	t.Helper()
	rows, err := slareport.Make(t.Context(), s, slareport.Options{Path: path, From: begin(), To: begin().AddDate(0, 0, 2), By: by, Interval: scrape}, begin().AddDate(0, 1, 0))
	if err != nil || len(rows) != len(want) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, r := range rows {
		if q := r.Ways[0].P95; q == nil || q.Upper != want[i] {
			t.Errorf("%s from %s: p95 %+v, want an upper limit of %v", by, r.From, q, want[i])
		}
	}
}

// Replies are lost in the last quarter of the first day and the first quarter of the second one: the forward delays of a quarter of
// each day are unknown, also on the first, when their packets have no outcome yet.
func TestPacketsWithoutAnOutcomeAtTheEndHaveUnknownDelays(t *testing.T) {
	const dead = 6 * 60
	unanswered := func(i int) int { return 60 * max(0, min(i, dayMinutes+dead)-(dayMinutes-dead)) }
	outstanding := func(i int) int {
		if i >= dayMinutes+dead {
			return 0
		}
		return unanswered(i)
	}
	s := serveText(t, func(w io.Writer) {
		known(w, func(i int) int {
			if unanswered(i) > unanswered(i-1) {
				return 0
			}
			return 1
		}, func(i int) int { return 60*i - unanswered(i) })
		const forward = `direction="forward",`
		perMinute(w, 0, "oneway_packets_sent_total", forward, func(i int) int { return 60 * i })
		perMinute(w, 0, "oneway_packets_received_total", forward, func(i int) int { return 60*i - outstanding(i) })
		perMinute(w, 0, "oneway_packets_lost_total", forward, func(int) int { return 0 })
		perMinute(w, 0, "oneway_packets_outstanding", forward, outstanding)
		perMinute(w, 0, "oneway_round_trips_lost_total", "", unanswered)
	})
	upper(t, s, slareport.Day, math.Inf(1), math.Inf(1))
}

// The delays of a day whose reflector does not number its replies say nothing about unknown ones of the next day.
func TestDelaysOfAnotherReflectorHideNoUnknownOnes(t *testing.T) {
	lost := func(i int) int { return 30 * max(0, i-dayMinutes) } // replies of the second day
	s := serveText(t, func(w io.Writer) {
		known(w, func(int) int { return 1 }, func(i int) int { return 60*i - lost(i) })
		const forward = `direction="forward",`
		perMinute(w, 0, "oneway_packets_sent_total", forward, func(i int) int { return 60 * i })
		perMinute(w, dayMinutes, "oneway_packets_received_total", forward, func(i int) int { return 2 * lost(i) })
		perMinute(w, dayMinutes, "oneway_packets_lost_total", forward, func(int) int { return 0 })
		perMinute(w, 0, "oneway_round_trips_lost_total", "", lost)
		perMinute(w, 0, "oneway_round_trips_received_total", "", func(i int) int { return 60*i - lost(i) })
	})
	upper(t, s, slareport.Day, 0.02, math.Inf(1))
	upper(t, s, slareport.Month, math.Inf(1))
}

// An outage from 18:00 until 01:00 of the next day: its losses are told at its end, all at once, as the agent does. A load test
// at 00:20 is in it: packets that were sent in its two minutes are in no figure. Of the replies of each other minute one of 60 is lost.
func TestLossOfAnOutageIsThatOfItsOwnDay(t *testing.T) {
	const from, to = 18 * 60, dayMinutes + 60
	waiting := func(i int) int {
		if i < from || i >= to {
			return 0
		}
		return 60 * (i - from)
	}
	lost := func(i int) int {
		if i < to {
			return 0
		}
		return 60 * (to - from)
	}
	for name, c := range map[string]struct {
		test bool
		want [2][2]float64 // least and highest loss by day
	}{
		"no load test": {false, [2][2]float64{{0, 6. / 24}, {1. / 24, 1. / 24}}},
		"a load test":  {true, [2][2]float64{{0, 6. / 24}, {58. / (dayMinutes - 2), 58. / (dayMinutes - 2)}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveText(t, func(w io.Writer) {
				perMinute(w, 0, "oneway_probe_up", "", func(i int) int {
					if waiting(i) > 0 {
						return 0
					}
					return 1
				})
				perMinute(w, 0, "oneway_probe_interval_seconds", "", func(int) int { return 1 })
				for d, labels := range []string{`direction="forward",`, `direction="reverse",`} {
					arrived := func(i int) int { return 60*i - lost(i) - waiting(i) }
					perMinute(w, 0, "oneway_packets_sent_total", labels, func(i int) int { return [2]int{60 * i, arrived(i)}[d] })
					perMinute(w, 0, "oneway_packets_received_total", labels, func(i int) int { return arrived(i) - [2]int{0, arrived(i) / 60}[d] })
					perMinute(w, 0, "oneway_packets_lost_total", labels, func(i int) int { return [2]int{lost(i), arrived(i) / 60}[d] })
					perMinute(w, 0, "oneway_packets_outstanding", labels, func(i int) int { return [2]int{waiting(i), 0}[d] })
				}
				if c.test {
					at := int(begin().Unix()) + (dayMinutes+20)*60
					perMinute(w, dayMinutes+20, "oneway_path_test_timestamp_seconds", "", func(int) int { return at - 30 })
				}
			})
			rows, err := slareport.Make(t.Context(), s, slareport.Options{Path: path, From: begin(), To: begin().AddDate(0, 0, 2), By: slareport.Day, Interval: scrape}, begin().AddDate(0, 1, 0))
			if err != nil || len(rows) != 2 {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
			for i, r := range rows {
				near(t, fmt.Sprintf("day %d, forward: loss", i), r.Ways[0].Loss, c.want[i][0])
				near(t, fmt.Sprintf("day %d, forward: highest loss", i), r.Ways[0].LossHighest, c.want[i][1])
				near(t, fmt.Sprintf("day %d, reverse: loss", i), r.Ways[1].Loss, 1./60)
			}
		})
	}
}

// Replies are lost from 18:00 until 01:00 of the next day, and one of ten packets forward in the other hours. That the packets of the outage
// arrived is known at its end: they count on the days on which they were sent.
func TestPacketsOfAnOutageInReverseArrivedOnTheirOwnDay(t *testing.T) {
	const from, to = 18 * 60, dayMinutes + 60
	down := func(i int) int { return max(0, min(i, to)-from) } // minutes
	waiting := func(i int) int {
		if i >= to {
			return 0
		}
		return 60 * down(i)
	}
	s := serveText(t, func(w io.Writer) {
		const forward, reverse = `direction="forward",`, `direction="reverse",`
		perMinute(w, 0, "oneway_probe_up", "", func(i int) int { return map[bool]int{true: 1}[waiting(i) == 0] })
		perMinute(w, 0, "oneway_probe_interval_seconds", "", func(int) int { return 1 })
		lost := func(i int) int { return 6 * (i - down(i)) }
		arrived := func(i int) int { return 60*i - lost(i) - waiting(i) }
		replies := func(i int) int { return 54 * (i - down(i)) }
		perMinute(w, 0, "oneway_packets_sent_total", forward, func(i int) int { return 60 * i })
		perMinute(w, 0, "oneway_packets_sent_total", reverse, arrived)
		perMinute(w, 0, "oneway_packets_received_total", forward, arrived)
		perMinute(w, 0, "oneway_packets_received_total", reverse, replies)
		perMinute(w, 0, "oneway_packets_lost_total", forward, lost)
		perMinute(w, 0, "oneway_packets_lost_total", reverse, func(i int) int { return arrived(i) - replies(i) })
		perMinute(w, 0, "oneway_packets_outstanding", forward, waiting)
		perMinute(w, 0, "oneway_packets_outstanding", reverse, func(int) int { return 0 })
	})
	rows, err := slareport.Make(t.Context(), s, slareport.Options{Path: path, From: begin(), To: begin().AddDate(0, 0, 2), By: slareport.Day, Interval: scrape}, begin().AddDate(0, 1, 0))
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, want := range [][2]float64{{0.1 * 18 / 24, 0.1*18/24 + 6./24}, {0.1 * 23 / 24, 0.1 * 23 / 24}} {
		near(t, fmt.Sprintf("day %d: loss forward", i), rows[i].Ways[0].Loss, want[0])
		near(t, fmt.Sprintf("day %d: highest loss forward", i), rows[i].Ways[0].LossHighest, want[1])
	}
}
