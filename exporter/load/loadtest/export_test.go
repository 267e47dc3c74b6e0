package loadtest

// Exactly makes the schedule one without random parts.
func (p *Prober) Exactly() { p.rng = nil }

// SetLessor sets the Lessor of the prober's runs.
func (p *Prober) SetLessor(l Lessor) { p.runner.lessor = l }

// LastRun returns the ID of the last completed run.
func (p *Prober) LastRun() string {
	p.status.mu.Lock()
	defer p.status.mu.Unlock()
	return p.status.done.ID
}
