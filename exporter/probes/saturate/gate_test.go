package saturate_test

import (
	"sync"

	"oneway.example/exporter/stream"
)

type plan = stream.Plan

// gate counts who is inside.
type gate struct {
	mu       sync.Mutex
	in, most int
}

func (g *gate) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.in++
	g.most = max(g.most, g.in)
}

func (g *gate) exit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.in--
}
