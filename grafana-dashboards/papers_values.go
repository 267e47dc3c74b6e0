package main

import (
	"strings"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/probes/message"
	"oneway.example/exporter/probes/tcpsweep"
)

// published is a value of a paper beside the value of a path.
type published struct {
	// figure is where the paper has it, quantity what it is, unit the paper's unit.
	figure, quantity, unit string
	// low and high are the least and the largest of the paper's values; of one value they are the same.
	low, high float64
	// here is the path's value in that unit, a query without labels.
	here string
	// why is why the paper's profile of the lab has another value than the paper; empty: it has the same.
	why string
}

// inUnit is the quantity with its unit: a column of its own would take the place of a value on a phone.
func (p published) inUnit() string {
	if p.unit == "" || strings.HasPrefix(p.quantity, p.unit+" ") || strings.Contains(p.quantity, " "+p.unit+" ") {
		return p.quantity
	}
	return p.quantity + ", in " + p.unit
}

// publishedBy are the values of a paper, in its order.
func publishedBy(short string) []published {
	switch short {
	case "Woo 2010":
		return wooValues()
	case "Halepovic 2008":
		return halepovicValues()
	case "D-ITG report":
		return ditgValues()
	case "WPI report":
		return wpiValues()
	}
	return nil
}

// inRange is the last value of a family of the path in the time range, the largest of several series.
func inRange(d *metric.Desc, matchers ...string) string {
	return "max(last_over_time(" + from(anyTest, d, matchers...) + dashboardRange + "))"
}

// Units of the papers.
func kilobits(expr string) string { return "8e-3 * " + expr }
func millis(expr string) string   { return "1e3 * " + expr }
func percent(expr string) string  { return "100 * " + expr }
func kilobytes(expr string) string {
	return "1e-3 * " + expr
}

// sweptCells selects cells of a buffer sweep by the size of the send buffer.
func sweptCells(d *metric.Desc, direction, bytes string, more ...string) string {
	return inRange(d, append([]string{direction, sendBuffer + `=~"` + bytes + `"`}, more...)...)
}

// roundTrips is a quantile of all round trips of the light probe over the time range.
func roundTrips(q string) string {
	// A quantile of a histogram may lie below the least value, by the width of a bucket.
	quantile := "(histogram_quantile(" + q + ", sum(increase(" + from(anyTest, metric.RoundTripTime) + dashboardRange + "))) or " +
		"histogram_quantile(" + q + ", sum by (le) (increase(" + recFrom(anyTest, metric.RoundTripTime.Name+"_bucket") + dashboardRange + "))))"
	least := leastRoundTrip()
	return millis("(" + quantile + " > " + least + " or " + least + " and " + quantile + ")")
}

func leastRoundTrip() string {
	return "min(min_over_time(" + from(anyTest, metric.RoundTripTimeMin) + dashboardRange + "))"
}

func meanRoundTrip() string {
	whole := func(suffix string) string {
		return "sum(increase(" + recFrom(anyTest, metric.RoundTripTime.Name+suffix) + dashboardRange + "))"
	}
	return millis("((histogram_sum(" + whole("") + ") / histogram_count(" + whole("") + ")) or " + whole("_sum") + " / " + whole("_count") + ")")
}

// lostShare is the loss of a direction over the time range.
func lostShare(direction string) string {
	counted := func(d *metric.Desc) string {
		return "sum(increase(" + from(anyTest, d, direction) + dashboardRange + "))"
	}
	return percent(counted(metric.PacketsLost) + " / (" + counted(metric.PacketsLost) + " + " + counted(metric.PacketsReceived) + " > 0)")
}

// wooValues are from the thesis; forward is up.
func wooValues() []published {
	least := func(direction string) string {
		return millis("min(min_over_time(" + from(anyTest, metric.DelayMin, direction) + dashboardRange + "))")
	}
	call := func(over string) string {
		return over + "_over_time(" + from(anyTest, metric.VoiceR, reverse, metric.CodecL+`="G.729"`) + dashboardRange + ")"
	}
	loaded := "sum(increase(" + from(anyTest, metric.LoadedDelay, reverse) + dashboardRange + "))"
	size := func(bytes string) string { return kilobits(sweptCells(tcpsweep.ThroughputDesc, reverse, bytes, half)) }
	return []published{
		{"Section 6.1.2", "least one-way delay at 4 kb/s, up", "ms", 25, 100, least(forward), ""},
		{"Section 6.1.2", "least one-way delay at 4 kb/s, down", "ms", 14, 14, least(reverse), ""},
		{"Section 6.1.3", "least one-way delay of full packets on the idle link, up", "ms", 30, 30, millis(inRange(metric.QueueIdleDelay, forward)), ""},
		{"Section 6.1.3", "least one-way delay of full packets on the idle link, down", "ms", 15, 15, millis(inRange(metric.QueueIdleDelay, reverse)), "the profile has one delay for all sizes, the 14 ms of section 6.1.2"},
		{"Figure 6.1 a", "throughput of the saturated link, up", "kb/s", 2500, 2500, kilobits(inRange(metric.UDPThroughput, forward)), ""},
		{"Figure 6.1 a", "throughput of the saturated link, down", "kb/s", 10000, 10000, kilobits(inRange(metric.UDPThroughput, reverse)), ""},
		{"Figure 6.1 c", "share of packets above 1 s, down (about half)", "%", 50, 50, percent("histogram_fraction(1, +Inf, " + loaded + ")"), "the queue of the profile is the one of table 6.1, 0.88 s: no packet waits longer"},
		{"Table 6.1", "least delay with a full queue, up, three days", "ms", 380, 417, millis(inRange(metric.QueueFullDelay, forward)), ""},
		{"Table 6.1", "least delay with a full queue, down, three days", "ms", 815, 961, millis(inRange(metric.QueueFullDelay, reverse)), ""},
		{"Table 6.1", "bandwidth, up, three days", "kb/s", 2628, 2876, kilobits(inRange(metric.UDPThroughput, forward)), "the profile has the rate of figure 6.1, 2.5 Mb/s"},
		{"Table 6.1", "bandwidth, down, three days", "kb/s", 9603, 10479, kilobits(inRange(metric.UDPThroughput, reverse)), ""},
		{"Table 6.1", "queue size, up, three days", "KB", 108, 111, kilobytes(inRange(metric.QueueSize, forward)), ""},
		{"Table 6.1", "queue size, down, three days", "KB", 1044, 1133, kilobytes(inRange(metric.QueueSize, reverse)), ""},
		{"Figure 6.3", "split TCP: 1 is yes, 0 is no", "", 0, 0, inRange(metric.TCPSplit), ""},
		{"Figure 6.7 a", "TCP, send buffer 17 KB, down (profile wibro-tcp)", "kb/s", 1000, 1500, size("17408"), "of profile wibro-tcp, 94 ms; over the 44 ms of wibro a buffer carries twice as much"},
		{"Figure 6.7 a", "TCP, send buffer 64 KB, down (profile wibro-tcp)", "kb/s", 5000, 5000, size("65536"), "of profile wibro-tcp, 94 ms; over the 44 ms of wibro a buffer carries twice as much"},
		{"Figure 6.7 a", "TCP, send buffer 128 KB, down (about)", "kb/s", 10000, 10000, size("131072"), ""},
		{"Figure 6.9", "TCP with auto-tuned buffers, down", "kb/s", 10400, 10400, kilobits(inRange(tcpsweep.ThroughputDesc, reverse, half, bothAuto)), "the profile has 10 Mb/s with the headers; the link was faster that day (table 6.1)"},
		{"Figure 6.11", "median one-way delay of TCP data, auto-tuned, down (about)", "ms", 400, 400, millis("histogram_quantile(0.5, sum(increase(" + from(anyTest, metric.TCPDelay, reverse) + dashboardRange + ")))"), "says how full the queue gets: by the buffers of the probe, and the length of its run"},
		{"Figure 8.8", "R of a good call with G.729, down", "R", 84.2, 84.2, "max(quantile_over_time(0.5, " + from(anyTest, metric.VoiceR, reverse, metric.CodecL+`="G.729"`) + dashboardRange + "))", "the thesis takes R = 94.2 - Ie; here " + plain(clearest()) + " - Ie, less Id of the delay from mouth to ear"},
		{"Figure 7.2 c", "least R with G.729 while others fill the queue, down", "R", 0, 40, "min(" + call("min") + ")", ""},
	}
}

// halepovicValues are from the paper on WiMAX; forward is up.
func halepovicValues() []published {
	part := func(direction, name string) string {
		return kilobits(inRange(metric.TCPTwoWayThroughput, direction, `part=~"`+name+`"`))
	}
	all := []published{
		{"Table 1", "hops of the path, down", "", 16, 16, inRange(metric.Hops, reverse), ""},
		{"Table 1", "hops of the path, up", "", 13, 14, inRange(metric.Hops, forward), ""},
		{"Table 1", "mean round-trip time", "ms", 107.3, 125, meanRoundTrip(), ""},
		{"Table 1", "bottleneck, down, by pchar", "kb/s", 385, 497, kilobits(inRange(metric.PathCapacity, reverse)), ""},
		{"Figure 2", "throughput of UDP at most, down", "kb/s", 1500, 1500, kilobits("(" + inRange(metric.SweepMaximum, reverse) + " or " + inRange(metric.UDPThroughput, reverse) + ")"), ""},
		{"Section 3.3", "throughput of UDP at most, up", "kb/s", 256, 256, kilobits("(" + inRange(metric.SweepMaximum, forward) + " or " + inRange(metric.UDPThroughput, forward) + ")"), ""},
		{"Figure 4", "TCP, buffer 64 KB, down", "kb/s", 1500, 1500, kilobits(sweptCells(tcpsweep.ThroughputDesc, reverse, "65536", half)), ""},
		{"Figure 5", "least round-trip time of TCP, down (about)", "ms", 120, 120, millis(inRange(metric.TCPRTTMin, reverse)), ""},
		{"Figure 7", "retransmission rate of Cubic, auto-tuned, down (approaches)", "%", 3, 3, percent(sweptCells(tcpsweep.RetransmittedDesc, reverse, "auto", congestionControl+`="cubic"`)), ""},
		{"Figure 9", "mean round-trip time of TCP, buffer 32 KB, up", "ms", 200, 300, millis(sweptCells(tcpsweep.RTTDesc, forward, "32768", half)), ""},
	}
	for _, variant := range []struct {
		name, title string
		rates       [4]float64
	}{
		{"reno", "New Reno", [4]float64{3.3, 4.7, 5.3, 7.1}},
		{"cubic", "Cubic", [4]float64{4.7, 4.8, 6.1, 8.4}},
		{"vegas", "Vegas", [4]float64{4.6, 4.0, 4.3, 5.0}},
		{"veno", "Veno", [4]float64{4.0, 5.0, 5.2, 5.2}},
	} {
		for i, size := range []struct{ title, bytes string }{{"8 KB", "8192"}, {"16 KB", "16384"}, {"32 KB", "32768"}, {"auto-tuned", "auto"}} {
			all = append(all, published{
				"Table 2", "retransmission rate of " + variant.title + ", " + size.title + ", up", "%", variant.rates[i], variant.rates[i],
				percent(sweptCells(tcpsweep.RetransmittedDesc, forward, size.bytes, congestionControl+`="`+variant.name+`"`)), "",
			})
		}
	}
	return append(all, []published{
		{"Figure 13", "Jain's index, 4 and 10 flows, down", "", 0.91, 1, inRange(metric.TCPFairness, reverse), ""},
		{"Figure 15", "TCP at the campus, each hour, down (below 1 Mb/s)", "kb/s", 0, 1000, kilobits(inRange(metric.TCPThroughput, reverse)), ""},
		{"Table 3", "TCP alone, down, residential", "kb/s", 1370, 1370, part(reverse, "before|after"), ""},
		{"Table 3", "TCP alone, up, residential", "kb/s", 240, 240, part(forward, "before|after"), ""},
		{"Table 3", "TCP during the overlap, down, residential", "kb/s", 1130, 1130, part(reverse, "during"), ""},
		{"Table 3", "TCP during the overlap, up, residential", "kb/s", 220, 220, part(forward, "during"), ""},
		{"Section 5.3", "correlation of both directions", "", -0.71, -0.71, inRange(metric.TCPTwoWayCorrelation), ""},
	}...)
}

// ditgValues are from the D-ITG report, whose text has limits; forward is from the sender to the receiver. Its delays are round trips, as an upper
// bound of the delay in one direction.
func ditgValues() []published {
	load := func(d *metric.Desc, rate string) string {
		return inRange(d, forward, metric.PacketRateL+`="`+rate+`"`)
	}
	const low, medium, high = "100", "1000", "10000"
	received := func(direction string) string { return kilobits(inRange(metric.SizeSweepReceived, direction)) }
	return []published{
		{"Figure 10", "round trip (here: one-way delay) of 1500 bytes through an access point, low load, at most", "ms", 0, 500, millis(load(metric.SizeSweepDelay, low)), ""},
		{"Figure 11", "round trip (here: one-way delay) through an access point, medium load, at most", "ms", 0, 900, millis(load(metric.SizeSweepDelay, medium)), ""},
		{"Figure 12", "round trip (here: one-way delay) of 128 bytes through an access point, high load, at most", "ms", 0, 800, millis(load(metric.SizeSweepDelay, high)), ""},
		{"Figure 13", "jitter, low load, at most", "ms", 0, 4, millis(load(metric.SizeSweepIPDV, low)), ""},
		{"Figure 14", "jitter, medium load, at most", "ms", 0, 8, millis(load(metric.SizeSweepIPDV, medium)), ""},
		{"Figure 15", "jitter, high load, at most", "ms", 0, 4, millis(load(metric.SizeSweepIPDV, high)), ""},
		{"Figure 16", "loss, low load, at most", "%", 0, 0.5, percent(load(metric.SizeSweepLoss, low)), ""},
		{"Figure 17", "loss, medium load, at most", "%", 0, 70, percent(load(metric.SizeSweepLoss, medium)), ""},
		{"Figure 18", "loss, high load, at most", "%", 0, 95, percent(load(metric.SizeSweepLoss, high)), ""},
		{"Figure 20 b", "received UDP over UMTS at most, up", "kb/s", 64, 64, received(forward), ""},
		{"Figure 20 d", "received TCP over UMTS at most, up", "kb/s", 90, 90, kilobits(inRange(message.ThroughputDesc, forward, `transport="tcp"`)), ""},
		{"Figure 24", "received TCP over UMTS at most, down", "kb/s", 160, 160, kilobits(inRange(message.ThroughputDesc, reverse, `transport="tcp"`)), ""},
		{"Figure 26 a", "mean jitter of 1500 bytes over UMTS at most, up", "ms", 340, 340, millis(inRange(metric.SizeSweepIPDV, forward)), ""},
		{"Figure 26 c", "mean jitter of 1500 bytes over GPRS at most, down", "ms", 810, 810, millis(inRange(metric.SizeSweepIPDV, reverse)), ""},
		{"Figure 33", "largest round trip of UDP, UMTS to GPRS", "ms", 21000, 21000, millis("max(max_over_time(" + from(anyTest, metric.RoundTripTimeMax) + dashboardRange + "))"), ""},
	}
}

// wpiValues are from the WPI report; reverse is down. Sizes are payloads there and IP packets here.
func wpiValues() []published {
	day := func(name string) past { return tested(dashboardRange, reverse, dayType+`="`+name+`"`) }
	most := func(name string) string {
		return kilobits("max(histogram_quantile(0.9, " + day(name).counts(metric.TCPRunThroughput, metric.Direction) + "))")
	}
	mean := func(name string) string {
		return kilobits("max(" + day(name).mean(rules.LongLast(metric.TCPThroughput), metric.Direction) + ")")
	}
	const weekday, weekend = "weekday", "weekend"
	all := []published{
		{"Figure 2", "90 % of the TCP runs at most, weekdays", "kb/s", 375, 375, most(weekday), ""},
		{"Figure 2", "90 % of the TCP runs at most, weekends", "kb/s", 384, 384, most(weekend), ""},
		{"Figure 4, 5", "least round trip", "ms", 160, 180, millis(leastRoundTrip()), ""},
		{"Figure 4, 5", "largest round trip of a run", "ms", 370, 1400, millis("max(max_over_time(" + from(anyTest, metric.RoundTripTimeMax) + dashboardRange + "))"), ""},
		{"Figure 6", "median round trip (about)", "ms", 180, 180, roundTrips("0.5"), ""},
		{"Figure 6", "90 % of the round trips at most", "ms", 220, 220, roundTrips("0.9"), ""},
		{"Figure 14", "mean TCP throughput, weekdays", "kb/s", 341, 341, mean(weekday), ""},
		{"Figure 14", "mean TCP throughput, weekends", "kb/s", 360, 360, mean(weekend), ""},
		{"Figure 14", "mean round trip", "ms", 197, 198, meanRoundTrip(), ""},
		{"Figure 14", "loss, down", "%", 0, 0, lostShare(reverse), ""},
	}
	for _, size := range []struct {
		payload, packet           string
		median, dispersion, fifth float64
	}{
		{"1472", "1500", 500, 24, 500},
		{"1200", "1228", 517, 19, 491},
		{"1000", "1028", 514, 16, 484},
		{"800", "828", 510, 13, 510},
	} {
		of := metric.PacketBytesL + `="` + size.packet + `"`
		all = append(all,
			published{"Figure 15", "median bandwidth by trains of " + size.payload + " bytes, down", "kb/s", size.median, size.median, kilobits(inRange(metric.Capacity, reverse, of, half)), ""},
			published{"Figure 15", "mean dispersion of " + size.payload + " bytes, down", "ms", size.dispersion, size.dispersion, millis(inRange(metric.TrainDispersion, reverse, of)), ""},
			published{"Figure 15", "5th percentile by trains of " + size.payload + " bytes, down", "kb/s", size.fifth, size.fifth, kilobits(inRange(metric.Capacity, reverse, of, least)), ""},
		)
	}
	return all
}
