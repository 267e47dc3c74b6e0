package main

// wpiFigures are the figures of the WPI report.
func wpiFigures() []figure {
	const trends, capacity = "trends.json", "capacity.json"
	boxes := onPage(trends, "Round trip, boxes")
	byTime := joinPanels(onPage(capacity, "Capacity by time of day", "Capacity, run by run"), onPage(trends, "TCP throughput by hour of day", "Throughput of runs"))
	return []figure{
		unmeasured("Figure 1", "The test bed", noMeasurement),
		measured("Figure 2", "CDF of TCP throughput, weekday and weekend", onPage(trends, "TCP throughput CDF by kind of day")),
		measured("Figure 3", "TCP throughput by time of day", onPage(trends, "TCP throughput by hour of day", "Throughput of runs")),
		measured("Figure 4", "Least, mean and largest round trip by run, weekday", boxes),
		measured("Figure 5", "Least, mean and largest round trip by run, weekend", boxes),
		measured("Figure 6", "CCDF of round trips", joinPanels(onPage(trends, "Delay CCDF"), onPage("paper.json", comparedTitle("WPI report")))),
		measured("Figure 7", "CDF of the bandwidth by trains of 1200 bytes", onPage(capacity, "Trains, CDF by size, $direction", "Runs, distribution by size, $direction")),
		measured("Figure 8", "Bandwidth by trains and TCP by time of day, 800 bytes, weekday", byTime),
		measured("Figure 9", "The same, 800 bytes, weekend", byTime),
		measured("Figure 10", "The same, 1200 bytes, weekday", byTime),
		measured("Figure 11", "The same, 1200 bytes, weekend", byTime),
		measured("Figure 12", "The same, 1472 bytes, weekday", byTime),
		measured("Figure 13", "The same, 1472 bytes, weekend", byTime),
		measured("Figure 14", "Table: throughput, round trip and loss, weekday and weekend", joinPanels(onPage(trends, "Months, $direction"), onPage("paper.json", comparedTitle("WPI report")))),
		measured("Figure 15", "Table: bandwidth and dispersion by packet size", joinPanels(onPage(capacity, "Capacity and dispersion by size, $direction"), onPage("paper.json", comparedTitle("WPI report")))),
	}
}
