package docs

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/rules"
)

// TestRunbooksHaveTheNumbersOfTheRules: a number that an expression has as a part of its text is compared with the words about it. After a
// change of one, change both, and this list.
func TestRunbooksHaveTheNumbersOfTheRules(t *testing.T) {
	dead := fmt.Sprintf("for %g min", (90*time.Second + rules.ProbeFailing.Alert.For).Minutes())
	for _, c := range []struct {
		rule rules.Rule
		// file is a runbook, or empty for the texts of the rule and of its thresholds.
		expr, file, text string
	}{
		{rules.ProbeFailing, "[15m]", "", "share of 15 min during"},
		{rules.ProbeFailing, "[15m]", "", "of the last 15 minutes"},
		{rules.ProbeFailing, "max_over_time(oneway_probe_up[90s])", "", "has not replied at all " + dead},
		{rules.ProbeFailing, "max_over_time(oneway_probe_up[90s])", "", fmt.Sprintf("and %g s more", rules.ProbeFailing.Alert.For.Seconds())},
		{joined(rules.DelayExcessCause), "> 0.05", "", "less than 5 % of the packets"},
		{joined(rules.DelayExcessCause), "> 0.01 * increase(", "", "fewer drops than 1 %"},
		{rules.OutputDropping, "[15m]", "", "may lose in 15 min."},
		{rules.OutputDropping, "[15m]", "", "in 15 minutes:"},
		{rules.LossHigh, rules.LossRatio1h.Name, "", "in the last 5 min and in the last hour"},
		{rules.LossHigh, rules.LossRatio5m.Name, "", "in the last 5 min and in the last hour"},
		{rules.DelayFloorStep, "[15m:1m]) >= 5", "OnewayDelayFloorStep.md", "5 of the last 15 minutes"},
		{rules.DelayFloorStep, "[1h:1m] offset 15m) >= 15", "OnewayDelayFloorStep.md", "15 of the hour before them"},
		{rules.ProbeFailing, "[3m]) == 1", "OnewayProbeFailing.md", "3 minutes without a gap"},
		{rules.ProbeFailing, "[3m]) == 1", "", "3 min without a gap"},
		{rules.ProbeFailing, "max_over_time(oneway_probe_up[90s])", "", "no reply for 90 s"},
		{rules.RoundTripLoss, ">= 0.5 * increase(", "OnewayRoundTripLoss.md", "when a host drops half of these packets"},
		{rules.DelayBlowUp, "> 0.5 * (", "OnewayDelayBlowUp.md", "more than half as many delays invalid as are valid"},
		{rules.DelayBlowUp, "> 0.5 * (", "", "where it made a third of the delays invalid, which is half as many as are valid"},
		{rules.DelayFloorExcess30s, "[30s]", "OnewayDelayBlowUp.md", "the smallest delay of the last 30 seconds"},
		{rules.RunsFailing, "> 1.5", "OnewayRunsFailing.md", "at least two, were"},
		{rules.UDPThroughputMedian, "[2h:1m]", "OnewayThroughputDegraded.md", "The median throughput of 2 hours is"},
		{rules.UDPThroughputMedian, "[2h:1m]", "OnewayThroughputDegraded.md", "The median of 2 hours is"},
		{rules.TCPThroughputMedian, "[2h:1m]", "OnewayTCPThroughputDegraded.md", "The median throughput of TCP in 2 hours is"},
		{rules.TCPThroughputMedian, "[2h:1m]", "OnewayTCPThroughputDegraded.md", "The median of 2 hours of the probe"},
		{rules.CapacityMedian2h, "[2h:1m]", "OnewayCapacityDegraded.md", "in the median of 2 hours:"},
		{rules.SplitTCPChanged, "[1d]", "OnewaySplitTCPChanged.md", "ends a day after the change"},
	} {
		doc := c.rule.Doc
		if c.rule.Alert != nil {
			doc += " " + c.rule.Alert.Description
		}
		for _, file := range rules.Files() {
			for _, group := range file.Groups {
				for _, one := range group.Rules {
					if strings.HasPrefix(one.Name, "oneway:threshold:") && strings.Contains(one.Doc, c.rule.Name) {
						doc += " " + one.Doc
					}
				}
			}
		}
		if c.file != "" {
			doc = read(t, filepath.Join(root, runbooks, c.file))
		}
		if !strings.Contains(c.rule.Expr, c.expr) {
			t.Errorf("the expression of %s has no %q, of which %s has %q\n%s", c.rule.Name, c.expr, c.file, c.text, c.rule.Expr)
		}
		if !strings.Contains(strings.Join(strings.Fields(doc), " "), c.text) {
			t.Errorf("the text of %s, %s, has no %q", c.rule.Name, c.file, c.text)
		}
	}
}

// joined is a rule with the texts and expressions of all rules of a series.
func joined(s rules.Series) (all rules.Rule) {
	all.Name = s.Name
	for _, one := range s.Rules {
		all.Doc, all.Expr = all.Doc+" "+one.Doc, all.Expr+"\n"+one.Expr
	}
	return all
}
