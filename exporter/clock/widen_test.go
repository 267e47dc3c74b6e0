package clock_test

import (
	"context"
	"math"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

type fixed clock.Quality

func (f fixed) Quality(instant.Time) clock.Quality { return clock.Quality(f) }
func (fixed) Run(context.Context) error            { return nil }

func TestWidenedClockHasALargerBoundAndTheSameTrust(t *testing.T) {
	for name, c := range map[string]struct {
		of   sample.Bound
		by   time.Duration
		want sample.Bound
	}{
		"synchronized":     {sample.Bound{Error: 30, Reason: sample.OK}, 50, sample.Bound{Error: 80, Reason: sample.OK}},
		"by zero":          {sample.Bound{Error: 30, Reason: sample.OK}, 0, sample.Bound{Error: 30, Reason: sample.OK}},
		"not synchronized": {sample.Bound{Error: 30, Reason: sample.LocalUnsynchronized}, 50, sample.Bound{Error: 30, Reason: sample.LocalUnsynchronized}},
		"overflow":         {sample.Bound{Error: 30, Reason: sample.OK}, math.MaxInt64, sample.Bound{Reason: sample.BoundTooLarge}},
	} {
		if got := clock.Widen(fixed{Bound: c.of}, c.by).Quality(0).Bound; got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
