package main

import (
	"context"
	"fmt"
	"strings"
)

// agentStatus is the used part of /api/v1/status.
type agentStatus struct {
	LoadServer struct {
		Pin   string `json:"pin"`
		Error string `json:"error"`
	} `json:"load_server"`
	Reflector struct {
		Listening bool   `json:"listening"`
		Error     string `json:"error"`
	} `json:"reflector"`
	Paths []struct {
		Probes []struct {
			Name   string `json:"name"`
			Health string `json:"health"`
			Error  string `json:"error"`
		} `json:"probes"`
	} `json:"paths"`
}

func (s *stack) status(ctx context.Context, name string) (out agentStatus, err error) {
	return out, getJSON(ctx, s.agents[name]+"/api/v1/status", &out)
}

// probeSays is the reason that the client's agent reports for a probe.
func (s *stack) probeSays(ctx context.Context, probe string) string {
	status, err := s.status(ctx, "client")
	if err != nil {
		return "no status of the client's agent: " + err.Error()
	}
	for _, path := range status.Paths {
		for _, p := range path.Probes {
			switch {
			case p.Name != probe:
			case p.Error != "":
				return p.Error
			default:
				return p.Health
			}
		}
	}
	return "the client's agent has no probe " + probe
}

// lightReason is why a value of the light probe is absent: the probe's status in the agent, and the agent's counters of
// excluded packets.
func (s *stack) lightReason(ctx context.Context, direction string) string {
	words := []string{s.probeSays(ctx, "stamp")}
	counted, err := s.query(ctx, fmt.Sprintf(`{__name__=~"oneway_delay_invalid_total|oneway_round_trips_lost_direction_unknown_total|oneway_packets_discarded_total|oneway_probe_schedule_skipped_total",%s,direction=~"|%s"} > 0`, selector, direction))
	if err != nil {
		return strings.Join(append(words, err.Error()), "; ")
	}
	for _, c := range counted {
		words = append(words, fmt.Sprintf("%s{reason=%q} %v", c.Metric["__name__"], c.Metric["reason"], c.Value[1]))
	}
	return strings.Join(words, "; ")
}
