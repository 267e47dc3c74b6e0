package metric

// Hops.
var (
	Hops = Family(Desc{
		Name: "oneway_hops", Kind: Gauge, Labels: perDirection,
		Help:   "Routers on the path of the last packet: TTL (IPv4) or hop limit (IPv6) when sent minus the one when received. Forward: as the reflector reports it. Reverse, with a foreign reflector: its initial TTL is assumed to be the smallest possible of 64, 128 and 255.",
		Absent: "Until the first reply; forward, with a reflector that does not report the TTL or reports one above `ttl`.",
		Source: "RFC 8762 section 4.3.1; RFC 5357 sections 4.1.2 and 4.2.1",
	})
	HopChanges = Family(Desc{
		Name: "oneway_hop_changes_total", Kind: Counter, Labels: perDirection, Source: "RFC 8762 section 4.3.1",
		Help:   "Packets with another number of routers than the packet before them: the route changed, or packets take several routes.",
		Absent: "Where oneway_hops is absent.",
	})
)
