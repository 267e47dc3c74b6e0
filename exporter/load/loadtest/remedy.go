package loadtest

import "oneway.example/exporter/load/loadcontrol"

// remedy is what a person can do about a run with this reason; empty: nothing is needed.
func remedy(reason string) string {
	switch reason {
	case ReasonLinkBusy:
		return "Other tests held the link throughout max_wait: give them other times with windows or jitter, or a longer max_wait."
	case ReasonRemoteBusy, string(loadcontrol.Busy), string(loadcontrol.TooMany):
		return "Other sessions used the load server: give the tests of its clients different times, or a longer max_wait."
	case ReasonQuota:
		return "The day's quota of the link does not suffice: raise quota_bytes under links, or make the test shorter or rarer."
	case ReasonOverrun:
		return "The previous run still went on: choose a longer every."
	case ReasonWindowClosed:
		return "The window closed while the run waited for its link: choose a longer window, or other times for the tests of this link."
	case ReasonStopped:
		return "The agent stopped or its configuration changed; the next run is not affected."
	case ReasonUnsaved: // also that of loadcontrol
		return "The usage of a quota cannot be saved: check that state_dir is writable and the disk is not full, here and at the load server."
	case ReasonConfiguration:
		return "A configured file cannot be used: oneway check-config names it."
	case ReasonUnreachable:
		return "Check that the load server runs at this address and that its TCP port (8620 by default) is open on the way."
	case ReasonNoTraffic:
		return "Control works but UDP does not: open the UDP port of the load server (8620 by default) on the way, for both directions."
	case ReasonSocket:
		return "An error of a socket of this host: check its routes, its firewall, and for TCP that the ports of the load server (8621-8640) are open."
	case ReasonTimeout:
		return "The run took longer than its timeout: choose a longer timeout, or less traffic."
	case ReasonLost:
		return "The control connection ended: check that the load server still runs, and whether the path was interrupted at that time."
	case ReasonClock:
		return "A clock was stepped during the run: check the clock of both hosts; the next run is not affected."
	case string(loadcontrol.Unauthorized):
		return "The load server does not know the token: compare token_file with its tokens_file (oneway token new makes both)."
	case string(loadcontrol.WrongVersion):
		return "The two ends do not understand each other: install the same version of oneway on both."
	case string(loadcontrol.BadRequest):
		return "The load server rejects the request: compare the options of the test with its log."
	case string(loadcontrol.RateLimit), string(loadcontrol.TimeLimit), string(loadcontrol.DayLimit):
		return "A limit of the token is below what the test needs: raise it in the tokens_file of the load server, or reduce the test."
	case string(loadcontrol.Unproved):
		return "The load server did not receive test packets from this address: check for address translation that changes during a run."
	case string(loadcontrol.ShuttingDown):
		return "The load server was stopping; the next run is not affected unless it stays away."
	case ReasonInternal:
		return "An error that is not expected: the log of the agent has details; please report it."
	}
	return ""
}
