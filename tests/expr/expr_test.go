package expr

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/families"
)

const root = "../.."

func TestExpressionsHaveNoVariableLeft(t *testing.T) {
	all, err := Expressions(root)
	if err != nil {
		t.Fatal(err)
	}
	var rules, panels int
	for _, e := range all {
		if unfilled.MatchString(e.Query) || e.Query == "" {
			t.Errorf("%s: %q", e.Source, e.Query)
		}
		if strings.Contains(e.Source, ".json") {
			panels++
		} else {
			rules++
		}
	}
	if rules < 80 || panels < 60 {
		t.Errorf("found %d expressions of rules and %d of panels, want more", rules, panels)
	}
}

func TestStatementsHaveNoVariableLeft(t *testing.T) {
	all, err := Statements(root)
	if err != nil {
		t.Fatal(err)
	}
	panels := 0
	values := map[string]string{"path": "a", "probe": "b", "direction": "forward", "run": "c", "report": "d"}
	for _, s := range all {
		got, err := s.Fill(values, time.UnixMilli(1), time.UnixMilli(2))
		if err != nil || strings.HasPrefix(got, "SELECT") && !strings.Contains(got, "time >= 1ms and time <= 2ms") {
			t.Errorf("%s: %s, %v", s.Source, got, err)
		}
		if s.Variable == "" {
			panels++
		}
	}
	if panels < 35 || len(all)-panels < 12 {
		t.Errorf("%d statements of panels and %d of variables, want more", panels, len(all)-panels)
	}
}

func TestFillNamesTheVariableWithoutAValue(t *testing.T) {
	_, err := variables{"path": "a"}.fill(`x{path="$path",job="$job"}`)
	if err == nil || !strings.Contains(err.Error(), `x{path="a",job="$job"}`) {
		t.Errorf("got error %v, want one that shows the query", err)
	}
}

func TestFillMatchesEveryPath(t *testing.T) {
	got, err := everything().fill(`x{job=~"$job",path="$path",probe="$probe"}[$__range] + y{probe="$saturation",direction="$direction"}`)
	if want := `x{job=~".*",path=~".*",probe=~".*"}[2h] + y{probe=~".*",direction=~".*"}`; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestFillTakesTheLongestName(t *testing.T) {
	got, err := variables{"__range": "2h", "__range_s": "7200"}.fill(`x[$__range] + ${__range_s} - $__range_s`)
	if want := `x[2h] + 7200 - 7200`; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestSelectorsFindNamesMatchersAndOffsets(t *testing.T) {
	got := Selectors(`sum by (le) (rate(oneway_delay_seconds_bucket{path="a{b}", le!="+Inf"}[5m]))
		/ oneway:x:ratio5m{reason=~'remote_.*'} - path_hour:y[7d] offset 1h`)
	want := []Selector{
		{Name: "oneway_delay_seconds_bucket", Matchers: []Matcher{{"path", "=", "a{b}"}, {"le", "!=", "+Inf"}}},
		{Name: "oneway:x:ratio5m", Matchers: []Matcher{{"reason", "=~", "remote_.*"}}},
		{Name: "path_hour:y", Offset: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("selectors (-want +got):\n%s", diff)
	}
}

func TestFamilyKeepsRecordedNamesWhole(t *testing.T) {
	for name, want := range map[string]string{
		"oneway_delay_seconds_bucket": "oneway_delay_seconds",
		"oneway_packets_sent_total":   "oneway_packets_sent_total",
		"oneway:lost_count":           "oneway:lost_count",
	} {
		if got := Family(name); got != want {
			t.Errorf("Family(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestExpressionsOfAnEmptyTreeAreAnError(t *testing.T) {
	if _, err := Expressions(t.TempDir()); err == nil {
		t.Error("no error for a tree without rules and dashboards")
	}
}

func TestSeriesOfOptionalEquipmentMayBeAbsent(t *testing.T) {
	for query, want := range map[string]string{
		`oneway_gnss_fix{receiver="gps0"} < 2`:                  noReceiver,
		`rate(oneway_pps_missed_total[1m])`:                     noPulse,
		`oneway:clock_disagreement_seconds > 0.001`:             noPulse,
		`oneway_queue_delay_seconds{quantile_rank="0.5"} > 0.2`: NoLoadTest,
		`oneway_test_running == 1`:                              NoLoadTest,
		`oneway_clock_synchronized == 1`:                        "",
		`oneway_remote_clock_synchronized`:                      "",
	} {
		if got := quiet(query); got != want {
			t.Errorf("quiet(%s) = %q, want %q", query, got, want)
		}
	}
}

func TestGroupsOfLoadTestsExist(t *testing.T) {
	titles := map[string]bool{}
	for _, g := range families.All() {
		titles[g.Title] = true
	}
	for _, title := range ofLoadTests {
		if !titles[title] {
			t.Errorf("no group of metrics has the title %q", title)
		}
	}
}
