// Package runreason has the results of load-test runs and their reasons: the values of two labels, what each means, and what a
// person can do about a reason.
package runreason

import (
	"fmt"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/option"
)

// Reason is one reason.
type Reason struct {
	// Name is the value of the label reason.
	Name string
	// Meaning completes the name in METRICS.md; empty: the name says it.
	Meaning string
	// Remedy is what a person can do; empty: nothing is needed.
	Remedy string
	// Skips: a run that has not begun to send is skipped, not failed. Refusal: a load server gives it.
	Skips, Refusal bool
	// Ended is the end of a session that runs which this reason gives at the load server; empty: it refuses a request, and a session
	// that it ends has sent a wrong one (EndProtocol). Ends: it refuses nothing.
	Ended string
	Ends  bool
	// Retried: the run waits within max_wait and asks the load server again. It alone decides that; a refusal of another reason may
	// tell the operator when a later run can succeed.
	Retried bool
	// Counted: a run that reached its end without a result has counts of why, which are published.
	Counted bool
	// Host: a host, and not the path, is the cause.
	Host bool
	// Status is the HTTP status of a refusal before the upgrade; 0: it is no refusal.
	Status int
}

// The names.
const (
	OK            = "ok"
	LinkBusy      = "link_busy"
	RemoteBusy    = "remote_busy"
	Quota         = "quota"
	Overrun       = "overrun"
	WindowClosed  = "window_closed"
	Stopped       = "stopped"
	Configuration = "configuration"
	Unreachable   = "unreachable"
	NoTraffic     = "no_udp_reply"
	Socket        = "socket"
	Timeout       = "timeout"
	Lost          = "session_lost"
	HostPaused    = "host_paused"
	RemotePaused  = "remote_paused"
	TooLarge      = "packet_too_large"
	NoResult      = "nothing_measured"
	SenderSlow    = "sender_too_slow"
	Clock         = "clock_stepped"
	Internal      = "internal"
	Unauthorized  = "unauthorized"
	WrongVersion  = "wrong_version"
	BadRequest    = "bad_request"
	Busy          = "busy"
	TooMany       = "too_many"
	RateLimit     = "rate_limit"
	TimeLimit     = "time_limit"
	DayLimit      = "day_limit"
	Unsaved       = "unsaved"
	Unproved      = "unproved"
	ShuttingDown  = "shutting_down"
)

const (
	otherTimes  = "Other sessions used the load server: give the tests of its clients different times, or a longer max_wait."
	raiseLimits = "A limit of the token is below what the test needs: raise it in the tokens_file of the load server, or reduce the test."
)

// All returns all reasons, reasons of refusals last.
func All() []Reason {
	return []Reason{
		{Name: OK, Meaning: "completed"},
		{
			Name: LinkBusy, Meaning: "another test used the link throughout max_wait", Skips: true,
			Remedy: "Other tests held the link throughout max_wait: give them other times with windows or jitter, or a longer max_wait.",
		},
		{
			Name: RemoteBusy, Meaning: "the same at the remote end", Skips: true,
			Remedy: otherTimes,
		},
		{
			Name: Quota, Meaning: "too little of the day's data quota is left", Skips: true,
			Remedy: "The day's quota of the link does not suffice: raise quota_bytes under links, or make the test shorter or rarer.",
		},
		{
			Name: Overrun, Meaning: "it was due during the previous run", Skips: true,
			Remedy: "The previous run still went on: choose a longer every.",
		},
		{
			Name: WindowClosed, Meaning: "its window closed before the link was free", Skips: true,
			Remedy: "The window closed while the run waited for its link: choose a longer window, or other times for the tests of this link.",
		},
		{
			Name: Stopped, Meaning: "the agent stopped or reloaded", Skips: true,
			Remedy: "The agent stopped or its configuration changed; the next run is not affected.",
		},
		{
			Name: Configuration, Meaning: "a configured file cannot be used, or this host cannot perform what is configured",
			Remedy: "A configured file cannot be used: oneway check-config names it. Or this host cannot perform what is configured, such as packets beyond its memory limit: the error says what.",
		},
		{
			Name: Unreachable, Meaning: "no control connection",
			Remedy: fmt.Sprintf("Check that the load server runs at this address and that its TCP port (%d by default) is open on the way.", hostport.LoadServer),
		},
		{
			Name: NoTraffic, Meaning: "the control connection works, but no test packet gets a reply",
			Remedy: fmt.Sprintf("Control works but UDP does not: open the UDP port of the load server (%d by default) on the way, for both directions.", hostport.LoadServer),
		},
		{
			Name: Socket, Meaning: "an error of this host's socket, or no TCP connection to a port of the load server",
			Remedy: fmt.Sprintf("An error of a socket of this host: check its routes, %s, and for TCP that the ports of the load server (%v) are open.", errtext.Forbidden, option.LoadServerPorts()),
		},
		{
			Name: Timeout, Meaning: "it exceeded timeout",
			Remedy: "The run took longer than its timeout: choose a longer timeout, or less traffic.",
		},
		{
			Name: Lost, Meaning: "the control connection ended, or nothing came from the other end for 10 s", Refusal: true, Ended: EndSilent, Ends: true, Status: 408,
			Remedy: "The control connection ended, or the load server was silent: check that the load server still runs and does not hang, and whether the path was interrupted at that time.",
		},
		{
			Name: HostPaused, Meaning: "this host, or this process, did not run for a second or more", Host: true,
			Remedy: "This host was suspended, its virtual machine or the process was stopped, or other processes used all processors: the next run is not affected if that does not happen again.",
		},
		{
			Name: RemotePaused, Meaning: "the same at the load server", Refusal: true, Ended: EndPaused, Ends: true, Status: 503, Host: true,
			Remedy: "The host of the load server was suspended or too busy, or its process was stopped; the next run is not affected if that does not happen again.",
		},
		{
			Name: TooLarge, Meaning: "no packet of its size passed the path, or none from some time on: its MTU, or the MTU of an interface, is smaller or may be",
			Remedy: "Choose smaller packets: the error names the option, and the path's MTU if a router has reported it. `oneway test train` measures the MTU.",
		},
		{
			Name: NoResult, Meaning: "it reached its end, and has no result: the error has the reason", Counted: true,
			Remedy: "The error has the reason why nothing was measured, such as other traffic: repeat the test, or choose another kind.",
		},
		{
			Name: SenderSlow, Meaning: "it reached its end, and has no result: the host that sends paused between packets, or sends more slowly than the link", Counted: true, Host: true,
			Remedy: "The host that sends was busy, or is slower than the link: end what else uses its processors and repeat the test, or choose another kind. The path is not the cause.",
		},
		{
			Name: Clock, Meaning: "a clock was stepped during the run",
			Remedy: "A clock was stepped during the run: check the clock of both hosts; the next run is not affected.",
		},
		{
			Name: Internal, Meaning: "any other error",
			Remedy: "An error that is not expected: the log of the agent has details; please report it.",
		},
		{
			Name: Unauthorized, Meaning: "no token, an unknown one, or one that was revoked", Refusal: true, Ended: EndRevoked, Status: 401,
			Remedy: "The load server does not know the token: compare token_file with its tokens_file (oneway token new makes both).",
		},
		{
			Name: WrongVersion, Refusal: true, Status: 426,
			Remedy: "The two ends do not understand each other: install the same version of oneway on both.",
		},
		{
			Name: BadRequest, Meaning: "not valid", Refusal: true, Status: 400,
			Remedy: "The load server rejects the request: compare the options of the test with its log.",
		},
		{
			Name: Busy, Meaning: "another session uses the link", Refusal: true, Status: 503, Retried: true,
			Remedy: otherTimes,
		},
		{
			Name: TooMany, Meaning: "connections, or sessions of the token", Refusal: true, Status: 429, Retried: true,
			Remedy: otherTimes,
		},
		{
			Name: RateLimit, Meaning: "above the token's rate", Refusal: true, Ended: EndRateLimit, Status: 403,
			Remedy: raiseLimits,
		},
		{
			Name: TimeLimit, Meaning: "above a limit of time", Refusal: true, Ended: EndTimeLimit, Status: 403,
			Remedy: raiseLimits,
		},
		{
			Name: DayLimit, Meaning: "above the token's bytes of a day", Refusal: true, Status: 429,
			Remedy: raiseLimits,
		},
		{
			Name: Unsaved, Meaning: "the usage of the day cannot be saved", Refusal: true, Status: 503,
			Remedy: "The usage of a quota cannot be saved: check that state_dir is writable and the disk is not full, here and at the load server.",
		},
		{
			Name: Unproved, Meaning: "a stream to an address that is not proved", Refusal: true, Status: 403,
			Remedy: "The load server did not receive test packets from this address: check for address translation that changes during a run.",
		},
		{
			Name: ShuttingDown, Refusal: true, Ended: EndShuttingDown, Status: 503, Retried: true,
			Remedy: "The load server was stopping; the next run is not affected unless it stays away.",
		},
	}
}

// OfHosts are the names of the reasons that a host causes.
func OfHosts() (names []string) {
	for _, r := range All() {
		if r.Host {
			names = append(names, r.Name)
		}
	}
	return names
}

// Find returns the reason of this name; the zero value: there is none.
func Find(name string) Reason {
	for _, r := range All() {
		if r.Name == name {
			return r
		}
	}
	return Reason{}
}

// Values returns the names of all reasons with their meanings, as metric.Desc.Values has them.
func Values() []string { return values(func(Reason) bool { return true }) }

// Refusals returns what Values does of the reasons that a load server gives.
func Refusals() []string { return values(func(r Reason) bool { return r.Refusal }) }

// Skips returns what Values does of the reasons for which a run is skipped.
func Skips() []string { return values(func(r Reason) bool { return r.Skips }) }

func values(has func(Reason) bool) (all []string) {
	for _, r := range All() {
		if !has(r) {
			continue
		}
		text := r.Name
		if r.Meaning != "" {
			text += ": " + r.Meaning
		}
		all = append(all, text)
	}
	return all
}
