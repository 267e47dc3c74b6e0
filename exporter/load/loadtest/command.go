package loadtest

import (
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// Commander is implemented by a Type that `oneway test` runs.
type Commander interface {
	probe.Type
	// Command returns a new command of this type.
	Command() *CommandLine
}

// CommandLine is a load test with the options of a command line.
type CommandLine struct {
	// Help is the help text of the command.
	Help string
	// Shared and Own are the options that flags set; AgentShared and AgentOwn have the defaults of the agent.
	Shared, Own, AgentShared, AgentOwn option.Described
	// Run are the options of the run in Shared.
	Run *Options
	// Unused are the keys of Shared without effect.
	Unused []string
	// Required are the keys of Shared that a command line must give.
	Required []probe.Requirement
	// LightPackets reports whether light test packets are sent during the load.
	LightPackets bool
	// SetRemote sets the option RemoteKey in Shared; nil: the remote end is the peer of the target. SetDirections sets the directions to test;
	// nil: the type chooses them.
	RemoteKey     string
	SetRemote     func(host string)
	SetDirections func(names []string)
	// Make checks the options and makes the test.
	Make func(target probe.Target) (Test, error)
	// Results is the zero value of Run.Body.
	Results any
}

// terminalMaxWait is the default of max_wait on a command line: a person waits.
const terminalMaxWait = 10 * time.Second

// Command returns a new command of this type.
func (t Type[R, O]) Command() *CommandLine {
	shared, agentShared, own, agentOwn := t.Shared(), t.Shared(), t.Defaults(), t.Defaults()
	if t.Terminal != nil {
		own = t.Terminal()
	}
	c := &CommandLine{
		Help: t.Help, Shared: described(&shared), Own: described(&own), AgentShared: described(&agentShared), AgentOwn: described(&agentOwn),
		Run: t.Run(&shared), Unused: t.Unused, Required: t.Required, LightPackets: t.LightPackets, Results: t.Results, RemoteKey: t.RemoteKey,
		Make: func(target probe.Target) (Test, error) { return t.Make(target, shared, own) },
	}
	for _, d := range option.All(c.Shared) {
		if remote, ok := d.Pointer().(*string); ok && d.Key == t.RemoteKey {
			c.SetRemote = func(host string) { *remote = host }
		}
	}
	if t.SetDirections != nil {
		c.SetDirections = func(names []string) { t.SetDirections(&shared, names) }
	}
	c.Run.MaxWait = terminalMaxWait
	return c
}

func described(options any) option.Described { return options.(option.Described) }

// Tabled is a Run's Body with tables of its results, for the terminal.
type Tabled interface{ Tables() []report.Table }
