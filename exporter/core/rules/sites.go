package rules

import (
	"fmt"
	"strings"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/pathstate"
)

// sitePathsBadSince is a constant because its rule uses it itself.
const sitePathsBadSince = "oneway:site_paths:bad_since"

// site is the label of paths with the site of the host at their other end.
const site = metric.SiteL

// pathsWith has one series of each path with a label that is not empty. A look back over minutes would have two where the label was changed, and no
// path of any site could be joined.
func pathsWith(label string) string {
	return "topk by (job, instance, path) (1, " + unlessUnscraped(metric.PathLabels.Name+"{"+label+`!=""}`) + ")"
}

// ofSites joins paths with their sites.
func ofSites(paths string) string { return withLabel(site, paths) }

// withLabel joins paths with a label of theirs that is not empty, and with more labels.
func withLabel(label, paths string, more ...string) string {
	all := strings.Join(append([]string{label}, more...), ", ")
	return "(" + paths + ") * on (job, instance, path) group_left (" + all + ") " + pathsWith(label)
}

// bad are the paths that are degraded or down, without planned work.
func bad() string {
	return fmt.Sprintf("max by (job, instance, path) (%s) >= %d unless on (job, instance, path) %s", PathStateNow.Name, pathstate.Degraded, MaintenanceRecent.Name)
}

// One fault of many paths, by the label site of the paths: over all agents.
var (
	SitePaths = Rule{
		Name: "oneway:site_paths:count",
		Doc: `The paths to each site (label site of the paths), of all agents, and how many of them are degraded or down without planned
work: absent if none is.`,
		Expr: "count by (" + site + ") (" + ofSites("max by (job, instance, path) ("+PathStateNow.Name+")") + ")",
	}
	SitePathsBad = Rule{
		Name: "oneway:site_paths:bad",
		Expr: "count by (" + site + ") (" + ofSites(bad()) + ")",
	}
	SitePathsBadSince = Rule{
		Name: sitePathsBadSince,
		Doc:  `Since when, in Unix time, some path to the site is degraded or down.`,
		Expr: promql(`
last_over_time($since[2m]) and on (site) $bad
or on (site)
0 * $bad + time()`, names{"since": sitePathsBadSince, "bad": SitePathsBad.Name}),
	}
	SitePathsBadByPair = Rule{
		Name: "oneway:site_paths:bad_by_pair",
		Doc:  `The same by the pair of sites, empty where it is not known: a fault of the line between two sites is no fault of either site.`,
		Expr: "count by (" + site + ", " + pair + ") (" + withLabel(site, bad(), pair) + ")",
	}
	SiteDegradedPaths = Rule{
		Name: "oneway:site_degraded:paths",
		Doc:  `The paths to a site that is degraded: OnewaySiteDegraded is their alert.`,
		Expr: promql(`
group by (job, instance, path) (
  $labels
  and on (site) ($degraded)
)`, names{"labels": pathsWith(site), "degraded": strings.ReplaceAll(siteDegraded(), "\n", "\n  ")}),
	}
	SiteDegraded = Rule{
		Name: "OnewaySiteDegraded",
		Doc: `One fault of many paths, earlier than OnewayProbeFailing, and in place of the alerts of delay, loss, voice and reachability of each of
these paths. Quiet where all paths at fault are between this site and one other, and that pair is degraded: OnewaySitePairDegraded.`,
		Expr: siteDegraded(),
		Alert: &Alert{
			Severity: Critical, Component: Path, For: time.Minute, Always: true,
			Summary: `{{ $value | printf "%.0f" }}` + lookup(SitePaths.Name+"{site}", ` of {{ .Value | printf "%.0f" }}`) + " paths to {{ $labels.site }} are down or degraded" +
				lookup(sitePathsBadSince+"{site}", " since {{ .Value | humanizeTimestamp }}"),
			Description: "Paths of " + lookup("count(count by (job, instance) ("+PathStateNow.Name+fmt.Sprintf(" >= %d and on (job, instance, path) ", pathstate.Degraded)+metric.PathLabels.Name+"{site}))", `{{ .Value | printf "%.0f" }}`) + ` agents are concerned. The dashboard Overview with the site {{ $labels.site }} lists the paths with the reason of each.`,
		},
	}
)

// siteDegraded are the sites with so many paths that are degraded or down; the value is their number.
func siteDegraded() string {
	return promql(`
$bad >= on () group_left () max($paths)
and on (site) $bad / $count >= on () group_left () max($ratio)
unless on (site) (count by (site) ($byPair) == 1 and on (site) ($byPair{$pair!=""} and on ($pair) ($ofPair)))`, names{
		"byPair": SitePathsBadByPair.Name, "pair": pair, "ofPair": strings.ReplaceAll(pairDegraded(), "\n", " "), "bad": SitePathsBad.Name, "count": SitePaths.Name, "paths": ThresholdSitePaths.Name, "ratio": ThresholdSiteRatio.Name,
	})
}

// sites is the group of the recorded ones, and these of pairs of sites: whether a site is degraded depends on its pairs.
func sites() Group {
	return Group{Name: "oneway-sites", Interval: 15 * time.Second, Rules: []Rule{
		SitePaths, SitePathsBad, SitePathsBadSince, SitePairPaths, SitePairPathsBad, SitePairPathsBadSince, SitePathsBadByPair, SiteDegradedPaths, SitePairDegradedPaths,
	}}
}

// siteAlerts is the group of the alerts of sites and pairs of sites.
func siteAlerts() Group {
	return Group{Name: "oneway-site-alerts", Interval: 15 * time.Second, Rules: []Rule{SiteDegraded, SitePairDegraded}}
}

// unlessSite ends the expression of an alert of a path that a fault of its site, or of its pair of sites, explains.
func unlessSite(expr string) string {
	return expr + "\nunless on (job, instance, path) " + SiteDegradedPaths.Name + "\nunless on (job, instance, path) " + SitePairDegradedPaths.Name
}
