package loan

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// DefaultSocket is where the agent listens if nothing else is said; its directory is what
// systemd makes of RuntimeDirectory=oneway.
const DefaultSocket = "/run/oneway/agent.sock"

// version is that of the messages.
const version = 1

// maxLine bounds a message in octets.
const maxLine = 4096

// Silence is how long an agent waits for a word of a test that has its link: one that was
// suspended fills no link. The client says one each third of it, or less.
const Silence = 30 * time.Second

// Ask says which link a test will fill.
type Ask struct {
	// Kind is the test's word, such as "saturate".
	Kind string `json:"kind"`
	// Host and Port are its far end, as the configuration would have them.
	Host string `json:"host"`
	Port uint16 `json:"port"`
	// Link is the one that the operator has named; empty: the agent finds it.
	Link string `json:"link,omitempty"`
}

// Place is where a test belongs: the labels of oneway_test_running.
type Place struct {
	Path  string `json:"path"`
	Probe string `json:"probe"`
	Link  string `json:"link"`
}

// Terms are what the agent says of a link.
type Terms struct {
	Place
	// Limit is the budget of a day in IP octets, 0 if there is none; Left is left of it.
	Limit int64 `json:"limit,omitempty"`
	Left  int64 `json:"left,omitempty"`
	// Holder is the test that has the link, since Since; empty: none.
	Holder string    `json:"holder,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// What a client asks for.
const (
	opAsk     = "ask"
	opTake    = "take"
	opReserve = "reserve"
	opSend    = "send"   // no reply
	opAlive   = "alive"  // no reply
	opSettle  = "settle" // the last
)

type request struct {
	Op      string `json:"op"`
	Version int    `json:"version,omitempty"`
	Ask     *Ask   `json:"ask,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Network string `json:"network,omitempty"`
	// Wait is how long the link is waited for. Again: the test sends already, of octets that
	// an agent has counted; the link is then not waited for.
	Wait  time.Duration `json:"wait_ns,omitempty"`
	Again bool          `json:"again,omitempty"`
	Bytes int64         `json:"bytes,omitempty"`
	// Forward and Reverse are the IP octets that were sent.
	Forward int64 `json:"forward,omitempty"`
	Reverse int64 `json:"reverse,omitempty"`
}

// What an agent answers.
const (
	wordOK        = "ok"
	wordWaiting   = "waiting" // another reply follows
	wordBusy      = "busy"
	wordBudget    = "budget"
	wordElsewhere = "elsewhere" // of another network namespace
	wordRefused   = "refused"
)

type reply struct {
	Word  string `json:"word"`
	Error string `json:"error,omitempty"` // refused: why
	// Unsaved: refused, because the link's budget cannot be saved.
	Unsaved bool  `json:"unsaved,omitempty"`
	Terms   Terms `json:"terms,omitzero"`
	// Renewed is when the budget is.
	Renewed time.Time `json:"renewed,omitzero"`
}

// ErrGone says that the agent has ended the connection.
var ErrGone = errors.New("loan: the agent has gone")

// NoAgentError says that no agent of this host and network listens.
type NoAgentError struct{ Why string }

// Error says why one thinks so.
func (e *NoAgentError) Error() string { return "loan: no agent: " + e.Why }

// BusyError says who kept the link.
type BusyError struct {
	Terms
	Waited time.Duration
}

// Error says who, and for how long he was waited for.
func (e *BusyError) Error() string {
	return fmt.Sprintf("link %s was not free in %v, it is held by %s", e.Link, e.Waited, e.Holder)
}

// network names this process's network namespace; empty where there are none.
func network() string {
	name, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return ""
	}
	return name
}
