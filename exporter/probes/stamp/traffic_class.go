package stamp

import (
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
)

// trafficClass has what the Traffic Class byte shows of the routers of one direction: DSCP (RFC 2474) and ECN (RFC 3168).
type trafficClass struct {
	dscp         maybe[uint8] // of the last packet of which it is known
	remarked, ce uint64       // packets received with another DSCP than they were sent with, and with codepoint CE
}

// lastHostBlock has the counts of the last host block of our reflector.
type lastHostBlock struct {
	remarked, ce uint16
	// other counts the replies since then that have another DSCP than the block, with which the reflector sends.
	other uint64
}

// congestionExperienced is the ECN codepoint of RFC 3168 section 5.
const congestionExperienced = 3

// countTrafficClass counts a reply.
func (a *account) countTrafficClass(in *tstamp.In) {
	m, sent := &a.trafficClass[sample.Reverse], a.trafficClass[sample.Forward].dscp
	m.dscp = maybe[uint8]{in.DSCP, true}
	if sent.known && sent.value != in.DSCP {
		a.lastHostBlock.other++
	}
	if in.ECN == congestionExperienced {
		m.ce++
	}
}

// takeHostBlock takes the counts of the requests from a host block of our reflector. It replies with the DSCP that it
// receives: the replies since the last host block were sent with the DSCP of both blocks; if they differ it is not known,
// and no reply counts as remarked.
func (a *account) takeHostBlock(rc *stampfmt.Receipt) {
	m, dscp := &a.trafficClass[sample.Forward], rc.TrafficClass>>2
	if m.dscp.known && m.dscp.value == dscp {
		a.trafficClass[sample.Reverse].remarked += a.lastHostBlock.other
	}
	m.dscp = maybe[uint8]{dscp, true}
	m.remarked += uint64((rc.Remarked - a.lastHostBlock.remarked) % stampfmt.CountModulus)
	m.ce += uint64((rc.CE - a.lastHostBlock.ce) % stampfmt.CountModulus)
	a.lastHostBlock = lastHostBlock{remarked: rc.Remarked, ce: rc.CE}
}
