package metric

// Traffic Class, a byte of the IP header: DSCP and ECN.
var (
	DSCP = Family(Desc{
		Name: "oneway_dscp", Kind: Gauge, Labels: perDirection, Source: "RFC 2474 section 3",
		Help:   "DSCP (0 to 63) with which the last packet arrived. Forward: as our reflector reports it, with each eighth reply.",
		Absent: "Until the first reply; forward, with a foreign reflector, or where test packets are too small for a Receipt.",
	})
	DSCPRemarked = Family(Desc{
		Name: "oneway_dscp_remarked_packets_total", Kind: Counter, Labels: perDirection, Source: "RFC 2474 section 3",
		Help:   "Packets that arrived with another DSCP than they were sent with. Reverse: our reflector sends with the DSCP that it received, and packets around a change of that are not counted.",
		Absent: "Until the first; with a foreign reflector.",
	})
	CongestionExperienced = Family(Desc{
		Name: "oneway_ecn_ce_packets_total", Kind: Counter, Labels: perDirection, Source: "RFC 3168 section 5",
		Help:   "Packets that arrived with the ECN codepoint Congestion Experienced. Test packets are not ECN-capable: a router that marks them violates RFC 3168, or rewrites the whole byte.",
		Absent: "Until the first.",
	})
)
