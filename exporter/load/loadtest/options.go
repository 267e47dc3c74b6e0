package loadtest

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe/calendar"
	"oneway.example/exporter/probe/link"
)

// Options are the keys common to the runs of all load-test probes. Describe has their meanings, defaults and bounds.
type Options struct {
	Every   time.Duration     `yaml:"every"`
	Jitter  time.Duration     `yaml:"jitter"`
	Windows []calendar.Window `yaml:"windows"`
	Link    string            `yaml:"link"`
	MaxWait time.Duration     `yaml:"max_wait"`
	Timeout time.Duration     `yaml:"timeout"`
}

// LinkKey is the key of Options.Link, windowsKey of Options.Windows.
const (
	LinkKey    = "link"
	windowsKey = "windows"
)

// Describe returns the descriptions of the keys.
func (o *Options) Describe() []option.Description {
	return []option.Description{
		option.Number(&o.Every, 30*time.Minute, minEvery, maxEvery, "Time between runs.").FileOnly(),
		option.Number(&o.Jitter, 0, 0, maxEvery/calendar.JitterPart, "Range of the random shift of each run, earlier or later, so that agents that start together do not stay together; at most "+option.Part(calendar.JitterPart)+" of {every}.").FileOnly().
			Checked(func(key string) error {
				return option.Between(key, o.Jitter, 0, max(o.Every, minEvery)/calendar.JitterPart)
			}),
		option.Value(&o.Windows, nil, "Local times of the day in which runs may begin.").Unset("any time").WithExample(`["22:00-06:00", "mon-fri 09:00-17:00"]`).FileOnly(),
		option.Text(&o.Link, "Link that the test fills, by its name in the section links of the agent; one test at a time uses a link.").Unset(link.FilledDoc).
			UnsetFlag("the link of the agent's own test to that host, else the first of its path to it, else its only link, or without any " + link.NamelessDoc + "; where several links remain, the flag is required").
			WithExample("uplink").WithPlaceholder("NAME"),
		option.Number(&o.MaxWait, 5*time.Minute, 0, 24*time.Hour, "Longest wait of a due run for its link, here or at the remote end, while another test uses it."),
		option.Number(&o.Timeout, 0, 0, link.MaxHold, "Longest duration of a run.").Unset(fmt.Sprintf("%d times the planned duration plus %s", timeoutFactor, option.String(timeoutMargin))),
	}
}

// Limits of the options.
const (
	minEvery = 10 * time.Second
	maxEvery = 7 * 24 * time.Hour
)

// Without a configured timeout a run may take timeoutFactor times its planned duration, and timeoutMargin.
const (
	timeoutFactor = 2
	timeoutMargin = time.Minute
)
