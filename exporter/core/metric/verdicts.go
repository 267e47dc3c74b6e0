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

// Verdicts are the families of a file that `oneway trends` or `oneway compare` writes with --metrics, for the textfile collector of node_exporter:
// dashboards show the verdicts. They are in no sink of an agent.
type Verdicts struct {
	Outcome, Difference, Low, High, Needed, Time *Desc
}

// All are the families in the order of their names.
func (v *Verdicts) All() []*Desc {
	return []*Desc{v.High, v.Low, v.Difference, v.Needed, v.Outcome, v.Time}
}

// Trend has the verdicts of `oneway trends`.
var Trend = Verdicts{
	Outcome: Family(Desc{
		Name: "oneway_trend_outcome", Kind: Gauge, Labels: perHistory, Source: "trends.md", Values: abouts,
		Help:   "Verdict about a history: 0 equal within the margin, 1 differs by more than chance and error bounds explain, 2 cannot tell. Only in files of oneway trends --metrics.",
		Absent: "In /metrics, and where there are too few samples for it.",
	}),
	Difference: Family(Desc{
		Name: "oneway_trend_difference_ratio", Kind: Gauge, Labels: perHistory, Source: "trends.md", Values: abouts,
		Help:   "Difference that the verdict is about, the first part less the second, over the median (of weekend, last_week and busy_hours: of the second part); of loss, in packets lost over all. Only in files of oneway trends --metrics.",
		Absent: "In /metrics, with its verdict, and where that median is 0.",
	}),
	Low: Family(Desc{
		Name: "oneway_trend_difference_low_ratio", Kind: Gauge, Labels: perHistory, Source: "trends.md", Values: abouts,
		Help:   "Lower limit of the interval of 95 % of oneway_trend_difference_ratio, error bounds included. Only in files of oneway trends --metrics.",
		Absent: "In /metrics, and where the samples give no limit.",
	}),
	High: Family(Desc{
		Name: "oneway_trend_difference_high_ratio", Kind: Gauge, Labels: perHistory, Source: "trends.md", Values: abouts,
		Help:   "Upper limit of the interval of 95 % of oneway_trend_difference_ratio, error bounds included. Only in files of oneway trends --metrics.",
		Absent: "In /metrics, and where the samples give no limit.",
	}),
	Needed: Family(Desc{
		Name: "oneway_trend_needed_seconds", Kind: Gauge, Labels: perHistory, Source: "trends.md", Values: abouts,
		Help:   "About how much more history is needed to tell, in seconds; 3650 days: that or more. Only in files of oneway trends --metrics.",
		Absent: "In /metrics, and with another verdict than 2.",
	}),
	Time: Family(Desc{
		Name: "oneway_trend_timestamp_seconds", Kind: Gauge, Labels: perHistory, Source: "trends.md", Values: abouts,
		Help:   "Unix time of the verdict: a file that is no longer written keeps its verdicts. Only in files of oneway trends --metrics.",
		Absent: "In /metrics, and with its verdict.",
	}),
}

// Compare has the verdicts of `oneway compare`.
var Compare = Verdicts{
	Outcome: Family(Desc{
		Name: "oneway_compare_outcome", Kind: Gauge, Labels: perComparison, Source: "trends.md",
		Help:   "Verdict about two conditions, such as \"forward: access=umts against access=wifi\": 0 equal within the margin, 1 differs, 2 cannot tell. Only in files of oneway compare --metrics.",
		Absent: "In /metrics.",
	}),
	Difference: Family(Desc{
		Name: "oneway_compare_difference_ratio", Kind: Gauge, Labels: perComparison, Source: "trends.md",
		Help:   "Difference of the medians, the first condition less the second, over the second; of loss, in packets lost over all. Only in files of oneway compare --metrics.",
		Absent: "In /metrics, and where the second median is 0.",
	}),
	Low: Family(Desc{
		Name: "oneway_compare_difference_low_ratio", Kind: Gauge, Labels: perComparison, Source: "trends.md",
		Help:   "Lower limit of oneway_compare_difference_ratio with a probability of 95 % for all comparisons of the file together, error bounds included. Only in files of oneway compare --metrics.",
		Absent: "In /metrics, and where the samples give no limit.",
	}),
	High: Family(Desc{
		Name: "oneway_compare_difference_high_ratio", Kind: Gauge, Labels: perComparison, Source: "trends.md",
		Help:   "Upper limit of oneway_compare_difference_ratio with a probability of 95 % for all comparisons of the file together, error bounds included. Only in files of oneway compare --metrics.",
		Absent: "In /metrics, and where the samples give no limit.",
	}),
	Needed: Family(Desc{
		Name: "oneway_compare_needed_seconds", Kind: Gauge, Labels: perComparison, Source: "trends.md",
		Help:   "About how much more history is needed to tell, in seconds; 3650 days: that or more. Only in files of oneway compare --metrics.",
		Absent: "In /metrics, and with another verdict than 2.",
	}),
	Time: Family(Desc{
		Name: "oneway_compare_timestamp_seconds", Kind: Gauge, Labels: perComparison, Source: "trends.md",
		Help:   "Unix time of the verdict: a file that is no longer written keeps its verdicts. Only in files of oneway compare --metrics.",
		Absent: "In /metrics, and with its verdict.",
	}),
}

// verdictsGroup has the families of TitleVerdicts.
func verdictsGroup() Group {
	return Group{Title: TitleVerdicts, Descs: append(Compare.All(), Trend.All()...)}
}
