package main

import (
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/probes/tcpsweep"
)

const noTrace = "No TCP connection of a run of this path, probe and direction in this time range"

// rawTCPBoard shows the connections of a run sample by sample, and the cells of a buffer sweep.
func rawTCPBoard() *boardBuilder {
	b := rawBoard("TCP trace", rawTCPUID, "now-24h", "The TCP connections of a run sample by sample: bytes sent and acknowledged, congestion window, round-trip time, retransmissions, what limited the sender; and the cells of a buffer sweep. From InfluxDB.",
		toPage(page{tcpTitle, tcpUID, "TCP on this path over time"}, samePath),
		toPage(page{bufferSweepTitle, bufferSweepUID, "TCP on this path by buffer size, over time"}, samePath),
		toPage(page{fairnessTitle, fairnessUID, "How TCP flows share this path, over time"}, samePath),
		toPage(rawPacketsPage(), samePath), toPage(rawTrainsPage(), samePath), toPage(rawSizeSweepPage(), samePath))
	rawHostVariable(b, record.TCPTrace.Name)
	b.WithVariable(tagValues(metric.Path, "Path", record.TCPTrace.Name, onHost()...))
	// Probes of the type tcp come first: the page opens with a transfer and not with the first name, such as message.
	b.WithVariable(rawVariable(metric.Probe, "Probe", "SHOW TAG VALUES FROM "+ofRun(metric.TCPThroughput)+", "+name(record.TCPTrace.Name)+" WITH KEY = "+name(metric.Probe)+
		" WHERE "+strings.Join(append(onHost(), is(name(metric.Path), "$path")), " AND ")))
	b.WithVariable(directionVariable())
	b.WithVariable(idVariable(point.RunField, "Run", record.TCPTrace.Name))
	b.WithRow(dashboard.NewRowBuilder("Connections of the run, $direction"))
	b.WithPanel(traceBytes())
	b.WithPanel(traceRate())
	b.WithPanel(traceWindow())
	b.WithPanel(traceRTT())
	b.WithPanel(traceRetransmitted())
	b.WithPanel(traceLimits())
	b.WithPanel(byteDelays())
	b.WithPanel(dataOfRun())
	b.WithRow(dashboard.NewRowBuilder("Buffer sweep (probe tcp_sweep), $direction"))
	bufferCellTable(b)
	return b
}

// trace selects a field of one end of the run's connections, by connection.
func trace(end, alias, expr string, more ...string) influxQuery {
	return rawSeries(selection{
		columns: []string{expr}, from: name(record.TCPTrace.Name), by: []string{flow("flow")},
		where: append(inRun(is(name(metric.Direction), "$direction"), is(flow("end"), end)), more...),
	}.String(), alias+" $tag_flow")
}

// ofFlow matches the series of an alias.
func ofFlow(alias string) string { return "/^" + alias + " \\d+$/" }

// rawTrace is a plot in which each of the first connections has a color of its own, the same on all panels.
func rawTrace(t text, qs ...influxQuery) *timeseries.PanelBuilder {
	p := rawLines(t, qs...).Span(12).Height(9)
	for i, c := range []string{blue, orange, green, purple, red, yellow, "dark-blue", "dark-orange", "dark-green", "dark-purple"} {
		p.OverrideByRegexp("/ "+strconv.Itoa(i)+"$/", props{color(c)})
	}
	return p
}

func traceBytes() *timeseries.PanelBuilder {
	return rawTrace(text{
		"Bytes sent, acknowledged and read",
		"Payload bytes of each connection since its begin: sent with retransmissions, acknowledged (dotted; Linux tcp_info, tcpi_bytes_sent, tcpi_bytes_acked), and read by the application of the receiver (dashed; its clock begins with its own end). The distance of sent and acknowledged is outstanding, or was retransmitted.",
		"decbytes", noTrace,
	},
		trace(record.SenderEnd, "sent", flow("sent_bytes")), trace(record.SenderEnd, "acknowledged", flow("acked_bytes")), trace(record.ReceiverEnd, "read", flow("payload_bytes")),
	).OverrideByRegexp(ofFlow("read"), props{dashed()}).OverrideByRegexp(ofFlow("acknowledged"), props{dotted()})
}

func traceRate() *timeseries.PanelBuilder {
	return rawTrace(text{
		"Throughput by connection",
		"Payload that the receiver's application read per second, in intervals of 1 s of the clock; the first one is absent, and the last one is not complete.",
		inBits, noTrace,
	}, rawSeries(selection{
		columns: []string{"8 * NON_NEGATIVE_DERIVATIVE(LAST(" + flow("payload_bytes") + "), 1s)"},
		from:    name(record.TCPTrace.Name), by: []string{"time(1s)", flow("flow")}, fill: "none",
		where: inRun(is(name(metric.Direction), "$direction"), is(flow("end"), record.ReceiverEnd)),
	}.String(), "flow $tag_flow"))
}

// noSsthresh is Linux's value of a slow start threshold that is not set.
const noSsthresh = "2147483647"

func traceWindow() *timeseries.PanelBuilder {
	return rawTrace(text{
		"Congestion window",
		"Congestion window of the sender and slow start threshold (dashed; absent until the first reduction), in segments (Linux tcp_info, tcpi_snd_cwnd, tcpi_snd_ssthresh).",
		"none", noTrace,
	},
		trace(record.SenderEnd, "cwnd", flow("cwnd_segments")), trace(record.SenderEnd, "ssthresh", flow("ssthresh_segments"), flow("ssthresh_segments")+" < "+noSsthresh),
	).OverrideByRegexp(ofFlow("ssthresh"), props{dashed()}).Decimals(0).AxisLabel("segments")
}

func traceRTT() *timeseries.PanelBuilder {
	return rawTrace(text{
		"Round-trip time",
		"Smoothed round-trip time of the sender, and its mean deviation (dashed) (RFC 6298; Linux tcp_info, tcpi_rtt, tcpi_rttvar).",
		"s", noTrace,
	},
		trace(record.SenderEnd, "RTT", flow("rtt_seconds"), flow("rtt_seconds")+" > 0"), trace(record.SenderEnd, "deviation", flow("rttvar_seconds"), flow("rtt_seconds")+" > 0"),
	).OverrideByRegexp(ofFlow("deviation"), props{dashed()})
}

func traceRetransmitted() *timeseries.PanelBuilder {
	return rawTrace(text{
		"Retransmitted, outstanding, waiting",
		"Bytes retransmitted since the begin of the connection, bytes outstanding (dashed: sent and not acknowledged, not lost), and bytes that wait in the send buffer (dotted) (Linux tcp_info, tcpi_bytes_retrans, tcpi_unacked, tcpi_notsent_bytes).",
		"decbytes", noTrace,
	},
		trace(record.SenderEnd, "retransmitted", flow("retransmitted_bytes")), trace(record.SenderEnd, "outstanding", flow("outstanding_bytes")), trace(record.SenderEnd, "waiting", flow("not_sent_bytes")),
	).
		OverrideByRegexp(ofFlow("retransmitted"), props{prop("custom.lineWidth", 2)}).
		OverrideByRegexp(ofFlow("outstanding"), props{dashed()}).
		OverrideByRegexp(ofFlow("waiting"), props{dotted()})
}

// traceLimits shows shares of time: the derivative of counters in seconds.
func traceLimits() *timeseries.PanelBuilder {
	share := func(alias, field string) influxQuery {
		return rawSeries(selection{
			columns: []string{"NON_NEGATIVE_DERIVATIVE(LAST(" + field + "), 1s)"},
			from:    name(record.TCPTrace.Name), by: []string{"time(1s)", flow("flow")}, fill: "none",
			where: inRun(is(name(metric.Direction), "$direction"), is(flow("end"), record.SenderEnd)),
		}.String(), alias+" $tag_flow")
	}
	return rawTrace(text{
		"What limited the sender",
		"Share of each second in which the connection had data to send (busy), and in which the receive window (orange) or the send buffer (purple) stopped it; the rest of busy is the network (the first second is absent, the last one not complete; Linux tcp_info, tcpi_busy_time, tcpi_rwnd_limited, tcpi_sndbuf_limited).",
		"percentunit", noTrace,
	}, share("busy", flow("busy_seconds")), share("receive window", flow("receive_window_limited_seconds")), share("send buffer", flow("send_buffer_limited_seconds"))).
		Max(1).
		OverrideByRegexp(ofFlow("busy"), props{color(gray)}).
		OverrideByRegexp(ofFlow("receive window"), props{color(orange), prop("custom.fillOpacity", 15)}).
		OverrideByRegexp(ofFlow("send buffer"), props{color(purple), prop("custom.fillOpacity", 15)})
}

// byteDelays shows the sampled bytes one by one.
func byteDelays() *timeseries.PanelBuilder {
	of := func(alias, field, again string) influxQuery {
		return rawSeries(selection{
			columns: []string{field}, from: name(record.TCPBytes.Name),
			where: inRun(is(name(metric.Direction), "$direction"), tcpByte("retransmitted")+" = "+again),
		}.String(), alias)
	}
	return rawLines(text{
		"Delay of TCP data, byte by byte",
		"One-way delay of each sampled byte of all connections, at the time at which it was sent (kernel timestamps of both ends), and the error bound of each delay. Red: bytes that were retransmitted, from the first departure to the arrival. Bytes without a certain delay are absent; the page TCP counts them by reason.",
		"s", noTrace + ", or no stamps or no synchronized clock",
	},
		of("delay", tcpByte("delay_seconds"), "0"), of("recovery", tcpByte("delay_seconds"), "1"), of("± bound", tcpByte("delay_error_bound_seconds"), "0"),
	).Span(24).Height(9).
		OverrideByName("delay", append(points(), color(blue))).
		OverrideByName("recovery", append(points(), color(red), prop("custom.pointSize", 6))).
		OverrideByName("± bound", append(points(), color(gray), prop("custom.pointSize", 2)))
}

// dataOfRun shows what the timestamps of the stream say about the run.
func dataOfRun() *tablepanel.PanelBuilder {
	value := func(title string, d *metric.Desc, rank string) cell {
		return cell{title: title, expr: fieldOf(d, rank), unit: "s"}
	}
	return rawCells(text{
		"TCP data of the run, $direction",
		"One-way delay of the bytes of the transfers (kernel timestamps at both ends, of bytes sent once) with the error bound of each quantile, queue of the sending host, time from the first departure of retransmitted bytes to their arrival, share of compressed ACKs, and whether a device on the path splits connections: a dash if the run cannot tell.",
		"none", "No completed run of the probe tcp with stamps and this ID",
	}, selection{from: ofRun(metric.TCPDelayQuantile), where: inRun(is(name(metric.Direction), "$direction"))},
		value("delay", metric.TCPDelayQuantile, "0.5"), value("± bound", metric.TCPDelayQuantileBound, "0.5"),
		value("5 %", metric.TCPDelayQuantile, "0.05"), value("± bound of 5 %", metric.TCPDelayQuantileBound, "0.05"),
		value("95 %", metric.TCPDelayQuantile, "0.95"), value("± bound of 95 %", metric.TCPDelayQuantileBound, "0.95"),
		value("99 %", metric.TCPDelayQuantile, "0.99"), value("± bound of 99 %", metric.TCPDelayQuantileBound, "0.99"),
		value("host queue 95 %", metric.TCPHostQueue, "0.95"), value("recovery", metric.TCPRecovery, "0.5"),
		cell{title: "compressed ACKs", expr: fieldOf(metric.TCPAckCompressed, ""), unit: "percentunit", own: props{prop("custom.minWidth", 110)}},
		cell{title: "split TCP", expr: fieldOf(metric.TCPSplit, ""), own: props{
			prop("decimals", 0), prop("custom.cellOptions", map[string]string{"type": "color-text"}),
			prop("mappings", []any{values(map[string]dashboard.ValueMappingResult{"0": word("no", green, 0), "1": word("yes", orange, 1)})[0], noNumber()}),
		}},
		value("early ACK by", metric.TCPSplitLead, ""),
	).Height(5)
}

// bufferCellTable shows the results of one run of a buffer sweep.
func bufferCellTable(b *boardBuilder) {
	size := props{prop("unit", "bytes"), prop("decimals", 1), prop("noValue", "auto"), prop("custom.align", "right")}
	rate := func(title, rank string) cell {
		return cell{title: title, expr: "8 * " + fieldOf(tcpsweep.ThroughputDesc, rank), unit: inBits, own: props{prop("decimals", 2)}}
	}
	rtt := func(title, rank string) cell {
		return cell{title: title, expr: fieldOf(tcpsweep.RTTDesc, rank), unit: "s"}
	}
	b.WithPanel(rawCells(text{
		"Cells of the buffer sweep, $direction",
		"Each combination of send buffer, receive buffer and congestion control of this run (auto: auto-tuning): quartiles of the throughput of its repetitions, quartiles of the sender's smoothed round-trip time, retransmitted share.",
		"none", "No completed run of the probe tcp_sweep with this ID",
	}, selection{from: ofRun(tcpsweep.ThroughputDesc), where: inRun(is(name(metric.Direction), "$direction"))},
		cell{title: "algorithm", expr: name(congestionControl)},
		cell{title: "send", expr: name(sendBuffer), own: size, text: true},
		cell{title: "receive", expr: name(receiveBuffer), own: size, text: true},
		rate("throughput", "0.5"), rate("25 %", "0.25"), rate("75 %", "0.75"),
		rtt("RTT", "0.5"), rtt("RTT 25 %", "0.25"), rtt("RTT 75 %", "0.75"),
		cell{title: "retransmitted", expr: fieldOf(tcpsweep.RetransmittedDesc, ""), unit: "percentunit", own: props{prop("decimals", 2)}},
	).Height(7).WithTransformation(numberOf("receive")).WithTransformation(sortedBy("receive")).
		WithTransformation(numberOf("send")).WithTransformation(sortedBy("send")).WithTransformation(sortedBy("algorithm")))
}
