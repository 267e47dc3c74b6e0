package agent

import "fmt"

// Health is a summary of the state of a probe, or of another part of the agent. For parts without replies Up is running, and
// Impaired needs attention or is under test.
type Health string

// The values of Health.
const (
	// Up: replies are received, and loss and delay of a path are within its limits.
	Up Health = "up"
	// Impaired: replies are received, but some quantities cannot be measured, so that the state of a path is unknown.
	Impaired Health = "impaired"
	// Degraded: loss or delay of a path is above its limit.
	Degraded Health = "degraded"
	// Down: no replies are received.
	Down Health = "down"
	// Starting: no result yet.
	Starting Health = "starting"
	// Failed: the prober does not run, or its load test failed.
	Failed Health = "failed"
)

// failed is the state of all that does not run, in words.
const failed = "failed, will be tried again"

// Disabled reports that one-way delays are not measured, by the configuration: that is no fault.
func (c ClockStatus) Disabled() bool { return c.Source == "none" }

// Brief is the state of the clock in a few words.
func (c ClockStatus) Brief() (h Health, words string) {
	switch {
	case c.Trusted:
		return Up, c.State
	case c.Disabled():
		return Starting, c.State
	}
	return Impaired, c.State
}

// listening is the state of a task that listens.
func listening(listens bool, words, fault string) (h Health, state string) {
	switch {
	case listens && fault != "":
		return Impaired, words + ", not on all addresses"
	case listens:
		return Up, words
	case fault != "":
		return Failed, failed
	}
	return Starting, "starting"
}

// Brief is the state of the reflector in a few words; nil: it is not configured.
func (r *ReflectorStatus) Brief() (h Health, words string) {
	if r == nil {
		return Starting, "not configured"
	}
	return listening(r.Listening, "running", r.Error)
}

// Brief is the state of the load server in a few words.
func (r *LoadServerStatus) Brief() (h Health, words string) {
	if r.Sessions > 0 {
		return Impaired, "under test"
	}
	return listening(r.Running, "ready", r.Error)
}

// Brief is the state of on-demand probes in a few words.
func (s *OnDemandStatus) Brief() (h Health, words string) {
	if s.Running > 0 {
		return Up, fmt.Sprintf("%d of %d running", s.Running, s.MaxConcurrent)
	}
	return Up, "ready"
}

// Brief is the state of the link in a few words.
func (l LinkStatus) Brief() (h Health, words string) {
	switch {
	case l.Holder != "":
		return Impaired, "under test"
	case l.UsedUp():
		return Starting, "quota used up"
	}
	return Up, "free"
}

// Brief is the state of the output in a few words.
func (o OutputStatus) Brief() (h Health, words string) {
	switch {
	case o.Error != "":
		return Failed, failed
	case o.Reason != "":
		return Impaired, "not delivering"
	case o.LastSuccess.IsZero():
		return Starting, "starting"
	}
	return Up, "delivering"
}

// Brief is the state of the configuration in a few words.
func (c ConfigStatus) Brief() (h Health, words string) {
	if c.Error != "" {
		return Impaired, "last reload failed"
	}
	return Up, "active"
}
