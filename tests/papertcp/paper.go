package main

import "oneway.example/exporter/core/sample"

// paperRetransmitted is the paper's share sent again, in percent, by buffer in KB (0: auto), in the order of variants: of the
// uplink Table 2, which has no row of 64 KB; of the downlink what the text says of figure 7, whose bars are in a plot only.
func paperRetransmitted(d sample.Direction, kib int64) string {
	if d == sample.Forward {
		return map[int64]string{8: "3.3  4.7  4.6  4.0", 16: "4.7  4.8  4.0  5.0", 32: "5.3  6.1  4.3  5.2", 0: "7.1  8.4  5.0  5.2"}[kib]
	}
	if kib == 0 {
		return "Cubic approaches 3, four times its 64 KB; New Reno and Veno more than twice theirs; Vegas least"
	}
	return "occasional up to 32 KB, then more"
}

// paperThroughput is what the text says of figures 4 (downlink) and 8 (uplink) about a buffer: the bars are in a plot only.
func paperThroughput(d sample.Direction, kib int64) string {
	switch {
	case d == sample.Reverse && kib > 0 && kib <= 32:
		return "window-limited, all variants similar"
	case d == sample.Reverse:
		return "full 1500, loss-limited; Vegas about 96 % of the others, 900 to 1500"
	case kib == 32:
		return "fills 256; Veno highest"
	case kib == 64:
		return "not measured"
	case kib == 0:
		return "Veno highest"
	}
	return "grows with the buffer"
}

// paperRTT is what the text says of figures 5 and 9.
func paperRTT(d sample.Direction) string {
	if d == sample.Forward {
		return "Figure 9: mean 200 to 300, least about 200, most nearly ten times that"
	}
	return "Figure 5: similar for all variants, least about 120"
}

// notes are what the paper's values depend on and this path does not have.
func notes() []string {
	return []string{
		"Path: 1.5 Mb/s down, 256 kb/s up, 120 ms round trip, in halves (an assumption; paper, section 3.1 and Table 1). Queues, drop-tail:",
		"40 KB down, 60 KB up, an assumption from where the paper's losses begin (profile wimax-calgary).",
		"No random loss: the paper's path lost 8 to 11 % of pchar's packets and 4.9 % of UDP at the uplink's rate, so that its uplink sends",
		"again with every buffer, and its least round trip there is 200 ms. Below the sizes that fill the queue these are not comparable.",
		"Kernel 6.1 here, 2.6.20 there: initial window of 10 segments, not 3; HyStart in Cubic, which the paper's overshoots without; RACK and",
		"tail loss probes. 32 KB here are 32 KB of payload, more than the path's 22.5 KB; there they limited the window still.",
		"The paper has the mean of 35 transfers of 60 s (downlink) or 16 (uplink), here each cell is one transfer. Its bars have no numbers.",
	}
}
