// Command oneway measures network paths: one-way delay with a proven error
// bound, loss, variation and voice quality, in both directions, all day.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

// Exit statuses, the same for every subcommand.
const (
	exitFailure = 1
	exitUsage   = 2
)

// usageError is the user's mistake: it ends the program with status 2.
type usageError struct{ error }

// Unwrap gives the cause.
func (e usageError) Unwrap() error { return e.error }

// failure is anything else that a subcommand could not do: status 1. What
// kingpin itself finds wrong with the arguments is neither, and the user's.
type failure struct{ error }

// Unwrap gives the cause.
func (e failure) Unwrap() error { return e.error }

// action makes a subcommand's work of f.
func action(f func() error) kingpin.Action {
	return func(*kingpin.ParseContext) error {
		err := f()
		if _, usage := errors.AsType[usageError](err); err == nil || usage {
			return err
		}
		return failure{err}
	}
}

// interruptible is action with a context that Ctrl-C and SIGTERM end.
func interruptible(f func(context.Context) error) kingpin.Action {
	return action(func() error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return f(ctx)
	})
}

func main() {
	app := kingpin.New("oneway", "Measure network paths: one-way delay with its error bound, loss, variation, voice quality.").
		UsageWriter(os.Stdout)
	identify()
	app.Version(version.Print("oneway"))
	app.HelpFlag.Short('h')
	for _, register := range []func(*kingpin.Application){
		agentCommand, checkConfigCommand, reflectCommand, respondCommand, tokenCommand, probeCommand, testCommand, calibrateCommand, voiceCommand,
	} {
		register(app)
	}
	os.Exit(run(app, os.Args[1:]))
}

// identify gives a build that was not told its version (make build tells it) that of its module, which
// `go build` and `go install` know, and the date of its commit.
func identify() {
	info, ok := debug.ReadBuildInfo()
	if !ok || version.Version != "" {
		return
	}
	version.Version = info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			version.BuildDate = s.Value
		}
	}
}

// run parses the arguments, does what they say and returns the exit status.
func run(app *kingpin.Application, args []string) int {
	_, err := app.Parse(args)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "oneway:", err)
	if _, failed := errors.AsType[failure](err); failed {
		return exitFailure
	}
	return exitUsage
}
