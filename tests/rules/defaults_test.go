package rules

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/serve/runbook"
)

// TestRunbooksHaveTheDefaultsOfTheThresholds: a default that changes changes the text.
func TestRunbooksHaveTheDefaultsOfTheThresholds(t *testing.T) {
	millis := func(t rules.Threshold) string { return fmt.Sprintf("%g ms", t.Default*1000) }
	minutes := func(t rules.Threshold) string { return fmt.Sprintf("%g minutes", t.Default/60) }
	percent := func(t rules.Threshold) string { return fmt.Sprintf("%g %%", t.Default*100) }
	inWords := func(threshold rules.Threshold) string {
		words, ok := map[float64]string{0.001: "a millisecond", 0.1: "a tenth", 0.5: "half", 2: "two", 3: "three", 24: "a day", 900: "a quarter of an hour"}[threshold.Default]
		if !ok {
			t.Fatalf("there are no words for %g, the default of %s", threshold.Default, threshold.Name)
		}
		return words + " "
	}
	recent, ok := map[float64]string{1.5: "one and a half intervals"}[rules.RecentIntervals]
	if !ok {
		t.Fatalf("there are no words for %g intervals", rules.RecentIntervals)
	}
	for alert, wants := range map[string][]string{
		"OnewayBufferbloat":           {millis(rules.ThresholdBufferbloatSeconds), recent},
		"OnewayCapacityDegraded":      {percent(rules.ThresholdThroughputRatio), recent},
		"OnewayClockErrorTooLarge":    {inWords(rules.ThresholdClockErrorRatio), strings.TrimSpace(inWords(rules.ThresholdClockErrorSeconds))},
		"OnewayDelayBlowUp":           {inWords(rules.ThresholdDelayBlowUpRatio) + "times", millis(rules.ThresholdDelayBlowUpSeconds), millis(rules.ThresholdDelaySeconds)},
		"OnewayLinkNotFilled":         {recent},
		"OnewayLossHigh":              {percent(rules.ThresholdLossRatio), inWords(rules.ThresholdLossPackets)},
		"OnewayOutputBehind":          {minutes(rules.ThresholdOutputBehindSeconds), inWords(rules.ThresholdOutputSpoolRatio)},
		"OnewayPPSLost":               {fmt.Sprintf("%g s", rules.ThresholdPPSLostSeconds.Default)},
		"OnewayProbeFailing":          {inWords(rules.ThresholdProbeUpRatio)},
		"OnewayProbeSelfLimited":      {percent(rules.ThresholdSelfLimitedRatio), fmt.Sprintf("%g ms", rules.LateSeconds*1000)},
		"OnewayRFactorLow":            {fmt.Sprintf("%g", rules.ThresholdRFactor.Default)},
		"OnewayRunResultStale":        {inWords(rules.ThresholdRunStaleIntervals) + "intervals", strings.TrimSpace(inWords(rules.ThresholdRunStaleSeconds))},
		"OnewayRunsFailing":           {inWords(rules.ThresholdRunsFailedRatio)},
		"OnewaySenderTooSlow":         {percent(rules.ThresholdSenderUnderrunRatio)},
		"OnewayTCPBufferLimited":      {inWords(rules.ThresholdTCPBufferLimitedRatio), fmt.Sprintf("below %g %% of the capacity", rules.UsedCapacityRatio*100), recent},
		"OnewayTCPRetransmissions":    {percent(rules.ThresholdTCPRetransmittedRatio), recent},
		"OnewayTCPThroughputDegraded": {percent(rules.ThresholdThroughputRatio), inWords(rules.ThresholdBaselineHours) + "of history"},
		"OnewayThroughputDegraded":    {percent(rules.ThresholdThroughputRatio), inWords(rules.ThresholdBaselineHours) + "of history", recent},
		"OnewayWorkingDelayHigh":      {millis(rules.ThresholdWorkingDelaySeconds), fmt.Sprintf("in %d completed runs", rules.WorkingDelayRuns), recent},
	} {
		text := strings.ReplaceAll(runbook.Text(alert), "\n", " ")
		for _, want := range wants {
			if strings.TrimSpace(want) == "" || !strings.Contains(strings.ToLower(text), want) {
				t.Errorf("the runbook of %s has no %q, the default of its threshold", alert, want)
			}
		}
	}
}

// TestRunbooksHaveTheTimesOfTheirAlerts: "for 10 minutes" is the time for which the condition holds before the alert fires.
func TestRunbooksHaveTheTimesOfTheirAlerts(t *testing.T) {
	others := map[string]time.Duration{
		rules.AlertsSilenced.Name:   metric.TestedRecent,
		rules.RFactorLow.Name:       rules.BadCallsFor,
		rules.TCPBufferLimited.Name: rules.HeldFor, rules.TCPRetransmissions.Name: rules.HeldFor, rules.LinkNotFilled.Name: rules.HeldFor, rules.SenderTooSlow.Name: rules.HeldFor,
		rules.OutputBehind.Name: time.Duration(rules.ThresholdOutputBehindSeconds.Default) * time.Second,
		rules.ProbeFailing.Name: rules.ProbeFailing.Alert.For + 90*time.Second, // the range of the expression
	}
	text := regexp.MustCompile(`(?i)\bfor (an hour|a minute|(\d+) minutes)\b`)
	found := 0
	var all []rules.Rule
	for _, f := range rules.Files() {
		for _, g := range f.Groups {
			all = append(all, g.Rules...)
		}
	}
	for _, r := range all {
		for _, m := range text.FindAllStringSubmatch(strings.ReplaceAll(runbook.Text(r.Name), "\n", " "), -1) {
			found++
			d := map[string]time.Duration{"an hour": time.Hour, "a minute": time.Minute}[m[1]]
			if n, err := strconv.Atoi(m[2]); err == nil {
				d = time.Duration(n) * time.Minute
			}
			if d != r.Alert.For && d != others[r.Name] {
				t.Errorf("the runbook of %s has %q; the alert has %v", r.Name, m[0], r.Alert.For)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d times found", found)
	}
}
