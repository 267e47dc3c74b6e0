// Package pathstate decides the state of a path: whether it works within its limits, and why it does not, or why nobody can tell.
//
// The decision is made once, by a Judge of each light probe. The series oneway_path_state and oneway_path_state_reason, /api/v1/status
// and the agent's page have it. A state is said only if it holds for all values that the measured ones permit: the error bounds of
// delays, and the number of the packets, since a few say little about the path.
package pathstate

import (
	"fmt"
	"strconv"
	"strings"
)

// State is the state of a path. Its number is the value of the series: a larger one is worse.
type State uint8

// The states.
const (
	// Up: replies arrive, and loss and delay are within the limits.
	Up State = iota
	// Unknown: none of the others is certain.
	Unknown
	// Degraded: loss or delay is above its limit.
	Degraded
	// Down: no packet has a reply.
	Down
)

// stateBase is the factor between the number of a state and its reasons.
const stateBase = 10

// States returns all states, in the order of their numbers.
func States() []State { return []State{Up, Unknown, Degraded, Down} }

// String is the state in a word.
func (s State) String() string { return [...]string{"up", "unknown", "degraded", "down"}[s] }

// Reason is why a path has its state. Its number is the value of the series: the state is its tens.
type Reason uint8

// The reasons.
const (
	// None: the path is up.
	None Reason = 0

	NoData       Reason = 10
	NotRunning   Reason = 11
	LoadTest     Reason = 12
	FewPackets   Reason = 13
	LocalClock   Reason = 14
	RemoteClock  Reason = 15
	Timestamps   Reason = 16
	BoundTooWide Reason = 17
	ClockWrong   Reason = 18
	PathMinimum  Reason = 19

	LossForward  Reason = 20
	LossReverse  Reason = 21
	Loss         Reason = 22
	DelayForward Reason = 23
	DelayReverse Reason = 24
	OtherHost    Reason = 25

	NoReply     Reason = 30
	Unreachable Reason = 31
	Key         Reason = 32
	Discarded   Reason = 33
	NotSent     Reason = 34
	Unresolved  Reason = 35
)

// Entry describes a reason.
type Entry struct {
	Reason Reason
	// Word is the reason in one word, as in /api/v1/status; Sentence is what it means, without a full stop.
	Word, Sentence string
}

// Entries returns all reasons in the order of their numbers.
func Entries() []Entry {
	return []Entry{
		{None, "none", "replies arrive, and loss and delay are within the limits"},
		{NoData, "no_data", "no window of packets has ended yet"},
		{NotRunning, "not_running", "the probe failed on this host and will be tried again"},
		{LoadTest, "load_test", "a load test fills a link of the path, and what is measured beside it does not count"},
		{FewPackets, "few_packets", "too few packets to tell whether loss or delay is above its limit"},
		{LocalClock, "local_clock", "this host's clock is not trusted, so that the delay is not known"},
		{RemoteClock, "remote_clock", "the remote clock is not trusted, so that the delay is not known"},
		{Timestamps, "timestamps", "the timestamps give no delay with a valid error bound"},
		{BoundTooWide, "bound_too_wide", "the delay is above its limit or below, both within its error bound"},
		{ClockWrong, "clock_wrong", "delays are negative by more than their error bound, so that one of the clocks is wrong"},
		{PathMinimum, "path_minimum", "path_minimum of the configuration contradicts the delays, so that it or a clock is wrong"},
		{LossForward, "loss_forward", "loss forward is above its limit"},
		{LossReverse, "loss_reverse", "loss reverse is above its limit"},
		{Loss, "loss", "loss of round trips is above its limit"},
		{DelayForward, "delay_forward", "delay forward is above its limit"},
		{DelayReverse, "delay_reverse", "delay reverse is above its limit"},
		{OtherHost, "other_host", "the peer's name gives the address of another host of the mesh, which may be the one that is measured"},
		{NoReply, "no_reply", "nothing returns, whichever direction loses it"},
		{Unreachable, "unreachable", "the network or the remote host rejects the packets"},
		{Key, "key", "the remote end rejects the key, or the keys differ"},
		{Discarded, "discarded", "what arrives is no valid reply"},
		{NotSent, "not_sent", "this host does not send the packets"},
		{Unresolved, "unresolved", "the peer's name has no address"},
	}
}

// State is the state of a path with this reason.
func (r Reason) State() State { return State(r / stateBase) }

// entry describes r, which is one of the constants.
func (r Reason) entry() Entry {
	for _, e := range Entries() {
		if e.Reason == r {
			return e
		}
	}
	return Entry{Reason: r, Word: strconv.Itoa(int(r))}
}

// String is the reason in one word.
func (r Reason) String() string { return r.entry().Word }

// Sentence is what the reason means.
func (r Reason) Sentence() string { return r.entry().Sentence }

// StateNumbers are the states with their numbers, for documents: "0 up, 1 unknown".
func StateNumbers() string {
	var all []string
	for _, s := range States() {
		all = append(all, fmt.Sprintf("%d %s", s, s))
	}
	return strings.Join(all, ", ")
}

// ReasonNumbers are the reasons with their numbers, for documents: "0 none, 10 no_data".
func ReasonNumbers() string {
	var all []string
	for _, e := range Entries() {
		all = append(all, fmt.Sprintf("%d %s", e.Reason, e.Word))
	}
	return strings.Join(all, ", ")
}
