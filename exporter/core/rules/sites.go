package rules

import (
	"fmt"
	"strings"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/pathstate"
)

// site is the label of paths with the site of the host at their other end, pair the one with the sites of both ends, the same for both directions.
const (
	site = metric.SiteL
	pair = metric.SitePairL
)

// pathsWith has one series of each path with a label that is not empty. A look back over minutes would have two where the label was changed, and no
// path of any site could be joined.
func pathsWith(label string) string {
	return "topk by (job, instance, path) (1, " + unlessUnscraped(metric.PathLabels.Name+"{"+label+`!=""}`) + ")"
}

// withLabel joins paths with a label of theirs that is not empty, and with more labels.
func withLabel(label, paths string, more ...string) string {
	all := strings.Join(append([]string{label}, more...), ", ")
	return "(" + paths + ") * on (job, instance, path) group_left (" + all + ") " + pathsWith(label)
}

// bad are the paths that are degraded or down, without planned work.
func bad() string {
	return fmt.Sprintf("max by (job, instance, path) (%s) >= %d unless on (job, instance, path) %s", PathStateNow.Name, pathstate.Degraded, MaintenanceRecent.Name)
}

// faults are one fault of many paths with the same value of a label, over all agents. prefix begins the names of the series, and least is
// the fewest paths of a fault.
type faults struct {
	label, prefix string
	least         Threshold
}

var (
	siteFaults = faults{site, "oneway:site_paths:", ThresholdSitePaths}
	pairFaults = faults{pair, "oneway:site_pair_paths:", ThresholdSitePairPaths}
)

// paths are all of them, badPaths the ones that are degraded or down, and since when there are some.
func (f faults) paths(doc string) Rule {
	return Rule{Name: f.prefix + "count", Doc: doc, Expr: "count by (" + f.label + ") (" + withLabel(f.label, "max by (job, instance, path) ("+PathStateNow.Name+")") + ")"}
}

func (f faults) badPaths() Rule {
	return Rule{Name: f.prefix + "bad", Expr: "count by (" + f.label + ") (" + withLabel(f.label, bad()) + ")"}
}

func (f faults) badSince(doc string) Rule {
	return Rule{Name: f.prefix + "bad_since", Doc: doc, Expr: promql(`
last_over_time($since[2m]) and on ($label) $bad
or on ($label)
0 * $bad + time()`, names{"since": f.prefix + "bad_since", "bad": f.badPaths().Name, "label": f.label})}
}

// degraded are the values of the label with so many bad paths that it is one fault; its value is their number.
func (f faults) degraded() string {
	return promql(`
$bad >= on () group_left () max($least)
and on ($label) $bad / $count >= on () group_left () max($ratio)`, names{
		"bad": f.badPaths().Name, "count": f.paths("").Name, "least": f.least.Name, "ratio": ThresholdSiteRatio.Name, "label": f.label,
	})
}

// alert has the texts of the alert: where is the place of the fault in words, and more ends the description.
func (f faults) alert(where, more string) *Alert {
	selected := "{" + f.label + "}"
	return &Alert{
		Severity: Critical, Component: Path, For: time.Minute, Always: true,
		Summary: `{{ $value | printf "%.0f" }}` + lookup(f.paths("").Name+selected, ` of {{ .Value | printf "%.0f" }}`) + " paths " + where + " are down or degraded" +
			lookup(f.badSince("").Name+selected, " since {{ .Value | humanizeTimestamp }}"),
		Description: "Paths of " + lookup("count(count by (job, instance) ("+PathStateNow.Name+fmt.Sprintf(" >= %d and on (job, instance, path) ", pathstate.Degraded)+metric.PathLabels.Name+selected+"))", `{{ .Value | printf "%.0f" }}`) +
			" agents are concerned" + more,
	}
}

// The rules of sites, and of pairs of sites.
var (
	SitePaths = siteFaults.paths(`The paths to each site (label site of the paths), of all agents, and how many of them are degraded or down without planned
work: absent if none is.`)
	SitePathsBad      = siteFaults.badPaths()
	SitePathsBadSince = siteFaults.badSince(`Since when, in Unix time, some path to the site is degraded or down.`)
	SitePairPaths     = pairFaults.paths(`The paths between two sites (label site_pair of the paths), of both directions and all agents, and how many of them are degraded or down
without planned work: absent if none is.`)
	SitePairPathsBad      = pairFaults.badPaths()
	SitePairPathsBadSince = pairFaults.badSince(`Since when, in Unix time, some path between the sites is degraded or down.`)
	SitePathsBadByPair    = Rule{
		Name: siteFaults.prefix + "bad_by_pair",
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
)`, names{"labels": pathsWith(pair), "pair": pair, "degraded": strings.ReplaceAll(pairFaults.degraded(), "\n", "\n    "), "ofSite": pairsOfDegradedSites()}),
	}
	SiteDegraded = Rule{
		Name: "OnewaySiteDegraded",
		Doc: `One fault of many paths, earlier than OnewayProbeFailing, and in place of the alerts of delay, loss, voice and reachability of each of
these paths. Quiet where all paths at fault are between this site and one other, and that pair is degraded: OnewaySitePairDegraded.`,
		Expr:  siteDegraded(),
		Alert: siteFaults.alert("to {{ $labels.site }}", `. The dashboard Overview with the site {{ $labels.site }} lists the paths with the reason of each.`),
	}
	SitePairDegraded = Rule{
		Name: "OnewaySitePairDegraded",
		Doc: `One fault of many paths between two sites, such as of the line between them, in place of the alerts of delay, loss, voice and reachability of
each of these paths. Quiet where one of the sites is degraded as a whole: OnewaySiteDegraded.`,
		Expr:  pairFaults.degraded() + "\nunless on (" + pair + ") " + pairsOfDegradedSites(),
		Alert: pairFaults.alert("between the sites {{ $labels.site_pair }}", `, and other paths to both sites are not. The dashboard Overview lists the paths with the reason of each.`),
	}
)

// siteDegraded are the sites that are degraded as a whole: not by one pair of sites alone.
func siteDegraded() string {
	return siteFaults.degraded() + "\n" + promql(`
unless on (site) (count by (site) ($byPair) == 1 and on (site) ($byPair{$pair!=""} and on ($pair) ($ofPair)))`, names{
		"byPair": SitePathsBadByPair.Name, "pair": pair, "ofPair": strings.ReplaceAll(pairFaults.degraded(), "\n", " "),
	})
}

// pairsOfDegradedSites are the pairs with a site that is degraded as a whole: a path between the two sites is to it.
func pairsOfDegradedSites() string {
	return "group by (" + pair + ") (" + pathsWith(pair) + " and on (job, instance, path) " + SiteDegradedPaths.Name + ")"
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
