package stamp

import (
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
)

// recordTo records each packet whose outcome is known to r.
func (e *estimator) recordTo(r *record.Recorder, path *probe.Target) {
	e.packets, e.path = r.Packets(), path
}

// record records an answered packet. The reply to a copy of one is only of the delays in reverse.
func (e *estimator) record(a *ledger.PendingReply, forward, reverse sample.Delay) {
	if e.collect == nil && !e.packets.HasListeners() {
		return
	}
	p := record.Packet{
		Path: e.path.Path, Probe: e.path.Probe, Era: a.Era, Restarts: e.restarts, Packet: a.Packet,
		Forward: forward, Reverse: reverse, TooLate: a.Lost,
	}
	if a.Expired {
		p.Outcome = record.Late
	}
	if a.Copy {
		p.TooLate[sample.Forward] = true // in no distribution
	}
	if e.collect != nil {
		e.collect.add(&p)
	}
	if !a.Copy {
		e.packets.Record(&p)
	}
}

// recordLost records a packet without a reply within the loss timeout.
func (e *estimator) recordLost(seq uint64, f *ledger.Outstanding) {
	if !e.packets.HasListeners() {
		return
	}
	p := record.Packet{Path: e.path.Path, Probe: e.path.Probe, Outcome: record.Lost, Era: e.era, Restarts: e.restarts}
	p.Seq, p.T1, p.Local = seq, f.SentAt(), f.Clock().Bound
	p.Forward.Reason, p.Reverse.Reason = sample.NoStamp, sample.NoStamp
	e.packets.Record(&p)
}

// collector gathers from the recorded packets what only a report contains: the delay variation since the last clock
// step, kept as delays. A constant clock offset does not change delays relative to the smallest.
type collector struct {
	era, restarts uint64
	variation     [2]delay.Variation
	ipdv, delays  [2]delay.Window
}

// newCollector returns a collector whose delay variation includes all packets that arrive within the waiting time.
func newCollector(o *Options) *collector {
	c := &collector{}
	for d := range c.variation {
		c.variation[d].Reach = o.reach()
		c.variation[d].Reserve()
	}
	return c
}

// received adds a number of packets that the receiver counted. The delays of those whose reply was lost are unknown.
func (c *collector) received(v ledger.Verdict) {
	if c != nil {
		c.delays[v.Direction].AddDecided(int(v.Losses.Received), 0)
	}
}

// overdue adds a packet that was received later than the loss timeout.
func (c *collector) overdue(v ledger.Verdict) {
	if c != nil {
		c.delays[v.Direction].AddOverdue()
	}
}

// spreads returns the delay variation of direction d. What packets without a known delay may change is limited as in reference.
func (c *collector) spreads(d sample.Direction, open delay.Open, reference delay.Snapshot) *spreads {
	all := c.delays[d].SnapshotOf(delay.Open{Waiting: open.Waiting, Undecided: open.Undecided})
	// An unknown packet has two neighbors at most, and n packets in a row have n-1 pairs.
	unknown := all.Unknown()
	packets, pairs := all.Count+unknown, c.ipdv[d].Snapshot().Count
	missing := min(2*unknown, packets-min(packets, pairs+1))
	ipdv := c.ipdv[d].SnapshotOf(delay.Open{Undecided: missing})
	return &spreads{ipdv: spreadLike(ipdv, reference, 0), pdv: spreadLike(all, reference, all.Min)}
}

// breakPairs compares no later packet with an earlier one.
func (c *collector) breakPairs() {
	for d := range c.variation {
		c.variation[d].Break()
	}
}

func (c *collector) add(p *record.Packet) {
	switch {
	case p.Era < c.era:
		return
	case p.Era > c.era:
		*c = collector{era: p.Era, restarts: p.Restarts, variation: c.variation}
		c.breakPairs()
	case p.Restarts != c.restarts:
		c.restarts = p.Restarts
		c.breakPairs()
	}
	seqs := [2]uint64{p.Seq, p.ReverseSeq}
	for d, v := range [2]sample.Delay{p.Forward, p.Reverse} {
		if !hasVariation(v, p.TooLate[d], p.Era, c.era) {
			if !p.TooLate[d] {
				c.delays[d].AddUndefined()
			}
			continue
		}
		c.delays[d].Add(plain(v.Value))
		ipdvs, n := c.variation[d].Add(seqs[d], v.Value)
		for _, ipdv := range ipdvs[:n] {
			c.ipdv[d].Add(plain(ipdv))
		}
	}
}
