package rules

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"oneway.example/exporter/core/rules"
)

// exportedNow is an exported series in an expression that is not the series of a range.
var exportedNow = regexp.MustCompile(`(?:^|[^:\w])((?:oneway_\w+|process_start_time_seconds)(?:\{[^}]*\})?)(\[|\)? or last_over_time\()?`)

// A failed scrape ends the series of its target until the next one. So a rule reads the last value of some minutes, and the series
// itself only where it looks back as well.
func TestRulesLookBackOverFailedScrapes(t *testing.T) {
	present := map[string]string{
		"OnewayPPSLost":         "ages and numbers are those at a scrape, and look back",
		"OnewayResultStale":     "the age is that at a scrape, and looks back",
		"oneway:path_host:info": "its other operands look back",
	}
	for _, r := range []rules.Rule{rules.OffsetOf, rules.HolidayOf, rules.OffsetOf2h, rules.HolidayOf2h} {
		present[r.Name] = "its last operand looks back"
	}
	all, _ := load(t)
	for _, r := range all {
		name := r.Record + r.Alert
		for _, found := range exportedNow.FindAllStringSubmatch(r.Expr, -1) {
			if found[2] != "" {
				continue
			}
			if present[name] == "" {
				t.Errorf("%s: %s has no value after a failed scrape", name, found[1])
			}
		}
	}
}

// Every third scrape fails, and each evaluation meets such a scrape: the target's series have ended then. No alert here is silent for that.
func TestAlertsAreRaisedWhileEachThirdScrapeFails(t *testing.T) {
	promtool := need(t, "promtool", "prometheus")
	const minutes = 30
	third := func(value func(second int) float64) string {
		var all strings.Builder
		for second := 0; second <= minutes*60; second += 10 {
			if second%30 == 0 {
				all.WriteString("stale ")
				continue
			}
			fmt.Fprintf(&all, "%g ", value(second))
		}
		return all.String()
	}
	constant := func(v float64) string { return third(func(int) float64 { return v }) }
	counter := func(perSecond float64) string { return third(func(s int) float64 { return perSecond * float64(s) }) }
	const (
		loaded  = `path="lossy",probe="load",direction="forward"`
		toLossy = `path="lossy",probe="stamp",direction="forward"`
		codec   = `,codec="g711",buffer="fixed",model="g107"`
		median  = `,quantile_rank="0.5"`
	)
	const agent = `job="oneway",instance="a:9862"`
	series := []attributes{}
	add := func(name, labels, values string) {
		series = append(series, attributes{"series": name + "{" + agent + labels + "}", "values": values})
	}
	series = append(series, attributes{"series": "up{" + agent + "}", "values": strings.Repeat("0 1 1 ", minutes*2) + "0"})
	for _, path := range []string{"lossy", "dead"} {
		probe := `,path="` + path + `",probe="stamp"`
		add("oneway_probe_interval_seconds", probe, constant(0.1))
		add("oneway_path_info", probe+`,peer="192.0.2.1:862",reflector="oneway"`, constant(1))
		add("oneway_remote_clock_synchronized", probe, constant(0))
		if path == "dead" {
			add("oneway_probe_up", probe, constant(0))
			continue
		}
		add("oneway_probe_up", probe, constant(1))
		add("oneway_probe_last_success_timestamp_seconds", probe, constant(0))
		for _, direction := range []string{"forward", "reverse"} {
			directed := probe + `,direction="` + direction + `"`
			add("oneway_packets_sent_total", directed, counter(10))
			add("oneway_packets_lost_total", directed, counter(1))
			add("oneway_packets_received_total", directed, counter(9))
			add("oneway_delay_error_bound_seconds", directed, constant(0.05))
			add("oneway_delay_quantile_seconds", directed+`,quantile_rank="0.5"`, constant(0.02))
		}
		add("oneway_round_trips_lost_total", probe, counter(1.9))
		add("oneway_round_trips_received_total", probe, counter(8.1))
	}
	for state, value := range map[string]float64{"synchronized": 0, "unsynchronized": 1, "holdover": 1, "silent": 0, "none": 0} {
		add("oneway_clock_state", `,clock="chrony",state="`+state+`"`, constant(value))
	}
	add("oneway_clock_synchronized", `,clock="chrony"`, constant(0))

	// A receiver that is removed from the configuration is not silent: no scrape failed.
	for name, values := range map[string]string{"up": "1x180", "oneway_gnss_connected": "1x150 stale", "oneway_gnss_fix": "3x150 stale"} {
		series = append(series, attributes{"series": name + `{job="oneway",instance="b:9862",receiver="removed"}`, "values": values})
	}
	// Nor is a source of pulses, or a path, that was removed in the last seconds; and one that began again has had no time for a pulse.
	for name, values := range map[string]string{
		`up{`: "1x180",
		`oneway_pps_last_pulse_timestamp_seconds{pps="removed",`:                    "0x165 stale",
		`oneway_pps_pulses_total{pps="removed",`:                                    "5x165 stale",
		`oneway_pps_pulses_total{pps="removed, without a pulse",`:                   "0x165 stale",
		`oneway_pps_pulses_total{pps="again",`:                                      "0x150 stale _x14 0x10",
		`oneway_probe_last_success_timestamp_seconds{path="removed",probe="stamp",`: "0x165 stale",
		`oneway_probe_interval_seconds{path="removed",probe="stamp",`:               "0.1x165 stale",
		`oneway_probe_up{path="removed",probe="stamp",`:                             "1x165 stale",
	} {
		series = append(series, attributes{"series": name + `job="oneway",instance="c:9862"}`, "values": values})
	}
	for name, value := range map[string]float64{
		"oneway_config_last_reload_successful{}":                                                   0,
		"oneway_output_waiting_points{,output=\"influxdb\"}":                                       5,
		"oneway_output_last_success_timestamp_seconds{,output=\"influxdb\"}":                       0,
		"oneway_output_spool_bytes{,output=\"influxdb\"}":                                          1,
		"oneway_output_spool_limit_bytes{,output=\"influxdb\"}":                                    100,
		"oneway_data_quota_left_bytes{,link=\"wan\"}":                                              0,
		"oneway_data_quota_saved{,kind=\"links\"}":                                                 0,
		"oneway_gnss_connected{,receiver=\"blind\"}":                                               1,
		"oneway_gnss_fix{,receiver=\"blind\"}":                                                     1,
		"oneway_gnss_connected{,receiver=\"unplugged\"}":                                           0,
		"oneway_clock_offset_seconds{,clock=\"chrony\"}":                                           0,
		"oneway_clock_error_bound_seconds{,clock=\"chrony\"}":                                      1e-6,
		"oneway_pps_last_pulse_timestamp_seconds{,pps=\"ended\"}":                                  0,
		"oneway_pps_pulses_total{,pps=\"ended\"}":                                                  5,
		"oneway_pps_pulses_total{,pps=\"none\"}":                                                   0,
		"oneway_pps_fit_offset_seconds{,pps=\"pps0\"}":                                             0.1,
		"oneway_pps_fit_error_bound_seconds{,pps=\"pps0\"}":                                        1e-6,
		"oneway_voice_r_factor{," + toLossy + codec + "}":                                          40,
		"oneway_voice_error_bound_r_factor{," + toLossy + codec + "}":                              1,
		"oneway_run_interval_seconds{,path=\"lossy\",probe=\"load\"}":                              3600,
		"oneway_run_timestamp_seconds{,path=\"lossy\",probe=\"load\"}":                             0,
		"oneway_queue_delay_seconds{," + loaded + median + "}":                                     1,
		"oneway_queue_delay_error_bound_seconds{," + loaded + median + "}":                         1e-3,
		"oneway_working_delay_seconds{," + loaded + median + ",loaded=\"none\"}":                   0.01,
		"oneway_working_delay_seconds{," + loaded + median + ",loaded=\"both\"}":                   1,
		"oneway_probe_runs_total{,path=\"lossy\",probe=\"load\",result=\"completed\",reason=\"\"}": 5,
	} {
		name, labels, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		add(name, labels, constant(value))
	}

	for file, alerts := range map[string]map[string]int{
		"path.yml": {
			"OnewayProbeFailing":              1, // of the path dead
			"OnewayLossHigh":                  2, // of both directions
			"OnewayClockErrorTooLarge":        2,
			"OnewayClockUnsynchronized":       1,
			"OnewayClockHoldover":             1,
			"OnewayRemoteClockUnsynchronized": 2, // of both paths
			"OnewayConfigReloadFailed":        1,
			"OnewayOutputBehind":              1,
			"OnewayGNSSNoFix":                 1,
			"OnewayGNSSSilent":                1,
			"OnewayClockDisagreement":         1,
			"OnewayRFactorLow":                1,
			"OnewayPPSLost":                   2, // a pulse that ended, and one that never was
			"OnewayResultStale":               1,
		},
		"load_test.yml": {
			"OnewayDataQuotaExhausted": 1,
			"OnewayDataQuotaNotSaved":  1,
			"OnewayBufferbloat":        1,
			"OnewayWorkingDelayHigh":   1,
		},
	} {
		u := readUnitTests(t, file)
		var queries []attributes
		for alert, firing := range alerts {
			queries = append(queries, attributes{
				"expr":        fmt.Sprintf(`count(ALERTS{alertname=%q,alertstate="firing"})`, alert),
				"eval_time":   fmt.Sprintf("%dm", minutes-2),
				"exp_samples": []attributes{{"labels": "{}", "value": firing}},
			})
		}
		run(t, promtool, "test", "rules", writeYAML(t, t.TempDir(), "missed.yml", attributes{
			"rule_files": u.RuleFiles, "group_eval_order": u.GroupOrder, "evaluation_interval": u.Interval,
			"tests": []attributes{{"interval": "10s", "input_series": series, "promql_expr_test": queries}},
		}))
	}
}
