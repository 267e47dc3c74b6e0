package metric

// Hops.
var (
	// Hops is oneway_hops.
	Hops = packetGroup.add(Desc{
		Name: "oneway_hops", Kind: Gauge, Labels: perDirection,
		Help:   "Routers that the last packet passed: the TTL (IPv4) or hop limit (IPv6) that it was sent with, less the one that it arrived with. Forward: as the reflector tells it. Reverse, with a foreign reflector: it is taken to send with the smallest of 64, 128 and 255 that is possible.",
		Absent: "Until the first reply; forward, with a reflector that does not tell the TTL, or one that is higher than `ttl`.",
		Source: "RFC 8762 section 4.3.1; RFC 5357 sections 4.1.2 and 4.2.1",
	})
	// HopChanges is oneway_hop_changes_total.
	HopChanges = packetGroup.add(Desc{
		Name: "oneway_hop_changes_total", Kind: Counter, Labels: perDirection, Source: "RFC 8762 section 4.3.1",
		Help:   "Packets that passed another number of routers than the packet before them: the route has changed, or packets take several.",
		Absent: "Where oneway_hops is.",
	})
)
