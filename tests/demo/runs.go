package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probes/tcpsweep"
)

// seconds is a duration in JSON.
type seconds float64

func (s seconds) duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// run is the used part of a run's report, /runs/ID of the client's agent.
type run struct {
	Begin   time.Time `json:"begin"`
	End     time.Time `json:"end"`
	Result  string    `json:"result"`
	Reason  string    `json:"reason"`
	Error   string    `json:"error"`
	Results struct {
		Directions []struct {
			Direction string `json:"direction"`
			// Load is that of probe saturation.
			Load *struct {
				State    string  `json:"state"`
				Evidence string  `json:"evidence"`
				From     seconds `json:"from_seconds"`
				To       seconds `json:"to_seconds"`
				Rate     float64 `json:"throughput_bytes_per_second"`
				Clocks   string  `json:"clocks_reason"`
			} `json:"load"`
			// Sizes are those of probe train.
			Sizes []struct {
				PayloadBytes int            `json:"payload_bytes"`
				Trains       map[string]int `json:"trains"`
				Refusal      string         `json:"no_capacity_reason"`
			} `json:"sizes"`
		} `json:"directions"`
		// Seed and Cells are those of probe tcp_sweep.
		Seed  uint64                  `json:"seed"`
		Cells []tcpsweep.MeasuredCell `json:"cells"`
	} `json:"results"`
	Transfers []struct {
		Direction string `json:"direction"`
		Plan      struct {
			Segments []struct {
				PayloadBytes int `json:"payload_bytes"`
				Burst        int `json:"burst"`
				Bursts       int `json:"bursts"`
			} `json:"segments"`
		} `json:"plan"`
		Begin instant.Time `json:"begin_ns"`
	} `json:"transfers"`
}

// lastRun is the newest report of a probe that started after a time; nil: there is none.
func (s *stack) lastRun(ctx context.Context, probe string, after time.Time) *run {
	var all struct {
		Runs []struct {
			Probe  string     `json:"probe"`
			Begin  *time.Time `json:"begin"`
			Report string     `json:"report"`
		} `json:"runs"`
	}
	if err := getJSON(ctx, s.agents["client"]+"/runs", &all); err != nil {
		s.failed(err)
		return nil
	}
	for _, one := range all.Runs { // newest first
		if one.Probe != probe || one.Report == "" || one.Begin == nil || one.Begin.Before(after) {
			continue
		}
		var report struct {
			Body *run `json:"body"`
		}
		err := getJSON(ctx, s.agents["client"]+"/"+one.Report, &report)
		if err == nil && (report.Body == nil || report.Body.Result == "") {
			err = fmt.Errorf("%s is not a report of a run: it has no result", one.Report)
		}
		s.failed(err)
		return report.Body
	}
	return nil
}

// sent reports whether a packet was sent during the run.
func (r *run) sent(at instant.Time) bool {
	return !at.Time().Before(r.Begin) && !at.Time().After(r.End)
}

// why is the reason for a missing value of a direction; empty: the report has none.
func (r *run) why(d sample.Direction) string {
	if r.Result != "completed" {
		return fmt.Sprintf("the run was %s (%s): %s", r.Result, r.Reason, r.Error)
	}
	for _, one := range r.Results.Directions {
		switch {
		case one.Direction != d.String():
		case one.Load != nil:
			words := one.Load.State + ": " + one.Load.Evidence
			if one.Load.Clocks != "ok" {
				words += "; clocks: " + one.Load.Clocks
			}
			return words
		default:
			var words []string
			for _, z := range one.Sizes {
				if z.Refusal != "" {
					words = append(words, fmt.Sprintf("trains of %d B: %s", z.PayloadBytes, z.Refusal))
				}
			}
			return strings.Join(words, "; ")
		}
	}
	return ""
}
