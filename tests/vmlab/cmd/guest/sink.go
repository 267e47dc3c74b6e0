package main

import (
	"strings"
	"sync"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
)

// sink keeps the values of the families that the scenarios speak of.
type sink struct {
	metrictest.Sink
	gate sync.RWMutex       // an Update is told whole or not at all
	told map[string]float64 // by changes
}

func newSink() *sink { return &sink{told: map[string]float64{}} }

// wanted are the beginnings of those families' names.
func wanted(name string) bool {
	for _, w := range []string{
		"oneway_clock_", "oneway_gnss_", "oneway_pps_", "oneway_remote_clock_", "oneway_delay_invalid", "oneway_delay_negative", "oneway_delay_low_confidence",
		"oneway_delay_error_bound", "oneway_packets_", "oneway_probe_up", "oneway_probe_interval", "oneway_path_info", "oneway_utc_offset_seconds",
	} {
		if strings.HasPrefix(name, w) {
			return true
		}
	}
	return false
}

// Series opens one.
func (s *sink) Series(d *metric.Desc, values ...string) metric.Series {
	if !wanted(d.Name) || d.Kind == metric.Histogram {
		return metric.Discard{}.Series(d, values...)
	}
	return s.Sink.Series(d, values...)
}

// Update runs f.
func (s *sink) Update(f func()) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	f()
}

// changes are the values that differ from those of the last call; nil: gone.
func (s *sink) changes() map[string]*float64 {
	s.gate.Lock()
	defer s.gate.Unlock()
	now, changed := s.Present(""), map[string]*float64{}
	for key := range s.told {
		if _, ok := now[key]; !ok {
			changed[key] = nil
		}
	}
	for key, v := range now {
		if told, ok := s.told[key]; !ok || told != v {
			changed[key] = &v
		}
	}
	s.told = now
	return changed
}
