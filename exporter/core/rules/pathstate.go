package rules

import "oneway.example/exporter/core/pathstate"

// PathStateAlert is the name of the alert that tells more of a reason of a path's state, and of its runbook; empty: there is none, or nothing to
// do.
func PathStateAlert(why pathstate.Reason) string {
	switch why {
	case pathstate.LoadTest:
		return AlertsSilenced.Name
	case pathstate.FewPackets, pathstate.Loss:
		return RoundTripLoss.Name
	case pathstate.LocalClock:
		return ClockUnsynchronized.Name
	case pathstate.RemoteClock:
		return RemoteClockUnsynchronized.Name
	case pathstate.BoundTooWide:
		return ClockErrorTooLarge.Name
	case pathstate.ClockWrong:
		return NegativeDelay.Name
	case pathstate.LossForward, pathstate.LossReverse:
		return LossHigh.Name
	case pathstate.DelayForward, pathstate.DelayReverse:
		return DelayBlowUp.Name
	case pathstate.NoReply, pathstate.Unreachable, pathstate.Key, pathstate.Discarded, pathstate.NotSent, pathstate.Unresolved:
		return ProbeFailing.Name
	case pathstate.None, pathstate.NoData, pathstate.NotRunning, pathstate.Timestamps, pathstate.PathMinimum, pathstate.OtherHost:
	}
	return ""
}
