package main

// wooFigures are the figures of the thesis.
func wooFigures() []figure {
	const (
		path, load, tcp, sweep, raw, packets, clock, voice = "path.json", "load.json", "tcp.json", "buffer_sweep.json", "raw_tcp.json", "raw_packets.json", "clock.json", "voice.json"
	)
	quality := onPage(voice, "R, $codec", "Loss of the same windows", "Delay of the same windows")
	return []figure{
		unmeasured("Figure 3.1", "The test bed", noMeasurement),
		unmeasured("Figure 3.2", "Debug screen of the modem: CINR, RSSI, modulation", noRadio),
		partly("Figure 3.3", "Round-trip time by the hop", onPage(path, "Hops and their changes", "Round-trip time"), noHops),
		unmeasured("Figure 3.4", "Load of the wired link of another operator (MRTG)", noOtherLink),
		unmeasured("Figure 4.1", "The GPS device", noMeasurement),
		measured("Figure 4.2", "Filter of the pulses: TSC of each second, offset from the median", onPage(clock, "Pulse jitter", "Pulses rejected", "Offset by daemon and by pulses, $instance")),
		measured("Figure 4.3", "One-way delay of a LAN, both directions", joinPanels(onPage(path, "Delay forward", "Delay reverse"), onPage(clock, "Clock error bound and delays"))),
		partly("Figure 5.1", "Bandwidth and CINR over time", onPage(load, "Rate by the second, run by run"), noRadio),
		unmeasured("Figure 5.2", "Bandwidth against CINR", noRadio),
		measured("Figure 5.3", "One-way delay of a saturated link, down, over time", onPage(packets, "Delay, packet by packet, reverse")),
		measured("Figure 5.4", "One-way delay of TCP traffic, over time and as CDF", joinPanels(onPage(raw, "Delay of TCP data, byte by byte"), onPage(tcp, "Delay of TCP data reverse, run by run", "Delay of TCP data, CDF"))),
		measured("Figure 5.5", "Packets whose payload was overwritten", onPage(load, "Corrupted packets, by kind", "UDP checksum errors counted by the kernel")),
		measured("Figure 6.1 a", "Throughput per second of a saturated link", onPage(load, "Throughput in the last run")),
		measured("Figure 6.1 b", "One-way delay in the first 3 s", joinPanels(onPage(load, "First seconds forward", "First seconds reverse"), onPage(packets, "Delay, packet by packet, forward"))),
		measured("Figure 6.1 c", "CDF of the one-way delay of a saturated link", onPage(load, "Delay under load, CDF")),
		measured("Table 6.1", "Delay with a full queue, bandwidth and queue size", onPage(load, "Queue, last run")),
		measured("Figure 6.2", "How to find split TCP", onPage(tcp, "Evidence of split TCP, the last run")),
		measured("Figure 6.3", "One-way delay of ACKs (CDF): no split TCP", onPage(tcp, "Split TCP", "Evidence of split TCP, the last run")),
		measured("Figure 6.4", "Sequence numbers in slow start, up", onPage(raw, "Bytes sent, acknowledged and read")),
		measured("Figure 6.5", "Bandwidth by receive window, send buffer 17 KB", onPage(sweep, "Throughput by buffer size, $direction", "Cells, $direction")),
		measured("Figure 6.6", "Sequence numbers in slow start, down", onPage(raw, "Bytes sent, acknowledged and read")),
		measured("Figure 6.7 a", "TCP throughput by send and receive buffer", onPage(sweep, "Throughput by buffer size, $direction")),
		measured("Figure 6.7 b", "Median and quartiles of the round-trip time by buffer", onPage(sweep, "Round-trip time by buffer size, $direction")),
		unmeasured("Figure 6.8", "Settings of the experiments with auto-tuned buffers", noMeasurement),
		measured("Figure 6.9", "Bandwidth with auto-tuned buffers over time", joinPanels(onPage(raw, "Throughput by connection"), onPage(sweep, "Throughput by buffer size, $direction"))),
		measured("Figure 6.10", "Loss rate with auto-tuned buffers", joinPanels(onPage(raw, "Retransmitted, outstanding, waiting"), onPage(sweep, "Retransmitted by buffer size, $direction"))),
		measured("Figure 6.11", "One-way delay with auto-tuned buffers", onPage(raw, "Delay of TCP data, byte by byte")),
		partly("Figure 7.1", "R by CINR", quality[:1], noRadio),
		measured("Figure 7.2 a", "Loss rate of a call", quality[1:2]),
		measured("Figure 7.2 b", "One-way delay of a call", quality[2:3]),
		measured("Figure 7.2 c", "R of a call, aligned with loss and delay", quality),
		unmeasured("Table 7.1", "Places of the web measurements and their CINR", noRadio),
		unmeasured("Figure 7.3", "Loading time of web pages by CINR", noBrowser),
		unmeasured("Figure 7.4", "Loading time of web pages, WiBro and WiFi", noBrowser),
		unmeasured("Table 7.2", "Tags of a Flash video and their buffering time", noVideo),
		unmeasured("Table 7.3", "The videos of the experiments", noVideo),
		unmeasured("Table 7.4", "Largest buffering time of videos by CINR", noVideo),
		partly("Figure 8.1", "Map of the drive and its handoffs", onPage("raw_track.json", "Track, by speed", "Track, by delay, $direction"), noRadio),
		unmeasured("Figure 8.2", "CINR on the map", noRadio),
		unmeasured("Figure 8.3", "CDF of CINR", noRadio),
		partly("Figure 8.4", "UDP bandwidth down while driving", joinPanels(onPage(load, "Throughput, run by run"), onPage("raw_track.json", "Speed")), noRadio),
		partly("Figure 8.5", "UDP bandwidth up while driving", joinPanels(onPage(load, "Throughput, run by run"), onPage("raw_track.json", "Speed")), noRadio),
		partly("Figure 8.6", "TCP bandwidth down while driving", joinPanels(onPage(tcp, "TCP throughput, run by run"), onPage("raw_track.json", "Speed")), noRadio),
		partly("Figure 8.7", "TCP bandwidth up while driving", joinPanels(onPage(tcp, "TCP throughput, run by run"), onPage("raw_track.json", "Speed")), noRadio),
		partly("Figure 8.8", "R of a call while driving", joinPanels(quality[:1], onPage("raw_track.json", "Speed")), noRadio),
	}
}

// slidesFigures are the figures of the slides, by the titles of the slides.
func slidesFigures() []figure {
	const load, raw = "load.json", "raw_tcp.json"
	bySize := onPage("buffer_sweep.json", "Throughput by buffer size, $direction")
	return []figure{
		unmeasured("Experiment set-up", "The test bed", noMeasurement),
		partly("RTT by the hop", "Round-trip time by the hop, both directions", onPage("path.json", "Hops and their changes", "Round-trip time"), noHops),
		unmeasured("Architecture of our GPS system", "The GPS device", noMeasurement),
		measured("Clock synchronization in our GPS system", "Counter of the processor at each pulse", onPage("clock.json", "Offset by daemon and by pulses, $instance", "Pulse jitter")),
		measured("Minimum one-way delay", "Least delay, down and up", onPage("path.json", "Delay forward", "Delay reverse")),
		measured("Bandwidth and queuing delay of WiBro", "Throughput and delay of a saturated link", onPage(load, "Throughput in the last run", "First seconds forward", "First seconds reverse")),
		measured("Queue size of WiBro links", "Delay with a full queue times bandwidth", onPage(load, "Queue, last run")),
		measured("How does the buffer size affect TCP bandwidth", "TCP throughput down by buffer size", bySize),
		measured("Auto-tuned TCP socket buffer in Ubuntu", "Bandwidth of TCP and UDP over time", joinPanels(onPage(raw, "Throughput by connection"), bySize)),
		measured("One-way delay of downlink TCP traffic", "Delay of TCP over time", onPage(raw, "Delay of TCP data, byte by byte")),
		measured("Our contributions", "Bandwidth, least delay and queue size of both directions", joinPanels(onPage("paper.json", comparedTitle("Woo 2010")), onPage(load, "Queue, last run"))),
	}
}
