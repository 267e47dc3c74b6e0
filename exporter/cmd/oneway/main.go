// Command oneway measures network paths continuously: one-way delay with its error bound, loss, delay variation and voice
// quality, in both directions.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/errtext"
)

// Exit statuses, common to all subcommands.
const (
	exitFailure = 1
	exitUsage   = 2
)

// usageError is an error of the user; the exit status is 2.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// failure is any other error of a subcommand; the exit status is 1. Errors of kingpin about the arguments are neither
// type and count as usage errors.
type failure struct{ error }

// Unwrap returns the cause.
func (e failure) Unwrap() error { return e.error }

// action makes a kingpin action from f and sorts its errors.
func action(f func() error) kingpin.Action {
	return func(*kingpin.ParseContext) error {
		err := f()
		if _, usage := errors.AsType[usageError](err); err == nil || usage {
			return err
		}
		return failure{err}
	}
}

// oneSignal is the time in which signals are one: `timeout -s INT` and process groups deliver one request to end twice.
const oneSignal = 100 * time.Millisecond

// interruptible is action with a context that Ctrl-C and SIGTERM cancel; one after oneSignal ends the program at once. The
// cause is the signal.
func interruptible(f func(context.Context) error) kingpin.Action {
	return action(func() error {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(signals)
		go func() {
			select {
			case s := <-signals:
				time.AfterFunc(oneSignal, func() { signal.Stop(signals) })
				cancel(signaled{s})
			case <-ctx.Done():
			}
		}()
		return f(ctx)
	})
}

// signaled is the end of a context by a signal.
type signaled struct{ signal os.Signal }

// Error is the name of the signal, such as SIGTERM.
func (s signaled) Error() string {
	number, _ := s.signal.(syscall.Signal) // on Linux all are
	return unix.SignalName(number)
}

func main() { os.Exit(run(application(), os.Args[1:])) }

// application has all commands and flags.
func application() *kingpin.Application {
	app := kingpin.New("oneway", "Measure network paths: one-way delay with its error bound, loss, delay variation, voice quality.").
		UsageWriter(helpWriter{os.Stdout})
	identify()
	app.Version(version.Print("oneway"))
	app.HelpFlag.Help("Show the help of the command.").Short('h')
	for _, register := range commands() {
		register(app)
	}
	shortHelp(app)
	nameFlagsInErrors(app)
	fitExamples(app, widthOf(os.Stdout))
	return app
}

// versionCommand adds the command that prints what the flag --version prints.
func versionCommand(app *kingpin.Application) {
	cmd := app.Command("version", "Print version and revision, as --version.")
	cmd.Action(action(func() error {
		_, err := fmt.Println(version.Print("oneway"))
		return err
	}))
}

// identify sets the version and date of a build without make: those of its module and commit, as `go build` and
// `go install` record them.
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

// run parses the arguments, runs the subcommand and returns the exit status.
func run(app *kingpin.Application, args []string) int {
	if len(args) == 0 {
		_ = overview(helpWriter{os.Stdout}, app.Model()) // an error ends the process
		return 0
	}
	args = withHelpFlag(args)
	err := lacking(args)
	if err == nil {
		_, err = app.Parse(withSummaryFlag(args))
	}
	if err == nil {
		return 0
	}
	newLiveLine(os.Stderr).say("oneway: %s", errtext.Words(explain(app, args, err)))
	if _, failed := errors.AsType[failure](err); failed {
		return exitFailure
	}
	return exitUsage
}

// withHelpFlag replaces the command help, which in kingpin takes a wrong name for a failure, without the names that exist.
func withHelpFlag(args []string) []string {
	if args[0] == "help" {
		return slices.Concat(args[1:], []string{"--help"})
	}
	return args
}
