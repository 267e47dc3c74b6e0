package main

// ditgFigures are the figures of the D-ITG report. Several have no caption in the text that is left of the report: what they show is from the text
// that refers to them.
func ditgFigures() []figure {
	const capacity, compare = "capacity.json", "compare.json"
	received, loss, delay, variation := onPage(capacity, "Received"), onPage(capacity, "Loss"), onPage(capacity, "Delay"), onPage(capacity, "Mean |IPDV|")
	messages := onPage("fairness.json", "UDP against TCP", "Messages, run by run, $direction")
	cells := onPage(compare, "Cells by size and rate, A and B, $direction")
	trace := joinPanels(onPage("raw_tcp.json", "Throughput by connection"), onPage("load.json", "Throughput in the last run"))
	rtt := onPage("trends.json", "Round trip", "Round trip, boxes")
	return []figure{
		unmeasured("Figure 1", "The set of service conditions", noMeasurement),
		unmeasured("Figure 2", "The test bed", noMeasurement),
		unmeasured("Figure 3", "Layout of the experiments with a mobile node", noMeasurement),
		measured("Table 1", "The parts of a service condition", onPage(compare, "Paths of A and B")),
		unmeasured("Table 2", "Legend of the network scenarios", noMeasurement),
		unmeasured("Table 3", "Devices of the test bed", noMeasurement),
		measured("Figure 4", "UDP throughput at both ends, low load", joinPanels(received, cells)),
		measured("Figure 5", "TCP throughput at both ends, low load", messages),
		measured("Figure 6", "UDP throughput at both ends, medium load", joinPanels(received, cells)),
		measured("Figure 7", "TCP throughput at both ends, medium load", messages),
		measured("Figure 8", "UDP throughput at both ends, high load", joinPanels(received, cells)),
		measured("Figure 9", "TCP throughput at both ends, high load", messages),
		partly("Figure 10", "UDP delay, low load", joinPanels(delay, cells), oneWayDelay),
		partly("Figure 11", "UDP delay, medium load", joinPanels(delay, cells), oneWayDelay),
		partly("Figure 12", "UDP delay, high load", joinPanels(delay, cells), oneWayDelay),
		partly("Figure 13", "UDP jitter, low load", joinPanels(variation, cells), otherJitter),
		partly("Figure 14", "UDP jitter, medium load", joinPanels(variation, cells), otherJitter),
		partly("Figure 15", "UDP jitter, high load", joinPanels(variation, cells), otherJitter),
		measured("Figure 16", "UDP packet loss, low load", joinPanels(loss, cells)),
		measured("Figure 17", "UDP packet loss, medium load", joinPanels(loss, cells)),
		measured("Figure 18", "UDP packet loss, high load", joinPanels(loss, cells)),
		measured("Table 4", "Service conditions of the wide area", onPage(compare, "Paths of A and B")),
		unmeasured("Figure 19", "Scenarios of the wide area", noMeasurement),
		unmeasured("Table 5", "Devices of the wide area", noMeasurement),
		measured("Table 6", "Packet sizes and generated rates", onPage("raw_size_sweep.json", "Cells of the size sweep")),
		measured("Figure 20", "Throughput at both ends, UMTS up, UDP and TCP", joinPanels(onPage("raw_size_sweep.json", "Received against sent, forward"), messages)),
		measured("Figure 21", "Generated rate against the wanted one", onPage(capacity, "Sender underrun")),
		measured("Figure 22", "TCP throughput over time, UMTS up", trace),
		measured("Figure 23", "UDP throughput over time, UMTS up", trace),
		measured("Figure 24", "TCP throughput at both ends, UMTS down", messages),
		measured("Figure 25", "TCP throughput over time, UMTS down", trace),
		partly("Figure 26", "Jitter by packet size", joinPanels(variation, cells), otherJitter),
		partly("Figure 27", "Jitter over time, by packet size", onPage("path.json", "Jitter and IPDV"), otherJitter),
		unmeasured("Figure 28", "Not named in the text", alike),
		unmeasured("Figure 29", "Not named in the text", alike),
		measured("Figure 30", "Packet loss by packet size", joinPanels(loss, cells)),
		measured("Figure 31", "Round-trip time of TCP, UMTS down, with and without Nagle's algorithm", joinPanels(onPage("tcp.json", "RTT under its own load, run by run"), messages[:1])),
		measured("Figure 32", "Round-trip time of TCP, UMTS up", onPage("tcp.json", "RTT under its own load, run by run")),
		measured("Figure 33", "Round-trip time of UDP, UMTS up", joinPanels(onPage("path.json", "Round-trip time"), rtt)),
		measured("Figure 34", "Round-trip time of TCP, UMTS up", onPage("tcp.json", "RTT under its own load, run by run")),
		measured("Figure 35", "Round-trip time over time, by packet size", joinPanels(onPage("raw_tcp.json", "Round-trip time"), onPage("path.json", "Round-trip time"))),
		measured("Figure 36", "Round-trip time of TCP over time, GPRS to UMTS", onPage("raw_tcp.json", "Round-trip time")),
	}
}
