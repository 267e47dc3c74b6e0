//go:generate go run ../../../internal/readme .

// Package oneway is Telegraf's input plugin oneway: one-way delay, loss, throughput and queues of network paths, measured by an
// agent inside of the plugin or read from a running agent.
package oneway

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/influxdata/telegraf"
	"github.com/influxdata/telegraf/config"
	"github.com/influxdata/telegraf/plugins/common/tls"
	"github.com/influxdata/telegraf/plugins/inputs"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/output/collect"

	"oneway.example/telegraf-plugins/internal/embedded"
	"oneway.example/telegraf-plugins/internal/feed"
	"oneway.example/telegraf-plugins/internal/logs"
)

//go:embed sample.conf
var sampleConfig string

// DefaultConfigFile is the configuration of the agent inside of the plugin.
const DefaultConfigFile = "/etc/oneway/oneway.yml"

// Oneway is the plugin.
type Oneway struct {
	ConfigFile   string          `toml:"config_file"`
	URL          string          `toml:"url"`
	Username     string          `toml:"username"`
	PasswordFile string          `toml:"password_file"`
	Interval     config.Duration `toml:"interval"`
	Timeout      config.Duration `toml:"timeout"`
	FirstRows    config.Duration `toml:"first_rows"`
	MaxRows      int             `toml:"max_rows"`
	TestSocket   string          `toml:"test_socket"`
	tls.ClientConfig

	Log telegraf.Logger `toml:"-"`

	source  source
	reload  func() error
	stop    context.CancelFunc
	running sync.WaitGroup
	failed  chan error
}

// source delivers points until its context ends.
type source interface {
	Run(ctx context.Context, to *feed.Feed) error
}

// New makes a plugin with the default options.
func New() *Oneway {
	c := collect.DefaultOptions()
	return &Oneway{
		Interval: config.Duration(c.Interval), Timeout: config.Duration(5 * time.Second),
		FirstRows: config.Duration(c.FirstRows), MaxRows: c.MaxRows, failed: make(chan error, 1),
	}
}

func init() { inputs.Add("oneway", func() telegraf.Input { return New() }) } //nolint:gochecknoinits // Telegraf's plugins register themselves

// SampleConfig is a configuration with all options.
func (*Oneway) SampleConfig() string { return sampleConfig }

// Init checks the options and, without a URL, the configuration of the agent.
func (o *Oneway) Init() error {
	collected := collect.Options{Interval: time.Duration(o.Interval), FirstRows: time.Duration(o.FirstRows), MaxRows: o.MaxRows}
	if err := collected.Check(); err != nil {
		return err
	}
	switch {
	case o.URL != "" && o.ConfigFile != "":
		return errors.New("config_file and url exclude each other")
	case o.Timeout <= 0:
		return fmt.Errorf("timeout is %v; it must be above 0s", time.Duration(o.Timeout))
	}
	if o.URL != "" {
		a, err := newAttached(o)
		o.source = a
		return err
	}
	file := o.ConfigFile
	if file == "" {
		file = DefaultConfigFile
	}
	a, err := embedded.New(embedded.Options{
		Agent:   agent.Options{ConfigFile: file, Socket: o.TestSocket},
		Collect: collected,
		Log:     logs.Slog(o.Log),
	})
	if err != nil {
		return err
	}
	o.source, o.reload = a, a.Reload
	return nil
}

// Start begins to measure, or to read the agent.
func (o *Oneway) Start(acc telegraf.Accumulator) error {
	if a, ok := o.source.(*attached); ok {
		a.onError = acc.AddError
	}
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	to := feed.Start(acc)
	o.running.Go(func() {
		if err := o.source.Run(ctx, to); err != nil {
			o.failed <- err
		}
		to.Close()
	})
	return nil
}

// Failed passes the error after which nothing can be measured.
func (o *Oneway) Failed() <-chan error { return o.failed }

// Reload reads the configuration of the agent again.
func (o *Oneway) Reload() {
	if o.reload != nil {
		_ = o.reload() // the agent logs the error
	}
}

// Gather does nothing: the plugin has its own interval, and passes raw samples when they are measured.
func (*Oneway) Gather(telegraf.Accumulator) error { return nil }

// Stop ends the plugin, with nothing left running.
func (o *Oneway) Stop() {
	o.stop()
	o.running.Wait()
}
