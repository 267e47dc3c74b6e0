package rules

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"oneway.example/exporter/core/metric"
)

// names are the series of an expression, by the word that stands for each.
type names map[string]string

// promql is an expression in which $word or ${word} stands for the series of that word in series. It panics if a word has no
// series or a series is not used: a wrong rule fails every test of the package.
func promql(text string, series names) string {
	used := map[string]bool{}
	expr := os.Expand(strings.TrimSpace(text), func(word string) string {
		if strings.Trim(word, "0123456789") == "" {
			return "$" + word // a group of a regular expression
		}
		name, found := series[word]
		if !found {
			panic(fmt.Sprintf("rules: $%s of %q: want one of %v", word, text, slices.Sorted(maps.Keys(series))))
		}
		used[word] = true
		return name
	})
	if len(used) != len(series) {
		panic(fmt.Sprintf("rules: %q uses %d of %v: want all of them", text, len(used), slices.Sorted(maps.Keys(series))))
	}
	return expr
}

// recorded is the name of what an operation makes of a metric.
func recorded(d *metric.Desc, operation string) string {
	return "oneway:" + baseName(d) + ":" + operation
}

// byHour is the name of a recorded series with the labels of Calendar.
func byHour(d *metric.Desc, operation string) string {
	return "path_hour:oneway_" + baseName(d) + ":" + operation
}

func baseName(d *metric.Desc) string {
	return strings.TrimSuffix(strings.TrimPrefix(d.Name, "oneway_"), "_total")
}

// latest is the last value of a gauge within 5 minutes, which is as far as Prometheus looks back where no scrape failed. A failed scrape
// ends every series of its target: where scrapes and evaluations have a common period, each evaluation may meet a failed one, and
// an expression that reads the series itself has no value then.
func latest(series string) string { return "last_over_time(" + series + "[5m])" }

// latestBefore is latest at a time before.
func latestBefore(series, offset string) string {
	return "last_over_time(" + series + "[5m] offset " + offset + ")"
}

// unlessUnscraped is a series that ends with what it is of: only a failed scrape is looked back over, in parentheses.
func unlessUnscraped(series string) string {
	return "(" + series + " or " + latest(series) + " and on (job, instance) up == 0)"
}

// atScrape is a calculation with series at the last scrape that did not fail, where the time between both matters.
func atScrape(calculation string) string { return "last_over_time((" + calculation + ")[5m:10s])" }

// ageAtScrape is the age of a timestamp as its last scrape saw it, so that no failed or slow scrape adds to it; it ends with the series.
func ageAtScrape(timestamp string) string {
	age := "timestamp(" + timestamp + ") - " + timestamp
	return "(" + age + " or " + atScrape(age) + " and on (job, instance) up == 0)"
}
