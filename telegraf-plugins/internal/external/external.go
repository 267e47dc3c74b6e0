// Package external runs one input as an external plugin of Telegraf (inputs.execd), by Telegraf's shim. Beyond the shim it
// refuses a configuration with unknown options, and ends although Telegraf does not read.
package external

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/influxdata/telegraf"
	"github.com/influxdata/telegraf/models"
	"github.com/influxdata/telegraf/plugins/common/shim"

	"oneway.example/exporter/core/errtext"
	"oneway.example/telegraf-plugins/internal/logs"
)

// Plugin is an input that runs as an external plugin.
type Plugin interface {
	telegraf.ServiceInput
	telegraf.Initializer
	// Failed passes the error after which the plugin cannot continue; the process ends then, and Telegraf starts it again.
	Failed() <-chan error
}

// Reloader is a Plugin that can read a configuration again, on SIGHUP.
type Reloader interface{ Reload() }

// stopLimit is the time for an end. Telegraf kills a plugin 5 s after its request to end.
const stopLimit = 4 * time.Second

// readLimit is the time in which Telegraf reads the last message of a process that ends.
const readLimit = 200 * time.Millisecond

// Main runs the input of a name until standard input or Telegraf's signal ends it, and returns the exit status.
func Main(name string, plugin Plugin, args []string) int {
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	file := flags.String("config", "", "file with [[inputs."+name+"]], outside of Telegraf's own configuration directories")
	poll := flags.Duration("poll_interval", 0, "how often to gather; 0s: on each line of standard input only")
	_ = flags.Bool("poll_interval_disabled", true, "the default: the plugin delivers on its own schedule")
	debug := flags.Bool("debug", false, "log more")
	sample := flags.Bool("sample_config", false, "print a configuration with all options, and end")
	switch err := flags.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "E! %s: unexpected argument %q\n", args[0], flags.Arg(0))
		return 2
	case *sample:
		fmt.Print(plugin.SampleConfig())
		return 0
	}
	level := telegraf.Info
	if *debug {
		level = telegraf.Debug
	}
	log := logs.New(os.Stderr, level)
	defer log.Close(time.Second)
	if err := run(name, plugin, *file, *poll, log); err != nil {
		for line := range strings.Lines(errtext.Words(err)) {
			log.Error(strings.TrimSpace(line))
		}
		log.Close(time.Second)
		// Telegraf closes the pipe of standard error when the process ends, also when it has not read the message yet.
		time.Sleep(readLimit) // nothing tells that Telegraf has read it
		return 1
	}
	return 0
}

func run(name string, plugin Plugin, file string, poll time.Duration, log *logs.Logger) error {
	if err := Load(name, plugin, file); err != nil {
		return err
	}
	models.SetLoggerOnPlugin(plugin, log)
	if err := plugin.Init(); err != nil {
		return located(name, file, err)
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // which would end the process otherwise
	go func() {
		for range hangup {
			if r, ok := plugin.(Reloader); ok {
				r.Reload()
			}
		}
	}()
	in := &input{plugin, log}
	s := shim.New()
	if err := s.AddInput(in); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(poll) }()
	select {
	case err := <-ended:
		return err
	case err := <-plugin.Failed():
		return err
	}
}

// input is the plugin as the shim runs it.
type input struct {
	telegraf.ServiceInput
	log *logs.Logger
}

// Start starts the plugin; its errors go to the log.
func (i *input) Start(acc telegraf.Accumulator) error {
	return i.ServiceInput.Start(accumulator{acc, i.log})
}

// Stop stops the plugin. If Telegraf does not read the last points, the process ends without having written them.
func (i *input) Stop() {
	time.AfterFunc(stopLimit, func() { os.Exit(1) })
	i.ServiceInput.Stop()
}

// accumulator writes errors as lines that Telegraf understands; those of the shim have a time before the level.
type accumulator struct {
	telegraf.Accumulator
	log *logs.Logger
}

// AddError logs err.
func (a accumulator) AddError(err error) {
	if err != nil {
		a.log.Error(errtext.Words(err))
	}
}
