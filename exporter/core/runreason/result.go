package runreason

// The results of runs and of measurements from the terminal: the values of the label result.
const (
	Completed  = "completed"
	Incomplete = "incomplete"
	Refused    = "refused"
	Failed     = "failed"
	Skipped    = "skipped"
)

// Results are all results with their meanings, as METRICS.md has them.
func Results() []string {
	return []string{
		Completed + ": the metrics of the probe are from it",
		Incomplete + ": it began to send and did not reach its end, or measured nothing",
		Refused + ": by the load server",
		Failed + ": it could not begin",
		Skipped + ": a condition for its start was not met",
	}
}

// Failures are the results of runs that have no values and were not skipped: alerts count them as failing, and the state of a load test
// is the same after each of them.
func Failures() []string { return []string{Refused, Failed, Incomplete} }
