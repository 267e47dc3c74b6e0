package gpsd

import (
	"context"
	"time"

	"oneway.example/exporter/metric"
)

// publishEvery is how often the state becomes metrics. What is old is gone at
// the latest that much later.
const publishEvery = time.Second

// series are the client's metrics.
type series struct {
	connected, fix, seen, used metric.Series
	pulse, sawtooth, sentence  metric.Series
	lastMessage, connections   metric.Series
	malformed                  []metric.Series // by malformation
}

func openSeries(sink metric.Sink, name string) *series {
	s := &series{
		connected:   sink.Series(metric.GNSSConnected, name),
		fix:         sink.Series(metric.GNSSFix, name),
		seen:        sink.Series(metric.GNSSSatellitesSeen, name),
		used:        sink.Series(metric.GNSSSatellitesUsed, name),
		pulse:       sink.Series(metric.GNSSPulseOffset, name),
		sawtooth:    sink.Series(metric.GNSSSawtooth, name),
		sentence:    sink.Series(metric.GNSSTimeOffset, name),
		lastMessage: sink.Series(metric.GNSSLastMessage, name),
		connections: sink.Series(metric.GNSSConnections, name),
	}
	for _, m := range malformations() {
		s.malformed = append(s.malformed, sink.Series(metric.GNSSMalformed, name, m.String()))
	}
	return s
}

// publish writes the state at once and then every second, until ctx ends.
func (c *Client) publish(ctx context.Context) {
	tick := time.NewTicker(publishEvery)
	defer tick.Stop()
	for {
		state := c.State()
		c.options.Sink.Update(func() { c.series.write(state) })
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// write brings a state to the gauges; what is not known has no value.
func (s *series) write(state State) {
	connected := 0.0
	if state.Connected {
		connected = 1
	}
	s.connected.Set(connected)
	set(s.fix, float64(state.Fix), state.Fix != FixUnknown)
	set(s.seen, float64(state.Seen.N), state.Seen.Known)
	set(s.used, float64(state.Used.N), state.Used.Known)
	set(s.pulse, state.Pulse.Offset.Seconds(), !state.Pulse.At.IsZero())
	set(s.sawtooth, state.Sawtooth, state.HasSawtooth)
	set(s.sentence, state.Sentence.Offset.Seconds(), !state.Sentence.At.IsZero())
	// A float64 still holds the microsecond.
	set(s.lastMessage, time.Duration(state.LastMessage).Seconds(), !state.LastMessage.IsZero())
}

func set(s metric.Series, v float64, known bool) {
	if !known {
		s.Clear()
		return
	}
	s.Set(v)
}

// close ends all series.
func (s *series) close(sink metric.Sink) {
	all := append([]metric.Series{
		s.connected, s.fix, s.seen, s.used, s.pulse, s.sawtooth, s.sentence, s.lastMessage, s.connections,
	}, s.malformed...)
	sink.Update(func() {
		for _, one := range all {
			one.Close()
		}
	})
}
