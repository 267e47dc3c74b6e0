package probe

import (
	"context"
	"errors"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe/report"
)

// Terminal is implemented by a Type of light probes that measures from the terminal, in a command of its own.
type Terminal interface {
	Type
	// Terminal makes one measurement with its default options. It opens nothing and sends nothing.
	Terminal() Measurement
}

// Measurement is one measurement from the terminal.
type Measurement interface {
	// Command describes the command.
	Command() Command
	// Options returns the options, which the flags of the command set before Measure, and the defaults of the agent's probes. After
	// Measure they are the options in force.
	Options() (own, agent option.Described)
	// Measure sends count test packets, or until ctx ends if count is 0, and waits for the last replies. An error wraps ErrNoReply
	// if there was no reply; the result is then valid, and with any other error it has only Warnings. progress takes the state in a
	// line, some times a second.
	Measure(ctx context.Context, env Env, target Target, count uint64, progress func(line string)) (Measured, error)
}

// ErrNoReply means: the peer replied to no test packet.
var ErrNoReply = errors.New("no reply")

// Command describes a command that measures.
type Command struct {
	// Name is the name of the command; empty: the name of the Type, with hyphens.
	Name string
	// Help is the text of the command, which begins with a summary. Host is the text of its argument, Port of its flag --port;
	// without a text of Port there is no such flag.
	Help, Host, Port string
	// Letters are the short forms of flags, by the key of the option.
	Letters map[string]rune
	// Document is the kind of the JSON document, Values the zero value of the type of Measured.Values, a struct.
	Document document.Kind
	Values   any
}

// Measured is the result of a measurement from the terminal.
type Measured struct {
	// Sent counts test packets, Received those with a reply.
	Sent, Received uint64
	// Failure is why there was no reply; empty: there was one.
	Failure lightreason.Reason
	// Table has the results, aligned at the right; its first row has the names of the columns. Without rows no table is printed.
	// Notes are what a reader must know to interpret it.
	Table report.Table
	Notes []string
	// Warnings are printed with any result and with an error.
	Warnings []string
	// Values are the fields of the JSON document, a struct of the type of Command.Values or a pointer to one.
	Values any
}

// IncidentSource is implemented by a Prober that passes each packet whose outcome is known to Env.Recorder, with its delays: the
// agent then reports incidents of the path.
type IncidentSource interface{ RecordsPackets() }

// RouteSource is implemented by a light Prober that knows the number of routers on its path.
type RouteSource interface {
	// Hops are by sample.Direction.
	Hops() [2]Hops
}

// Hops is the number of routers on the path of one direction, by the last packet.
type Hops struct {
	// Known: the number is known.
	Known   bool
	Routers uint8
	// Changes are the packets with another number than the packet before them, of the session.
	Changes uint64
}

// Valued is implemented by a Type of light probes whose Status has Values.
type Valued interface {
	// StatusValues is the zero value of their type, a struct, for the JSON schema of the status.
	StatusValues() any
}
