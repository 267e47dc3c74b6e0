// Package record is what the host and its guests tell each other: commands and
// replies over the guest's console, and the logs that a guest leaves in its directory.
package record

import (
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/vmlab/truth"
)

// DirVariable is the environment variable in which a guest's init finds the path
// of its directory on the host.
const DirVariable = "VMLAB_DIR"

// Dir is where a guest has its directory. It is a file system of its own there, so that
// on the host it can be in memory: a guest stands still while the host writes for it.
const Dir = "/run/vmlab"

// Boot is what a guest is to be, in its directory's boot.json.
type Boot struct {
	// Name is also the host name.
	Name string
	// Address is that of vec0, with a prefix length; empty: no network.
	Address string
	// Line is the truth.
	Line truth.Line
	// Devices: /dev holds the guest kernel's own devices, not the host's names.
	Devices bool
}

// Files in a guest's directory.
const (
	BootFile    = "boot.json"
	TracksFile  = "truth.bin"     // truth.Pair after truth.Pair
	PacketsFile = "packets.jsonl" // Packet, one a line
	StatesFile  = "states.jsonl"  // State, one a line
	MetricsFile = "metrics.jsonl" // Metrics, one a line
)

// Command is one line to a guest's console.
type Command struct {
	ID int
	// Do is one of the verbs below.
	Do string
	// Name is that of a process; Args is its command line.
	Name string   `json:",omitempty"`
	Args []string `json:",omitempty"`
	// By is a step, a signal's number, or parts per billion.
	By int64 `json:",omitempty"`
	// Feed is a reference clock.
	Feed *Feed `json:",omitempty"`
}

// The verbs.
const (
	Run      = "run"      // runs Args to its end; the reply has its output
	Start    = "start"    // starts Args as Name, its output to Name.log
	Signal   = "signal"   // sends signal By to Name
	Wait     = "wait"     // waits until Name has ended
	Step     = "step"     // moves the clock by By nanoseconds, at once
	Set      = "set"      // sets the clock to the truth plus By nanoseconds
	Rate     = "rate"     // sets the clock's frequency to By parts per billion
	FeedOn   = "feed"     // feeds Feed from now on, in place of an earlier one of its name
	FeedOff  = "unfeed"   // ends the feed Name
	First    = "first"    // lets the kernel's threads Args go before all processes; By 0: no more
	Load     = "load"     // loads the kernel modules Args, in that order
	Flush    = "flush"    // waits until all that was logged is in the host's files
	Poweroff = "poweroff" // ends the guest
)

// Feed is a source of the truth for chronyd's SOCK reference clock.
type Feed struct {
	Name string
	// Socket is chronyd's.
	Socket string
	// Every is the time between samples.
	Every time.Duration
	// Bias is added to the truth: how wrong the source is; positive: it is fast.
	Bias time.Duration
	// Leap is chronyd's leap status: 0 normal, 1 insert a second, 2 delete one.
	Leap uint32
}

// ReplyMark begins a reply on the console, where the kernel may write, too.
const ReplyMark = "@"

// Reply to the command of the same ID, or with ID 0 that the guest is up.
type Reply struct {
	ID            int
	Error, Output string
}

// JudgedPath is the name of the path whose packets are in PacketsFile.
const JudgedPath = "lab"

// Packet is one answered test packet, as the prober's OnPacket had it.
type Packet struct {
	// Seen is the counter when the packet was concluded.
	Seen             uint64
	Packet           sample.Packet
	Forward, Reverse sample.Delay
}

// State is what the agent says of its clock.
type State struct {
	Counter       uint64
	State, Reason string
	Trusted       bool
	Bound, Offset time.Duration
	Steps         uint64
	LastUpdate    instant.Time
}

// Metrics are the series that have changed since the last such record.
type Metrics struct {
	Counter uint64
	// First is that of an agent that has just started: what an earlier one said is over.
	First bool `json:",omitempty"`
	// Values are by name{label values}; nil: the series is gone.
	Values map[string]*float64
}
