package rules

import (
	"fmt"
	"strings"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/pathstate"
)

// sitePairPathsBadSince is a constant because its rule uses it itself.
const sitePairPathsBadSince = "oneway:site_pair_paths:bad_since"

// pair is the label of paths with the sites of both ends, the same for both directions.
const pair = metric.SitePairL

// One fault of many paths between two sites, by the label site_pair of the paths: over all agents, of both directions.
var (
	SitePairPaths = Rule{
		Name: "oneway:site_pair_paths:count",
		Doc: `The paths between two sites (label site_pair of the paths), of both directions and all agents, and how many of them are degraded or down
without planned work: absent if none is.`,
		Expr: "count by (" + pair + ") (" + withLabel(pair, "max by (job, instance, path) ("+PathStateNow.Name+")") + ")",
	}
	SitePairPathsBad = Rule{
		Name: "oneway:site_pair_paths:bad",
		Expr: "count by (" + pair + ") (" + withLabel(pair, bad()) + ")",
	}
	SitePairPathsBadSince = Rule{
		Name: sitePairPathsBadSince,
		Doc:  `Since when, in Unix time, some path between the sites is degraded or down.`,
		Expr: promql(`
last_over_time($since[2m]) and on ($pair) $bad
or on ($pair)
0 * $bad + time()`, names{"since": sitePairPathsBadSince, "bad": SitePairPathsBad.Name, "pair": pair}),
	}
	SitePairDegradedPaths = Rule{
		Name: "oneway:site_pair_degraded:paths",
		Doc: `The paths between two sites that are degraded, whose alert is OnewaySitePairDegraded, and between a site that is degraded as a whole and
any other one, in both directions: OnewaySiteDegraded is their alert.`,
		Expr: promql(`
group by (job, instance, path) (
  $labels
  and on ($pair) (
    $degraded
    or
    $ofSite
  )
)`, names{"labels": pathsWith(pair), "pair": pair, "degraded": strings.ReplaceAll(pairDegraded(), "\n", "\n    "), "ofSite": pairsOfDegradedSites()}),
	}
	SitePairDegraded = Rule{
		Name: "OnewaySitePairDegraded",
		Doc: `One fault of many paths between two sites, such as of the line between them, in place of the alerts of delay, loss, voice and reachability of
each of these paths. Quiet where one of the sites is degraded as a whole: OnewaySiteDegraded.`,
		Expr: pairDegraded() + "\nunless on (" + pair + ") " + pairsOfDegradedSites(),
		Alert: &Alert{
			Severity: Critical, Component: Path, For: time.Minute, Always: true,
			Summary: `{{ $value | printf "%.0f" }}` + lookup(SitePairPaths.Name+"{site_pair}", ` of {{ .Value | printf "%.0f" }}`) + " paths between the sites {{ $labels.site_pair }} are down or degraded" +
				lookup(sitePairPathsBadSince+"{site_pair}", " since {{ .Value | humanizeTimestamp }}"),
			Description: "Paths of " + lookup("count(count by (job, instance) ("+PathStateNow.Name+fmt.Sprintf(" >= %d and on (job, instance, path) ", pathstate.Degraded)+metric.PathLabels.Name+"{site_pair}))", `{{ .Value | printf "%.0f" }}`) + ` agents are concerned, and other paths to both sites are not. The dashboard Overview lists the paths with the reason of each.`,
		},
	}
)

// pairDegraded are the pairs of sites with so many paths that are degraded or down; the value is their number.
func pairDegraded() string {
	return promql(`
$bad >= on () group_left () max($paths)
and on ($pair) $bad / $count >= on () group_left () max($ratio)`, names{
		"bad": SitePairPathsBad.Name, "count": SitePairPaths.Name, "paths": ThresholdSitePairPaths.Name, "ratio": ThresholdSiteRatio.Name, "pair": pair,
	})
}

// pairsOfDegradedSites are the pairs with a site that is degraded as a whole: a path between the two sites is to it.
func pairsOfDegradedSites() string {
	return "group by (" + pair + ") (" + pathsWith(pair) + " and on (job, instance, path) " + SiteDegradedPaths.Name + ")"
}
