package responder

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/sched"
)

// Times of consent, see consent.
const (
	// consentLasts is for how long a hello is one, see consent.
	consentLasts = 3 * time.Second
	// pauseLasts is how long a stream waits for consent: with the silence before, as long
	// as the session outlasts.
	pauseLasts = control.Outage - consentLasts
	// proofLasts is how long an address that is silent stays proved: a NAT keeps its
	// mapping for no less (RFC 4787 REQ-5).
	proofLasts = 2 * time.Minute
	// refusals are so many errors that a port is closed, without a hello between them: one may be
	// forged, or left of another socket.
	refusals = 3
)

// consent is whether the client still receives a stream (stream.Consent). One that says hello
// while it receives has to go on with that, or with packets of a stream of its own, from the
// address that was proved. One that does not is there as long as its connection speaks, which
// a queue that the stream fills may keep silent.
type consent struct {
	s      *session
	before uint64        // hellos when the transfer began
	quiet  time.Duration // how long the connection of a client without hellos may be silent
	// unreachable is when it was last said that the network or the host is, by sched.Now.
	unreachable atomic.Int64
	paused      time.Duration // since then there is none; zero: there is. Of the looking goroutine
}

func (s *session) consent(t *control.Transfer) *consent {
	return &consent{s: s, before: s.hellos.Load(), quiet: min(max(consentLasts, control.Silence+t.Idle), control.Outage)}
}

// Given is stream.Consent's.
func (c *consent) Given() bool {
	if c.s.refused.Load() >= refusals {
		return false
	}
	gone, now := time.Duration(c.unreachable.Load()), sched.Now()
	silent, bears := c.silence(now)
	return silent <= bears && (gone == 0 || now-silent > gone)
}

// Unreachable is stream.Consent's. A closed port is one until a hello comes, all else may pass
// (RFC 1122 section 3.2.2.1). That a packet is too long says nothing of the receiver.
func (c *consent) Unreachable(err syscall.Errno) {
	switch err {
	case syscall.ECONNREFUSED, syscall.ENOPROTOOPT:
		c.s.refused.Add(1)
	case syscall.EMSGSIZE:
	default:
		c.unreachable.Store(int64(sched.Now()))
	}
}

// silence is for how long before now nothing has been heard that is consent, and for how long that may last.
func (c *consent) silence(now time.Duration) (silent, bears time.Duration) {
	if c.s.hellos.Load() >= c.before+2 {
		return c.s.unheard(now), consentLasts
	}
	return c.s.silent(now), c.quiet
}

// ended says why the stream that waited for consent is over.
func (c *consent) ended() error {
	to := *c.s.to.Load()
	if c.s.refused.Load() >= refusals {
		return fmt.Errorf("%v receives no more: its host says that the port is closed", to)
	}
	silent, _ := c.silence(sched.Now())
	return fmt.Errorf("%v receives no more: nothing was heard for %v", to, silent.Round(time.Second))
}

// heardFrom notes that the proved address is heard.
func (s *session) heardFrom() {
	s.hello.Store(int64(sched.Now()))
	s.refused.Store(0)
}

// unheard is how long before now the proved address was heard, at the most.
func (s *session) unheard(now time.Duration) time.Duration {
	ago := now - time.Duration(s.hello.Load())
	if ago <= consentLasts {
		return ago
	}
	if from, since, ok := s.stream.Streamed(); ok && from == *s.to.Load() {
		ago = min(ago, since)
	}
	return ago
}

// silent is how long before now the client was heard at all.
func (s *session) silent(now time.Duration) time.Duration {
	if s.gated == nil {
		return 0
	}
	return min(s.unheard(now), time.Since(time.Unix(0, s.gated.heard.Load())))
}

// look ends a stream that has waited for consent for too long, and the session whose client has
// vanished.
func (s *session) look(ctx context.Context, c *consent, cut context.CancelCauseFunc) {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		now := sched.Now()
		switch {
		case !c.waited(c.Given(), now):
		case s.silent(now) > pauseLasts:
			s.stop(errVanished)
			return
		default:
			cut(c.ended())
			return
		}
	}
}

// waited tells whether there has been no consent for as long as a stream waits.
func (c *consent) waited(given bool, now time.Duration) bool {
	switch {
	case given:
		c.paused = 0
	case c.paused == 0:
		c.paused = now
	}
	return c.paused != 0 && now-c.paused >= pauseLasts
}
