package metric

const outputL = "output"

// Outputs: delivery to stores that do not scrape the agent.
var (
	OutputPoints = Family(Desc{
		Name: "oneway_output_points_total", Kind: Counter, Labels: []string{outputL, ResultL}, Source: "design",
		Help:   "Points of the line protocol that left the output, by result.",
		Absent: "Without outputs.",
		Values: Values{ResultL: {
			"written: the store accepted it",
			"rejected: the store refused it, for example because a field has another type there",
			"dropped: given up, because the spool was full, could not be written, or was damaged",
		}},
	})
	OutputRequests = Family(Desc{
		Name: "oneway_output_requests_total", Kind: Counter, Labels: []string{outputL, ResultL}, Source: "InfluxDB 1.8, 2 and 3: HTTP write API",
		Help:   "Write requests, by result.",
		Absent: "Until the first of that result.",
		Values: Values{ResultL: {
			"written: status 204 or 200",
			"partial: some points were refused",
			"rejected: all points were refused (400, 422)",
			"too_large: status 413; the batch is divided",
			"rate_limited: status 429, or 503 with Retry-After",
			"unauthorized: status 401 or 403",
			"not_found: status 404; the database or bucket does not exist",
			"server_error: another status, such as 500 or a redirect",
			"unreachable: no reply",
		}},
	})
	OutputSpool = Family(Desc{
		Name: "oneway_output_spool_bytes", Kind: Gauge, Labels: []string{outputL}, Source: "design",
		Help:   "Bytes of the points that are not yet delivered, on disk and in memory.",
		Absent: "Without outputs, and while the spool of the output cannot be opened.",
	})
	OutputSpoolLimit = Family(Desc{
		Name: "oneway_output_spool_limit_bytes", Kind: Gauge, Labels: []string{outputL}, Source: "design",
		Help:   "Limit of oneway_output_spool_bytes; above it the oldest points are dropped.",
		Absent: "Without outputs.",
	})
	OutputSpoolSaved = Family(Desc{
		Name: "oneway_output_spool_saved", Kind: Gauge, Labels: []string{outputL}, Source: "design",
		Help:   "1 while the spool is written to its directory, or is in memory by configuration; else 0: new points are in memory, and dropped when there is no space.",
		Absent: "Without outputs, and while the spool of the output cannot be opened.",
	})
	OutputWaiting = Family(Desc{
		Name: "oneway_output_waiting_points", Kind: Gauge, Labels: []string{outputL}, Source: "design",
		Help:   "Points that are not yet delivered.",
		Absent: "Without outputs, and while the spool of the output cannot be opened.",
	})
	OutputLastSuccess = Family(Desc{
		Name: "oneway_output_last_success_timestamp_seconds", Kind: Gauge, Labels: []string{outputL}, Source: "design",
		Help:   "Unix time at which the store last accepted points.",
		Absent: "Before the first time.",
	})
)

// outputsGroup has the families of TitleOutputs.
func outputsGroup() Group {
	return Group{
		Title: TitleOutputs,
		Descs: []*Desc{
			OutputLastSuccess, OutputPoints, OutputRequests, OutputSpool, OutputSpoolLimit, OutputSpoolSaved, OutputWaiting,
		},
		Measurements: []Measurement{
			{Name: "oneway_output", Labels: []string{outputL}},
			{Name: "oneway_output_result", Labels: []string{outputL, ResultL}},
		},
	}
}
