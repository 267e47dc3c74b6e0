package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// share is the share of the sent segments that were sent again.
func (c counters) share() float64 {
	return float64(c.retransmitted) / float64(max(1, c.segments+c.retransmitted))
}

const (
	// windowOff is how far throughput may be from the mean outstanding bytes by the mean round trip, where nothing was
	// dropped: the kernel's round trip is smoothed over many acknowledgments, and few arrive on this path.
	windowOff = 0.15
	// control is the most segments that the sending end's control connection has in a cell, of which few are sent again.
	control, controlAgain = 80, 3
)

// faults compares a cell with the counters of the kernel and of the queue, which hold on any machine.
func (m *measured) faults(length time.Duration) (all []string) {
	fault := func(format string, args ...any) { all = append(all, m.name()+": "+fmt.Sprintf(format, args...)) }
	r := &m.result
	if r.Used != m.variant {
		fault("TCP reports the congestion control %q", r.Used)
	}
	window := r.Model("window")
	if r.Throughput == nil || r.RTT == nil || r.RTTMin == nil || r.Retransmitted == nil || window == nil {
		fault("throughput %v, RTT %v, least RTT %v, sent again %v, window by RTT %v; want all", r.Throughput, r.RTT, r.RTTMin, r.Retransmitted, window)
		return all
	}
	rate, most := r.Throughput[1], 1.02*ideal(m.link)
	if m.truth.dropped > 0 { // what waited behind a gap arrives at once
		most += float64(m.link.Queue) / (length - omitted(length)).Seconds()
	}
	if rate > most {
		fault("%.0f bytes/s; the link's rate allows %.0f", rate, most)
	}
	if allowed := float64(m.buffer) / *r.RTTMin; m.buffer > 0 && m.truth.dropped == 0 && rate > 1.05*allowed {
		fault("%.0f bytes/s; a buffer of %d bytes in %.1f ms allows %.0f", rate, m.buffer, 1e3**r.RTTMin, allowed)
	}
	if ratio := rate / *window; m.truth.dropped+m.truth.retransmitted == 0 && math.Abs(ratio-1) > windowOff {
		fault("%.0f bytes/s are %.2f of the outstanding bytes by the round trip", rate, ratio)
	}
	// After the last sample of a connection the kernel sends again what it lost last; oneway does not know of that.
	again, sent := float64(m.truth.retransmitted), float64(m.truth.segments+m.truth.retransmitted)
	low, high := max(0, again-controlAgain-0.25*again)/sent, (again+1)/max(1, sent-control)
	if share := *r.Retransmitted; share < low || share > high {
		fault("the share sent again is %.4f; by the kernel, with %.0f of %.0f segments, %.4f to %.4f", share, again, sent, low, high)
	}
	return all
}

// late compares a cell with what the path allows, if the machine has processors for both guests whenever they need one.
func (m *measured) late() (all []string) {
	fault := func(format string, args ...any) { all = append(all, m.name()+": "+fmt.Sprintf(format, args...)) }
	r := &m.result
	if r.Throughput == nil || r.RTT == nil {
		return nil // faults tells
	}
	least := 0.8 * ideal(m.link)
	if m.buffer > 0 {
		least = 0.6 * min(ideal(m.link), float64(m.buffer)/r.RTT[2])
	}
	if rate := r.Throughput[1]; rate < least {
		fault("%.0f bytes/s; want at least %.0f by the link's rate and the buffer", rate, least)
	}
	if off := m.truth.retransmitted - m.truth.dropped; max(off, -off) > max(controlAgain, m.truth.dropped/4) {
		fault("the queue dropped %d packets; the kernel sent %d again", m.truth.dropped, m.truth.retransmitted)
	}
	return all
}

// vegasQueuesLess checks that Vegas, which reacts to delay, has a shorter round trip than New Reno wherever New Reno fills
// the queue until it drops. It is of a quiet machine, as late is.
func vegasQueuesLess(all []measured) (faults []string) {
	for _, m := range all {
		reno := m.cell
		reno.variant = "reno"
		i := slices.IndexFunc(all, func(o measured) bool { return o.cell == reno })
		if m.variant != "vegas" || i < 0 || all[i].truth.dropped == 0 || m.result.RTT == nil || all[i].result.RTT == nil {
			continue
		}
		if v, r := m.result.RTT[1], all[i].result.RTT[1]; v >= r {
			faults = append(faults, fmt.Sprintf("%s: the median round trip is %.0f ms, with New Reno %.0f ms", m.name(), 1e3*v, 1e3*r))
		}
	}
	return faults
}
