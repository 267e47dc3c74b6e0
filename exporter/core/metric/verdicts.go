package metric

// Labels of verdicts about histories.
const (
	agentL      = "agent"
	measureL    = "measure"
	conditionsL = "conditions"
	// AboutL is what a verdict of oneway trends is about.
	AboutL = "about"
)

var (
	perHistory    = []string{agentL, Path, Probe, Direction, CodecL, ModelL, BufferL, measureL, AboutL}
	perComparison = []string{conditionsL, measureL}

	abouts = Values{AboutL: {
		"hours: the hours of the day: the largest difference between two of them",
		"weekend: weekdays against weekends and holidays",
		"last_week: the last 7 days against the 7 days before",
		"busy_hours: the busy hours of weekdays (--busy-hours) against their other hours",
		"trend: the change from the first day to the last one",
	}}
)

// Families of a file that `oneway trends` or `oneway compare` writes with --metrics, for the textfile collector of node_exporter: dashboards
// show the verdicts. They are in no sink of an agent.
var (
	TrendOutcome = Family(Desc{
		Name: "oneway_trend_outcome", Kind: Gauge, Labels: perHistory, Source: "trends.md", Values: abouts,
		Help:   "Verdict about a history: 0 equal within the margin, 1 differs by more than chance and error bounds explain, 2 cannot tell. Only in files of oneway trends --metrics.",
		Absent: "In /metrics, and where there are too few samples for it.",
	})
	TrendDifference = Family(Desc{
		Name: "oneway_trend_difference_ratio", Kind: Gauge, Labels: perHistory, Source: "trends.md", Values: abouts,
		Help:   "Difference that the verdict is about, the first part less the second, over the median (of weekend, last_week and busy_hours: of the second part); of loss, in packets lost over all. Only in files of oneway trends --metrics.",
		Absent: "In /metrics, with its verdict, and where that median is 0.",
	})
	TrendDifferenceLow = Family(Desc{
		Name: "oneway_trend_difference_low_ratio", Kind: Gauge, Labels: perHistory, Source: "trends.md", Values: abouts,
		Help:   "Lower limit of the interval of 95 % of oneway_trend_difference_ratio, error bounds included. Only in files of oneway trends --metrics.",
		Absent: "In /metrics, and where the samples give no limit.",
	})
	TrendDifferenceHigh = Family(Desc{
		Name: "oneway_trend_difference_high_ratio", Kind: Gauge, Labels: perHistory, Source: "trends.md", Values: abouts,
		Help:   "Upper limit of the interval of 95 % of oneway_trend_difference_ratio, error bounds included. Only in files of oneway trends --metrics.",
		Absent: "In /metrics, and where the samples give no limit.",
	})
	TrendNeeded = Family(Desc{
		Name: "oneway_trend_needed_seconds", Kind: Gauge, Labels: perHistory, Source: "trends.md", Values: abouts,
		Help:   "About how much more history is needed to tell, in seconds; 3650 days: that or more. Only in files of oneway trends --metrics.",
		Absent: "In /metrics, and with another verdict than 2.",
	})
	CompareOutcome = Family(Desc{
		Name: "oneway_compare_outcome", Kind: Gauge, Labels: perComparison, Source: "trends.md",
		Help:   "Verdict about two conditions, such as \"forward: access=umts against access=wifi\": 0 equal within the margin, 1 differs, 2 cannot tell. Only in files of oneway compare --metrics.",
		Absent: "In /metrics.",
	})
	CompareDifference = Family(Desc{
		Name: "oneway_compare_difference_ratio", Kind: Gauge, Labels: perComparison, Source: "trends.md",
		Help:   "Difference of the medians, the first condition less the second, over the second; of loss, in packets lost over all. Only in files of oneway compare --metrics.",
		Absent: "In /metrics, and where the second median is 0.",
	})
	CompareDifferenceLow = Family(Desc{
		Name: "oneway_compare_difference_low_ratio", Kind: Gauge, Labels: perComparison, Source: "trends.md",
		Help:   "Lower limit of oneway_compare_difference_ratio with a probability of 95 % for all comparisons of the file together, error bounds included. Only in files of oneway compare --metrics.",
		Absent: "In /metrics, and where the samples give no limit.",
	})
	CompareDifferenceHigh = Family(Desc{
		Name: "oneway_compare_difference_high_ratio", Kind: Gauge, Labels: perComparison, Source: "trends.md",
		Help:   "Upper limit of oneway_compare_difference_ratio with a probability of 95 % for all comparisons of the file together, error bounds included. Only in files of oneway compare --metrics.",
		Absent: "In /metrics, and where the samples give no limit.",
	})
	CompareNeeded = Family(Desc{
		Name: "oneway_compare_needed_seconds", Kind: Gauge, Labels: perComparison, Source: "trends.md",
		Help:   "About how much more history is needed to tell, in seconds; 3650 days: that or more. Only in files of oneway compare --metrics.",
		Absent: "In /metrics, and with another verdict than 2.",
	})
)

// verdictsGroup has the families of TitleVerdicts.
func verdictsGroup() Group {
	return Group{
		Title: TitleVerdicts,
		Descs: []*Desc{
			CompareDifferenceHigh, CompareDifferenceLow, CompareDifference, CompareNeeded, CompareOutcome,
			TrendDifferenceHigh, TrendDifferenceLow, TrendDifference, TrendNeeded, TrendOutcome,
		},
	}
}
