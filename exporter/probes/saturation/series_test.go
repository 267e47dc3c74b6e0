package saturation

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/estimate/queue"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/probe/report"
)

// published is the text of a run with all values known, of both directions.
func published(t *testing.T, profile metric.Profile, o Options) string {
	t.Helper()
	value, bytes, three := report.Seconds(time.Second), 1e5, [3]report.Seconds{1, 2, 3}
	r := &Result{Mode: ModeFixed}
	for _, direction := range []string{"forward", "reverse"} {
		l := &Load{
			State: queue.Filled.String(), Idle: &value, IdleBound: &value, Full: &value, FullBound: &value,
			Queue: &three, QueueBound: &three, SizeBytes: &bytes, SizeBound: &bytes, AtLeastBytes: &bytes,
			Rates: &[3]float64{1, 2, 3}, delays: []float64{0.01, 0.1, 1},
		}
		for i := range queue.MaxBins {
			at := report.Seconds(i+1) * report.Seconds(time.Second)
			l.PerSecond = append(l.PerSecond, Bin{Elapsed: at, Received: float64(i)})
			l.First = append(l.First, Bin{Elapsed: at / 20, Delays: &three})
		}
		r.Directions = append(r.Directions, &Direction{Direction: direction, Load: l})
	}
	sink := promsink.New(promsink.Options{})
	loadtest.NewValues(profile.Scope(sink, "p", "saturation")).Replace("run", func(v *loadtest.Values) {
		(&Kind{opts: o}).Publish(v, &loadtest.Run{Body: r})
	})
	var text strings.Builder
	if err := sink.Expose(&text, expfmt.NewFormat(expfmt.TypeTextPlain)); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestRunKeepsToItsNumberOfSeries leaves space for the series of loadtest.Prober, at most 18 and 5.
func TestRunKeepsToItsNumberOfSeries(t *testing.T) {
	for profile, most := range map[metric.Profile]int{metric.Full: metric.MaxFull - 20, metric.Slim: metric.MaxSlim - 7} {
		text := published(t, profile, DefaultOptions())
		if n := strings.Count(text, "\n") - strings.Count(text, "\n#") - 1; n > most || n < most/2 {
			t.Errorf("%s: %d series, want at most %d:\n%s", profile, n, most, text)
		}
	}
}

func TestElapsedSeriesFollowTheOptions(t *testing.T) {
	for _, c := range []struct {
		bins int
		wide bool
		want int // of both directions
	}{{15, false, 60}, {0, false, 0}, {60, true, 480}, {7, false, 28}} {
		o := DefaultOptions()
		o.ElapsedBins, o.ElapsedRange = c.bins, c.wide
		if n := strings.Count(published(t, metric.Full, o), `elapsed_seconds="`); n != c.want {
			t.Errorf("%d bins, range %t: %d series, want %d", c.bins, c.wide, n, c.want)
		}
	}
}

func TestThroughputOfSeveralSecondsIsTheirMean(t *testing.T) {
	if text := published(t, metric.Full, DefaultOptions()); !strings.Contains(text, `oneway_udp_throughput_elapsed_bytes_per_second{direction="forward",elapsed_seconds="4",path="p",probe="saturation"} 1.5`) {
		t.Errorf("the first four seconds have 0, 1, 2 and 3:\n%s", text)
	}
}

// The median second of a link that becomes slower is not what arrived: beside what was offered and lost the table has the mean.
func TestReceivedIsTheMeanAsOfferedIs(t *testing.T) {
	l := &Load{Offered: 1_250_000, mean: 437_500, Throughput: 612_500, Loss: 0.65, To: report.Seconds(8e9)}
	words := map[string]string{}
	for _, row := range (&Result{Directions: []*Direction{{Direction: "forward", Load: l}}}).Tables()[0].Rows {
		words[row[0]] = row[1]
	}
	for name, want := range map[string]string{"offered": "10 Mb/s", "received": "3.5 Mb/s", "received, median second": "4.9 Mb/s"} {
		if words[name] != want {
			t.Errorf("%s: %q, want %q", name, words[name], want)
		}
	}
	if got, want := (&Direction{Load: l}).summary()[0].Text(), "4.9 Mb/s, offered 10 Mb/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
