//go:build !slim

package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"oneway.example/exporter/load/loadtest"
)

// silentTime is the time after which a terminal shows how far the reading of a store is.
const silentTime = 2 * time.Second

// readingInterval is the time between two states of the line.
const readingInterval = 500 * time.Millisecond

// reading shows on a terminal how far a command is that reads a store. The store may take minutes for one query, so that the line also
// changes without a step.
type reading struct {
	live      *liveLine
	begin     time.Time
	mu        sync.Mutex
	phase     string
	done, all int
	stop      chan struct{}
	stopped   sync.WaitGroup
}

// newReading begins with the line; end ends it.
func newReading(out io.Writer) *reading {
	r := &reading{live: newLiveLine(out), begin: time.Now(), phase: "reading the store", stop: make(chan struct{})}
	if r.live.width > 0 {
		r.stopped.Go(r.draw)
	}
	return r
}

func (r *reading) draw() {
	ticker := time.NewTicker(readingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-r.stop:
			r.live.clear()
			return
		case <-ticker.C:
			if since := time.Since(r.begin); since >= silentTime {
				r.live.show(r.line(since))
			}
		}
	}
}

// line is the state.
func (r *reading) line(since time.Duration) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	share := 0.0
	if r.all > 0 {
		share = float64(r.done) / float64(r.all)
	}
	return progressLine(loadtest.Progress{Phase: fmt.Sprintf("%s, %v so far", r.phase, since.Round(time.Second)), Share: share}, since, r.live.width)
}

// step is the state of a part of the work: so many of all.
func (r *reading) step(phase string) func(done, all int) {
	return func(done, all int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.phase, r.done, r.all = phase, done, all
	}
}

// end removes the line.
func (r *reading) end() {
	close(r.stop)
	r.stopped.Wait()
}
