package probe

// Values of Status.Cause besides the reasons of METRICS.md.
const (
	CauseFailed             = "failed"
	CauseLimited            = "limited"
	CausePathMinimum        = "path_minimum"
	CauseStatelessReflector = "stateless_reflector"
)

// Causes returns them with their meanings, as metric.Desc.Values has them.
func Causes() []string {
	return []string{
		CauseFailed + ": the prober does not run",
		CauseLimited + ": the last run completed with a note",
		CausePathMinimum + ": it contradicts the delays",
		CauseStatelessReflector + ": losses have no direction",
	}
}
