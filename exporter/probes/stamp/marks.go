package stamp

import (
	"oneway.example/exporter/metric"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/tstamp"
	wire "oneway.example/exporter/wire/stamp"
)

// marks are what the routers of one direction make of the DSCP and ECN fields (RFC 2474, RFC 3168).
type marks struct {
	dscp         maybe[uint8] // of the last packet of which it is known
	remarked, ce uint64
}

// toldMarks is the state between two host blocks of our reflector.
type toldMarks struct {
	remarked, ce uint16
	// other counts replies that arrived with another DSCP than the last host block has, with which the reflector
	// sends.
	other uint64
}

// congestionExperienced is the ECN codepoint of RFC 3168 section 5.
const congestionExperienced = 3

// countMarks takes those of a reply.
func (a *account) countMarks(in *tstamp.In) {
	m, sent := &a.marks[sample.Reverse], a.marks[sample.Forward].dscp
	m.dscp = maybe[uint8]{in.DSCP, true}
	if sent.known && sent.value != in.DSCP {
		a.told.other++
	}
	if in.ECN == congestionExperienced {
		m.ce++
	}
}

// takeMarks takes those of the requests, as our reflector tells them. It replies with the DSCP that it receives: the
// replies since the last host block were sent with the one of both blocks; if they differ that is not known, and no
// reply counts as remarked.
func (a *account) takeMarks(rc *wire.Receipt) {
	m, dscp := &a.marks[sample.Forward], rc.TrafficClass>>2
	if m.dscp.known && m.dscp.value == dscp {
		a.marks[sample.Reverse].remarked += a.told.other
	}
	m.dscp = maybe[uint8]{dscp, true}
	m.remarked += uint64((rc.Remarked - a.told.remarked) % wire.MarksModulus)
	m.ce += uint64((rc.CE - a.told.ce) % wire.MarksModulus)
	a.told = toldMarks{remarked: rc.Remarked, ce: rc.CE}
}

func (s *series) publishMarks(dir sample.Direction, m marks) {
	label := dir.String()
	s.setIf(&s.dscp[dir], metric.DSCP, float64(m.dscp.value), m.dscp.known, label)
	shown := &s.marks[dir]
	s.ifAny(metric.DSCPRemarked, m.remarked-shown.remarked, m.remarked, label)
	s.ifAny(metric.CongestionExperienced, m.ce-shown.ce, m.ce, label)
	*shown = m
}
