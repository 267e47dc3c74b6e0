package ledger

import (
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
)

// TrafficClass has what the Traffic Class byte shows of the routers of one direction: DSCP (RFC 2474) and ECN (RFC 3168).
type TrafficClass struct {
	// DSCP is the code point of the last packet for which it is known.
	DSCP Optional[uint8]
	// Remarked packets were received with another DSCP than they were sent with, CE with the codepoint CE.
	Remarked, CE uint64
}

// lastHostBlock has the counts of the last host block of our reflector.
type lastHostBlock struct {
	remarked, ce uint16
	// other counts the replies since then that have another DSCP than the block, with which the reflector sends.
	other uint32
}

// congestionExperienced is the ECN codepoint of RFC 3168 section 5.
const congestionExperienced = 3

// countTrafficClass counts a reply.
func (a *Account) countTrafficClass(in *tstamp.In) {
	m, sent := &a.TrafficClass[sample.Reverse], a.TrafficClass[sample.Forward].DSCP
	m.DSCP = Optional[uint8]{in.DSCP, true}
	if sent.Known && sent.Value != in.DSCP {
		a.lastHostBlock.other++
	}
	if in.ECN == congestionExperienced {
		m.CE++
	}
}

// takeHostBlock takes the counts of the requests from a host block of our reflector. It replies with the DSCP that it
// receives: the replies since the last host block were sent with the DSCP of both blocks; if they differ it is not known,
// and no reply counts as remarked.
func (a *Account) takeHostBlock(rc *stampfmt.Receipt) {
	m, dscp := &a.TrafficClass[sample.Forward], rc.TrafficClass>>2
	if m.DSCP.Known && m.DSCP.Value == dscp {
		a.TrafficClass[sample.Reverse].Remarked += uint64(a.lastHostBlock.other)
	}
	m.DSCP = Optional[uint8]{dscp, true}
	m.Remarked += uint64((rc.Remarked - a.lastHostBlock.remarked) % stampfmt.CountModulus)
	m.CE += uint64((rc.CE - a.lastHostBlock.ce) % stampfmt.CountModulus)
	a.lastHostBlock = lastHostBlock{remarked: rc.Remarked, ce: rc.CE}
}
