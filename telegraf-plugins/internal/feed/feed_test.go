package feed

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"
	"github.com/influxdata/telegraf"
	"github.com/influxdata/telegraf/agent"
	"github.com/influxdata/telegraf/plugins/serializers/influx"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/output/point"
)

// maker is what Telegraf's accumulator needs.
type maker struct{}

func (maker) LogName() string                              { return "" }
func (maker) MakeMetric(m telegraf.Metric) telegraf.Metric { return m }
func (maker) Log() telegraf.Logger                         { return nil }
func accumulator(to chan<- telegraf.Metric) telegraf.Accumulator {
	return agent.NewAccumulator(maker{}, to)
}

func sample(i int) point.Point {
	p := point.Point{Measurement: "oneway_x", Tags: []point.Tag{{Key: "path", Value: "a b"}}, At: instant.FromTime(time.Unix(1700000000, int64(i)))}
	p.Fields = point.Float(point.Int(nil, "n", int64(i)), "v", 0.1)
	p.Fields = append(p.Fields, point.Field{Key: "ok", Value: lineprotocol.BoolValue(true)}, point.Field{Key: "run", Value: point.Text(`r"1`)})
	return p
}

// TestTelegrafWritesTheLinesOfTheEncoder compares Telegraf's serializer with the encoder of the agent's own outputs.
func TestTelegrafWritesTheLinesOfTheEncoder(t *testing.T) {
	p := sample(7)
	var e point.Encoder
	want, err := e.Append(nil, &p)
	if err != nil {
		t.Fatal(err)
	}
	s := &influx.Serializer{}
	if err := s.Init(); err != nil {
		t.Fatal(err)
	}
	got, err := s.Serialize(Metric(&p))
	if err != nil || strings.TrimSpace(string(got)) != strings.TrimSpace(string(want)) {
		t.Errorf("%v: %s, want %s", err, got, want)
	}
}

func TestPointsArriveInOrderAndAreCopied(t *testing.T) {
	metrics := make(chan telegraf.Metric, 100)
	f := Start(accumulator(metrics))
	batch := make([]point.Point, 10)
	for i := range 5 {
		for k := range batch {
			batch[k] = sample(10*i + k)
		}
		f.Add(t.Context(), batch)
		clear(batch) // the caller uses the memory again
	}
	f.Close()
	close(metrics)
	next := 0
	for m := range metrics {
		if n, _ := m.GetField("n"); n != int64(next) || m.Time().UnixNano() != 1700000000_000000000+int64(next) {
			t.Fatalf("%v at place %d", m, next)
		}
		next++
	}
	if next != 50 {
		t.Errorf("%d metrics, want 50", next)
	}
}

func TestAddWaitsForTelegrafAndGivesUpAtTheEnd(t *testing.T) {
	metrics := make(chan telegraf.Metric) // nobody reads
	f := Start(accumulator(metrics))
	ctx, end := context.WithCancel(t.Context())
	f.Add(ctx, []point.Point{sample(1)})
	waits := make(chan time.Duration)
	go func() {
		begin := time.Now()
		f.Add(ctx, []point.Point{sample(2)})
		waits <- time.Since(begin)
	}()
	select {
	case <-waits:
		t.Fatal("Add took a second batch while the first waits")
	case <-time.After(50 * time.Millisecond):
	}
	end()
	if took := <-waits; took < grace {
		t.Errorf("Add gave up after %v, want at least %v", took, grace)
	}
	if got := fmt.Sprint((<-metrics).Fields()["n"]); got != "1" {
		t.Errorf("got metric %s, want 1", got)
	}
	f.Close()
}
