package ppsfit

// chain is a run of pulses that agree with each other, but are not the fit (yet).
type chain struct {
	pulses [enough]Pulse
	n      int
	// strays counts the pulses that came meanwhile and did not agree.
	strays int
}

func (c *chain) clear() { c.n, c.strays = 0, 0 }

func (c *chain) start(p Pulse) {
	c.pulses[0] = p
	c.n, c.strays = 1, 0
}

func (c *chain) last() Pulse { return c.pulses[c.n-1] }

// add appends p; prune has made room.
func (c *chain) add(p Pulse) {
	c.pulses[c.n] = p
	c.n++
}

// prune drops the pulses before the last interval that does not agree, and reports
// whether there was none.
func (c *chain) prune(agrees func(a, b Pulse) bool) bool {
	for i := c.n - 1; i > 0; i-- {
		if !agrees(c.pulses[i-1], c.pulses[i]) {
			c.n = copy(c.pulses[:], c.pulses[i:c.n])
			return false
		}
	}
	return true
}
