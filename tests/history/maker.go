package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/tests/history/blocks"
	"oneway.example/tests/history/scene"
	"oneway.example/tests/history/simagent"
)

// Days of a block, and the most days between two evaluations of the rules.
const (
	blockDays    = 30
	evaluateDays = 10
)

// scrapedAgent is a simulated agent with its scrapes.
type scrapedAgent struct {
	site  scene.Site
	agent *simagent.Agent
	*scraper
	since time.Time // the first day that is not evaluated yet
	days  int       // their number
}

// history makes the history of a scene.
type history struct {
	scene    *scene.Scene
	profile  metric.Profile
	to       *blocks.Writer
	lines    *lines // nil: no line protocol
	progress io.Writer
	agents   []*scrapedAgent
}

// make makes all blocks.
func (h *history) make() error {
	for _, site := range scene.Sites() {
		s, err := newScraper(site, h.to, h.lines)
		if err != nil {
			return err
		}
		agent, err := simagent.New(h.scene, site, h.profile, s)
		if err != nil {
			return err
		}
		if agent.Paths() > 0 {
			h.agents = append(h.agents, &scrapedAgent{site: site, agent: agent, scraper: s})
		}
	}
	began := time.Now()
	for begin := h.scene.Begin; begin.Before(h.scene.End); {
		end := begin.AddDate(0, 0, blockDays)
		last := !end.Before(h.scene.End)
		if last {
			end = h.scene.End
		}
		if err := h.block(begin, end, last); err != nil {
			return err
		}
		done := float64(end.Sub(h.scene.Begin)) / float64(h.scene.End.Sub(h.scene.Begin))
		fmt.Fprintf(h.progress, "%3.0f %%: until %s, %d samples, %.0f s\n", 100*done, end.Format(time.DateOnly), h.to.Samples(), time.Since(began).Seconds())
		begin = end
	}
	return nil
}

// block makes a block.
func (h *history) block(begin, end time.Time, last bool) error {
	until := end
	if last {
		until = end.Add(time.Hour) // the last full hours of zones with half-hours
	}
	if err := h.to.Begin(begin, until); err != nil {
		return err
	}
	for _, a := range h.agents {
		for day := begin; day.Before(end); day = day.AddDate(0, 0, 1) {
			if err := h.day(a, day); err != nil {
				return err
			}
		}
		if err := a.evaluate(false); err != nil {
			return err
		}
	}
	return h.to.End()
}

// day makes a day of an agent. A named day is evaluated by itself.
func (h *history) day(a *scrapedAgent, day time.Time) error {
	named := slices.ContainsFunc(h.scene.Named, day.Equal)
	if named || a.days == evaluateDays {
		if err := a.evaluate(false); err != nil {
			return err
		}
	}
	if a.days == 0 {
		a.since = day
	}
	a.days++
	if err := a.agent.Day(day); err != nil {
		return err
	}
	if named {
		return a.evaluate(true)
	}
	return nil
}

// evaluate evaluates the rules at the full hours of the days since the last call.
func (a *scrapedAgent) evaluate(named bool) error {
	if a.days == 0 {
		return nil
	}
	first := a.since.Add(a.agent.Phase() + time.Hour)
	last := a.since.Add(a.agent.Phase() + time.Duration(a.days)*24*time.Hour)
	a.days = 0
	return a.rules.Evaluate(first, last, named)
}
