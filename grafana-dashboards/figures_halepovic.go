package main

// halepovicFigures are the figures of the paper on TCP over WiMAX.
func halepovicFigures() []figure {
	const load, tcp, sweep, raw, fair = "load.json", "tcp.json", "buffer_sweep.json", "raw_tcp.json", "fairness.json"
	rate, rtt, again := onPage(sweep, "Throughput by buffer size, $direction"), onPage(sweep, "Round-trip time by buffer size, $direction"), onPage(sweep, "Retransmitted by buffer size, $direction")
	window := onPage(raw, "Congestion window")
	models := joinPanels(onPage(sweep, "Models beside the throughput, $congestion_control $direction"), onPage(tcp, "Throughput and models, the last run"))
	return []figure{
		unmeasured("Figure 1", "The test bed", noMeasurement),
		partly("Table 1", "Hops, round-trip time, bottleneck and loss of the path (pchar), wired and wireless part", joinPanels(onPage("path.json", "Hops and their changes", "Round-trip time", "Loss"), onPage("capacity.json", "Capacity by packet size")), noHops),
		measured("Figure 2", "Throughput and loss by the sending rate of UDP", onPage(load, "Throughput against offered rate", "Loss against offered rate")),
		unmeasured("Figure 3", "UDP throughput by signal strength", noRadio),
		measured("Figure 4", "TCP throughput down by variant and buffer", rate),
		measured("Figure 5", "Round-trip time down by variant and buffer", rtt),
		measured("Figure 6", "Round-trip time within a connection", onPage(raw, "Round-trip time")),
		measured("Figure 7", "Retransmission rate down by variant and buffer", again),
		measured("Figure 8", "TCP throughput up by variant and buffer", rate),
		measured("Figure 9", "Round-trip time up by variant and buffer", rtt),
		measured("Table 2", "Retransmission rates up by variant and buffer", joinPanels(again, onPage("paper.json", comparedTitle("Halepovic 2008")))),
		measured("Figure 10", "Congestion window of Cubic over a cable modem", window),
		measured("Figure 11", "Congestion window of Cubic and New Reno, 64 KB", window),
		measured("Figure 12", "Congestion window of Cubic and New Reno, auto-tuned", joinPanels(window, onPage(raw, "Retransmitted, outstanding, waiting"))),
		measured("Figure 13", "Throughput of 4 and 10 connections, fairness", onPage(fair, "Jain's index, run by run", "Flows by congestion control, run by run, $direction")),
		measured("Figure 14", "Model of the throughput, residential", models),
		measured("Figure 15", "A minute of New Reno each hour for two weeks", onPage("trends.json", "Throughput of runs", "TCP throughput by hour of day")),
		measured("Figure 16", "Model of the throughput, campus", models),
		measured("Figure 17", "Throughput of both directions at once", onPage(fair, "Two-way, the last run", "Two-way, run by run")),
		measured("Figure 18", "Histogram of the time between ACKs", onPage(tcp, "ACK inter-arrival", "Compressed ACKs, run by run")),
		measured("Table 3", "Both directions before, during and after the overlap", joinPanels(onPage(fair, "Two-way, the last run", "Correlation of the directions, run by run"), onPage("paper.json", comparedTitle("Halepovic 2008")))),
	}
}
