package tcp

import (
	"fmt"
	"strings"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe/report"
)

var _ loadtest.Evident = (*Result)(nil)

// drawStamps draws the delay of TCP data over time and as a distribution (Woo 2010 figures 6.2 and 6.3), and the times between
// acknowledgments (Halepovic 2008 figure 18).
func (d *Direction) drawStamps() (all []report.Drawing) {
	if one := d.Delay; one != nil && len(one.Rows) > 0 {
		once, again := report.Series{Name: "sent once", Form: report.AsLine}, report.Series{Name: "retransmitted, until it arrived", Form: report.AsMarks}
		for _, r := range one.Rows {
			to := &once
			if r[5] != 0 {
				to = &again
			}
			to.Add(seconds(r[2]), seconds(r[3]))
		}
		series := []report.Series{once}
		if len(again.X) > 0 {
			series = append(series, again)
		}
		over := over("one-way delay of TCP data", "delay", unit.Seconds, series)
		share := shares("share of sampled bytes by one-way delay", over)
		all = append(all, over, share)
	}
	if a := d.Acks; a != nil {
		s := report.Series{Name: "ACKs that advanced", Form: report.AsSteps}
		for i, n := range a.Buckets[:len(a.Bounds)] {
			from := a.Bounds[0] / 10
			if i > 0 {
				from = a.Bounds[i-1]
			}
			s.Add(from, float64(n)/float64(a.Count))
		}
		if last, n := a.Bounds[len(a.Bounds)-1], a.Buckets[len(a.Bounds)]; n > 0 {
			s.Add(last, float64(n)/float64(a.Count))
			s.Add(2*last, 0) // the bucket has no upper bound, and its step needs a width
		} else {
			s.Add(last, 0)
		}
		all = append(all, report.Drawing{
			Title: "time between acknowledgments", X: report.Axis{Name: "time", Unit: unit.Seconds, Log: true},
			Y: report.Axis{Name: "acknowledgments", Unit: unit.Ratio}, Series: []report.Series{s},
		})
	}
	return all
}

// EvidenceLines tell what the verdict on split TCP is based on, as seen at each end.
func (r *Result) EvidenceLines() (lines []report.Line) {
	for _, d := range r.Directions {
		s := d.Split
		if s == nil {
			continue
		}
		add := func(quantity, value string) {
			if value != "" {
				lines = append(lines, report.Line{Quantity: quantity, Direction: d.Direction, Value: value})
			}
		}
		time := func(quantity string, seconds *float64) {
			if seconds != nil {
				lines = append(lines, report.Line{Quantity: quantity, Direction: d.Direction, Numbers: []report.Number{{Value: seconds, Unit: unit.Seconds}}})
			}
		}
		verdict := s.State
		if s.By+s.Reason != "" {
			verdict += ": " + s.By + s.Reason
		}
		add("split TCP", verdict)
		add("bytes acknowledged before they arrived", fmt.Sprintf("%d of %d that could have been", s.Early, s.Tested))
		time("largest lead of an acknowledgment", s.Lead)
		time("round trip of acknowledgments", s.AckRoundTrip)
		add("SYN that arrived", s.SYN)
		add("handshake at the client", s.Client.words())
		add("handshake at the server", s.Server.words())
		time("least round trip of TCP at the sender", s.TCPRoundTrip)
		time("least round trip of TCP at the receiver", s.ReceiverRoundTrip)
		time("round trip of UDP", s.UDPRoundTrip)
		if a := d.Acks; a != nil {
			add("times between ACKs", fmt.Sprintf("%d; %s are uncertain by more than a tenth, since the socket was in use", a.Count, unit.Ratio.Format(a.Uncertain)))
		}
	}
	return lines
}

// words are what an end knows; empty: nothing.
func (h *Handshake) words() string {
	if h == nil {
		return ""
	}
	var all []string
	if h.MSS != nil {
		all = append(all, fmt.Sprintf("MSS %d", *h.MSS))
	}
	if h.OwnScale != nil {
		all = append(all, fmt.Sprintf("window scale %d", *h.OwnScale))
	}
	if h.PeerScale != nil {
		all = append(all, fmt.Sprintf("peer's window scale %d", *h.PeerScale))
	}
	if h.TTL != nil {
		all = append(all, fmt.Sprintf("TTL %d", *h.TTL))
	}
	if h.TSval != nil {
		all = append(all, "TSval "+unit.Count.FormatBound(float64(*h.TSval), float64(*h.TSvalError)))
	} else if !h.Timestamps {
		all = append(all, "no timestamps")
	}
	return strings.Join(all, ", ")
}
