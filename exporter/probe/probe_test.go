package probe_test

import (
	"testing"
	"time"

	"oneway.example/exporter/probe"
)

func TestFiguresHaveASuitableUnit(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1500 * time.Millisecond: "1.5 s", 30100 * time.Microsecond: "30.1 ms", -13 * time.Microsecond: "-13 µs", 0: "0 µs",
	} {
		if got := probe.FormatDuration(d); got != want {
			t.Errorf("%d ns is %q, want %q", d, got, want)
		}
	}
}
