package rules

import (
	"regexp"
	"strconv"
	"strings"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/metric"
)

// Selectors of the series with the labels of the alert; see lookup.
const (
	sameClock     = "{instance,clock}"
	sameProbe     = "{instance,path,probe}"
	sameDirection = "{instance,path,probe,direction}"
)

// errorBound is the error bound of a delay that humanizeDuration prints, in seconds. It includes the rounding of a value below 10 s, and is rounded up to
// milliseconds.
func errorBound(query string) string {
	return lookup("ceil("+query+" * 1e3 + 0.5) / 1e3", " (± {{ .Value | humanizeDuration }})")
}

// lookup is the part of an annotation that exists if a query has a result: text, in which .Value and .Labels are of the result.
// In a selector of the query, {path} selects the path of the alert, as $path does within a text. Several results are in the order
// of the labels that the text has: Prometheus returns them in any order, and the text of an alert changed from one evaluation to the next.
func lookup(query, text string) string {
	var arguments []string
	format := regexp.MustCompile(`\{[^{}]*\}`).ReplaceAllStringFunc(query, func(selector string) string {
		matchers := strings.Split(strings.Trim(selector, "{}"), ",")
		for i, m := range matchers {
			name, label, inText := strings.Cut(m, "$")
			switch {
			case inText:
				label = label[:strings.IndexFunc(label, func(c rune) bool { return c < 'a' || c > 'z' })]
				matchers[i] = strings.Replace(m, "$"+label, "%s", 1)
			case !strings.ContainsAny(name, "=~"):
				label, matchers[i] = name, name+"=%q"
			default:
				continue
			}
			arguments = append(arguments, " $labels."+label)
		}
		return "{" + strings.Join(matchers, ",") + "}"
	})
	sorted := "" // the sort is stable: the first label comes last
	for _, label := range regexp.MustCompile(`\.Labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
		if by := " | sortByLabel " + strconv.Quote(label[1]); !strings.Contains(sorted, by) {
			sorted = by + sorted
		}
	}
	return "{{ range printf " + strconv.Quote(format) + strings.Join(arguments, "") + " | query" + sorted + " }}" + text + "{{ end }}"
}

// orElse adds the text where a lookup has no result.
func orElse(found, text string) string {
	return strings.TrimSuffix(found, "{{ end }}") + "{{ else }}" + text + "{{ end }}"
}

// runbookURL is the address of the runbook of an alert, by the series RunbooksURL: an agent serves it, the alert's own or else the
// first by its address, so that the link does not change from one evaluation to the next.
func runbookURL(alert string) string {
	one := `"` + RunbooksURL.Name + `{instance=%q} or on () ` + RunbooksURL.Name + `"`
	return "{{ with printf " + one + ` $labels.instance | query | sortByLabel "url" }}{{ (first .).Labels.url }}{{ else }}` +
		`http://{{ or $labels.instance "localhost:` + hostport.Agent + `" }}/runbooks{{ end }}/` + alert
}

// firing selects an alert that fires.
func firing(alert string) string { return `ALERTS{alertname="` + alert + `",alertstate="firing"}` }

// unlessLoadTest ends an expression: the alert does not begin while a load test affects the path. values has the labels of the
// alert: one that fires continues, in its own direction only.
func unlessLoadTest(alert, values string) string {
	return "\n" + promql(`
unless on (job, instance, path, probe, direction)
(
  $values
  and on (job, instance, path) $recent
  unless on (job, instance, path, probe, direction) $firing
)`, names{"values": values, "recent": LoadTestRecent.Name, "firing": firing(alert)})
}

// unlessDead ends an expression: the alert excludes a dead peer.
func unlessDead() string {
	return "\n" + promql(`
# Of a dead peer, and while its outage is among the last 5 min: OnewayProbeFailing.
unless on (job, instance, path, probe) $up == 0
unless on (job, instance, path, probe) max_over_time($failing[5m])`, names{"up": latest(metric.ProbeUp.Name), "failing": firing(ProbeFailing.Name)})
}
