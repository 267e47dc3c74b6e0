package main

import (
	"strings"
	"sync"

	"oneway.example/exporter/metric"
)

// sink keeps the values of the families that the scenarios speak of.
type sink struct {
	gate   sync.RWMutex // an Update is told whole or not at all
	mu     sync.Mutex
	values map[string]*series
	told   map[string]float64 // by changes
}

func newSink() *sink { return &sink{values: map[string]*series{}, told: map[string]float64{}} }

// wanted are the beginnings of those families' names.
func wanted(name string) bool {
	for _, w := range []string{
		"oneway_clock_", "oneway_gnss_", "oneway_pps_", "oneway_far_clock_", "oneway_delay_invalid", "oneway_delay_negative", "oneway_delay_low_confidence",
		"oneway_delay_error_bound", "oneway_packets_", "oneway_probe_up", "oneway_probe_interval", "oneway_path_info",
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
	key := d.Name + "{" + strings.Join(values, ",") + "}"
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.values[key]
	if v == nil {
		v = &series{sink: s, key: key, present: d.Kind == metric.Counter}
		s.values[key] = v
	}
	v.openers++
	return v
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
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := map[string]*float64{}
	for key := range s.told {
		if v := s.values[key]; v == nil || !v.present {
			changed[key] = nil
			delete(s.told, key)
		}
	}
	for key, v := range s.values {
		if told, ok := s.told[key]; v.present && (!ok || told != v.value) {
			value := v.value
			changed[key], s.told[key] = &value, value
		}
	}
	return changed
}

type series struct {
	sink    *sink
	key     string
	value   float64
	present bool
	openers int
}

func (v *series) Add(delta float64) { v.change(func() { v.value += delta }) }
func (v *series) Set(value float64) { v.change(func() { v.value, v.present = value, true }) }
func (v *series) Clear()            { v.change(func() { v.present = false }) }
func (v *series) Observe(float64)   {}

// ObserveWithExemplar does no more than Observe.
func (v *series) ObserveWithExemplar(float64, string, string) {}

// Close ends the series with its last opener.
func (v *series) Close() {
	v.change(func() {
		if v.openers--; v.openers <= 0 && v.sink.values[v.key] == v {
			delete(v.sink.values, v.key)
		}
	})
}

func (v *series) change(f func()) {
	v.sink.mu.Lock()
	defer v.sink.mu.Unlock()
	f()
}
