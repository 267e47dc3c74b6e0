package probe

// Values of Status.Cause besides the reasons of METRICS.md.
const (
	CauseFailed             = "failed"
	CauseLimited            = "limited"
	CauseNegativeDelays     = "negative_delays"
	CauseOtherHost          = "other_host"
	CausePathMinimum        = "path_minimum"
	CauseStatelessReflector = "stateless_reflector"
)

// Causes returns them with their meanings, as metric.Desc.Values has them.
func Causes() []string {
	return []string{
		CauseFailed + ": the prober does not run",
		CauseLimited + ": the last run completed with a note",
		CauseNegativeDelays + ": by more than their error bound, so that one of the clocks is wrong",
		CauseOtherHost + ": the peer's name gives the address of another host of the mesh",
		CausePathMinimum + ": it contradicts the delays",
		CauseStatelessReflector + ": losses have no direction",
	}
}
