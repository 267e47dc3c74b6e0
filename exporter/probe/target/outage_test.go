package target

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
)

func TestOutageIsLoggedOnceAndItsEndHasItsLength(t *testing.T) {
	var said strings.Builder
	o := option.Defaults[Options]()
	one, err := New(&probe.Target{Path: "p", Probe: "stamp", Peer: "192.0.2.1"}, 862, &o, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Hour
	// turn reports a state each second, and returns what is logged meanwhile, without its time.
	turn := func(up bool, seconds int) string {
		said.Reset()
		for range seconds {
			now += time.Second
			one.LogReplies(up, now, 6*time.Second, func() string { return "cut" })
		}
		var lines []string
		for line := range strings.Lines(said.String()) {
			_, line, _ = strings.Cut(line, " ")
			lines = append(lines, strings.TrimSpace(line))
		}
		return strings.Join(lines, "\n")
	}
	const (
		down  = `level=WARN msg="The path has no replies" path=p probe=stamp peer=192.0.2.1 reason=cut`
		again = `level=INFO msg="The path has replies again" path=p probe=stamp peer=192.0.2.1 down_seconds=`
	)
	for _, c := range []struct {
		what    string
		up      bool
		seconds int
		want    string
	}{
		{"up from the start", true, 10, ""},
		{"down", false, 100, down},
		{"up again", true, 10, again + "106"},
		{"down soon after", false, 10, ""},
		{"and up", true, 10, ""},
		{"down again, longer than the quiet time", false, 200, down + " outages_not_logged=1"},
		{"up at last", true, 1, again + "206"},
	} {
		if got := turn(c.up, c.seconds); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.what, got, c.want)
		}
	}
}
