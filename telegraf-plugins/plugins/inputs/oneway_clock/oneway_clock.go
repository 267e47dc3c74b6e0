//go:generate go run ../../../internal/readme . Clock "Pulse and receiver"

// Package oneway_clock is Telegraf's input plugin oneway_clock: the error bound of this host's clock, its pulse per second, and
// its GNSS receiver with position and speed.
package oneway_clock

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/influxdata/telegraf"
	telegrafconfig "github.com/influxdata/telegraf/config"
	"github.com/influxdata/telegraf/plugins/inputs"
	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/output/collect"

	"oneway.example/telegraf-plugins/internal/embedded"
	"oneway.example/telegraf-plugins/internal/feed"
	"oneway.example/telegraf-plugins/internal/logs"
)

//go:embed sample.conf
var sampleConfig string

// Clock is the plugin.
type Clock struct {
	Interval telegrafconfig.Duration `toml:"interval"`
	// Clock is the section clock of the agent's configuration.
	Clock map[string]any `toml:"clock"`

	Log telegraf.Logger `toml:"-"`

	agent   *embedded.Agent
	stop    context.CancelFunc
	running sync.WaitGroup
	failed  chan error
}

// New makes a plugin with the default options.
func New() *Clock {
	return &Clock{Interval: telegrafconfig.Duration(collect.DefaultOptions().Interval), failed: make(chan error, 1)}
}

func init() { inputs.Add("oneway_clock", func() telegraf.Input { return New() }) } //nolint:gochecknoinits // Telegraf's plugins register themselves

// SampleConfig is a configuration with all options.
func (*Clock) SampleConfig() string { return sampleConfig }

// Init checks the options.
func (c *Clock) Init() (err error) {
	collected := collect.Options{Interval: time.Duration(c.Interval)}
	if err := collected.Check(); err != nil {
		return err
	}
	c.agent, err = embedded.New(embedded.Options{
		Agent:   agent.Options{ConfigFile: "inputs.oneway_clock", Load: c.load},
		Collect: collected,
		Wanted:  wanted,
		Log:     logs.Slog(c.Log),
	})
	return keysOnly(err)
}

// wanted leaves out the measurements of the agent itself: beside inputs.oneway or an agent with its own output they would have
// the tags and times of theirs, and a store keeps one of two such points.
func wanted(measurement string) bool { return !strings.HasPrefix(measurement, "oneway_agent") }

// load is the configuration of an agent that has only a clock. Errors have the key, but no line: the text is made here.
func (c *Clock) load(file string) (*config.Config, error) {
	section := c.Clock
	if section == nil {
		section = map[string]any{}
	}
	text, err := yaml.Marshal(map[string]any{"clock": section})
	if err != nil {
		return nil, err
	}
	return config.Parse(file, text)
}

// Start begins to watch the clock.
func (c *Clock) Start(acc telegraf.Accumulator) error {
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	to := feed.Start(acc)
	c.running.Go(func() {
		if err := c.agent.Run(ctx, to); err != nil {
			c.failed <- err
		}
		to.Close()
	})
	return nil
}

// Failed passes the error after which nothing can be measured.
func (c *Clock) Failed() <-chan error { return c.failed }

// Gather does nothing: the plugin has its own interval, and passes positions when the receiver reports them.
func (*Clock) Gather(telegraf.Accumulator) error { return nil }

// Stop ends the plugin, with nothing left running.
func (c *Clock) Stop() {
	c.stop()
	c.running.Wait()
}

// keysOnly replaces the errors of a generated file by errors of its keys.
func keysOnly(err error) error {
	found, ok := errors.AsType[config.Problems](err)
	if !ok {
		return err
	}
	var all []error
	for _, p := range found {
		all = append(all, errors.New(p.Key+" "+p.Text))
	}
	return errors.Join(all...)
}
