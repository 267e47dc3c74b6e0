package influxql

import (
	"fmt"
	"math"

	"oneway.example/exporter/core/sample"
)

// check returns what is wrong with a result, or nothing.
type check func([]series) string

// expected are the results of statements by their source.
func expected() map[string]check {
	want := map[string]check{
		"raw_packets.json: variable run":     column(1, "run-0", "run-1"),
		"raw_packets.json: variable path":    column(1, "office", "other"),
		"raw_packets.json: variable probe":   column(1, "test"),
		"raw_packets.json: variable host":    column(1, "client"),
		"raw_tcp.json: variable run":         column(1, "run-0", "run-1"),
		"raw_incident.json: variable report": column(1, "report-0", "report-1"),
		"raw_track.json: variable path":      column(1, "office", "other"),
		"raw_track.json: Track, by speed A":  rows(positions, func(i int) []float64 { return []float64{37 + float64(i)/1000, 127 - float64(i)/1000, float64(i)} }),
		"raw_incident.json: Round-trip time A": rowsOf(incidents, false, func(i int) []float64 {
			return []float64{float64(delayAt(sample.Forward, i)+delayAt(sample.Reverse, i)) / 1e9}
		}),
		"raw_trains.json: Dispersion by packet size A": table(
			[]any{"400", 0.001}, []any{"800", 0.002}, []any{"1200", 0.003}),
		"raw_trains.json: Dispersion by packet size B": table(
			[]any{"400", 0.001001}, []any{"800", 0.002001}, []any{"1200", 0.003001}),
		"raw_packets.json: Steps of the rate sweep A": table(
			[]any{"forward", "400", 8000.0, 0.1}, []any{"forward", "800", 16000.0, 0.2}, []any{"forward", "1200", 24000.0, 0.3},
			[]any{"reverse", "400", 8008.0, 0.1}, []any{"reverse", "800", 16008.0, 0.2}, []any{"reverse", "1200", 24008.0, 0.3}),
		"raw_size_sweep.json: Cells of the size sweep A": table(sizeCells()...),
		"raw_trains.json: Trains by packet size A":       table(trainCells()...),
		"raw_tcp.json: Cells of the buffer sweep, $direction A": table(
			bufferCell("400", 1000, 0.01), bufferCell("800", 2000, 0.02), bufferCell("1200", 3000, 0.03)),
		"raw_tcp.json: Delay of TCP data, byte by byte A": rowsOf(packets, false, func(i int) []float64 { return []float64{float64(delayAt(sample.Forward, i)) / 1e9} }),
		"raw_tcp.json: Delay of TCP data, byte by byte B": rowsOf(packets, true, func(i int) []float64 { return []float64{float64(delayAt(sample.Forward, i)) / 1e9} }),
		"raw_tcp.json: Delay of TCP data, byte by byte C": rowsOf(packets, false, func(int) []float64 { return []float64{1e-4} }),
		"raw_tcp.json: TCP data of the run, $direction A": table([]any{1.0, 301.0, 0.0, 300.0, 2.0, 302.0, 3.0, 303.0, 102.0, 201.0, 1001.0, 1002.0, 1003.0}),
		// A derivative has no value for the first interval. Rates are checked as their sum.
		"raw_tcp.json: Throughput by connection A":              total(func(flow int) float64 { return 8 * float64((flowRows-1)*(flow+1)*1000) }, 0.26),
		"raw_tcp.json: What limited the sender A":               total(func(int) float64 { return float64(flowRows-1) * 0.1 }, 0.26),
		"raw_tcp.json: What limited the sender B":               total(func(flow int) float64 { return float64((flowRows-1)*(flow+1)) * 1e-3 }, 0.26),
		"raw_tcp.json: What limited the sender C":               total(func(flow int) float64 { return float64((flowRows-1)*(flow+1)) * 2e-3 }, 0.26),
		"raw_size_sweep.json: Received against sent, forward B": table([]any{8000.0, 8000.0}, []any{16000.0, 16000.0}, []any{24000.0, 24000.0}),
		"raw_trains.json: variable run":                         column(1, "run-0", "run-1"),
		"raw_size_sweep.json: variable run":                     column(1, "run-0", "run-1"),
		"raw_incident.json: Lost packets A":                     column(1, 10.0, 2.0),
	}
	addPackets(want)
	addFlows(want)
	return want
}

// addPackets adds the panels of packets, by direction.
func addPackets(want map[string]check) {
	for _, d := range []sample.Direction{sample.Forward, sample.Reverse} {
		delay := func(i int) float64 { return float64(delayAt(d, i)) / 1e9 }
		for panel, x := range map[string]func(i int) float64{
			"raw_packets.json: Delay, packet by packet, ": func(i int) float64 { return float64(i-idle) / 100 },
			"raw_trains.json: Delay by packet number, ":   func(i int) float64 { return float64(i) },
		} {
			want[panel+d.String()+" A"] = rowsOf(packets, false, func(i int) []float64 { return []float64{x(i), delay(i)} })
			want[panel+d.String()+" B"] = rowsOf(packets, true, func(i int) []float64 { return []float64{x(i), 0} })
		}
		want["raw_packets.json: variable load_"+d.String()] = column(1, float64(idle))
		want["raw_packets.json: variable begin_"+d.String()] = column(1, float64(idle)/100)
		source := "raw_incident.json: Delay " + d.String()
		want[source+" A"] = rowsOf(incidents, false, func(i int) []float64 { return []float64{delay(i) + 1e-4} })
		want[source+" B"] = rowsOf(incidents, false, func(i int) []float64 { return []float64{delay(i) - 1e-4} })
		want[source+" C"] = rowsOf(incidents, false, func(i int) []float64 { return []float64{delay(i)} })
		want[source+" D"] = rowsOf(incidents, true, func(int) []float64 { return []float64{0} })
	}
}

// addFlows adds the panels of connections.
func addFlows(want map[string]check) {
	flows := func(panel string, of func(n float64) float64) {
		want["raw_tcp.json: "+panel] = byFlow(func(flow, i int) float64 { return of(float64(i * (flow + 1))) })
	}
	flows("Bytes sent, acknowledged and read A", func(n float64) float64 { return n * 1100 })
	flows("Bytes sent, acknowledged and read B", func(n float64) float64 { return n * 900 })
	flows("Bytes sent, acknowledged and read C", func(n float64) float64 { return n * 1000 })
	flows("Congestion window A", func(n float64) float64 { return 10 + n })
	flows("Round-trip time A", func(n float64) float64 { return 0.04 + n/1000 })
	flows("Round-trip time B", func(float64) float64 { return 0.002 })
	flows("Retransmitted, outstanding, waiting A", func(n float64) float64 { return n * 10 })
	flows("Retransmitted, outstanding, waiting B", func(float64) float64 { return 5000 })
	flows("Retransmitted, outstanding, waiting C", func(float64) float64 { return 2000 })
}

func sizeCells() (all [][]any) {
	for i, direction := range []string{"forward", "reverse"} {
		for k, size := range []string{"400", "800", "1200"} {
			v := float64(1000*(k+1) + i)
			all = append(all, []any{direction, size, "50", 8 * v, 8 * v, v, v, v, v})
		}
	}
	return all
}

func trainCells() (all [][]any) {
	for i, direction := range []string{"forward", "reverse"} {
		for k, size := range []string{"400", "800", "1200"} {
			v := float64(1000*(k+1) + i)
			all = append(all, []any{direction, size, 8 * v, 8 * (v + 1), 8 * (v + 2), 80.0, v / 1e6})
		}
	}
	return all
}

func bufferCell(size string, rate, retransmitted float64) []any {
	return []any{"cubic", size, size, 8 * (rate + 1), 8 * rate, 8 * (rate + 2), 0.05, 0.04, 0.06, retransmitted}
}

func near(got any, want float64) bool {
	v, ok := got.(float64)
	return ok && math.Abs(v-want) <= 1e-9*max(1, math.Abs(want))
}

// column compares the values of one column, in any order.
func column(at int, want ...any) check {
	return func(got []series) string {
		left := map[any]int{}
		for _, v := range want {
			left[v]++
		}
		for _, s := range got {
			for _, row := range s.Values {
				left[row[at]]--
			}
		}
		for v, n := range left {
			if n != 0 {
				return fmt.Sprintf("want %v; %v has a difference of %d", want, v, n)
			}
		}
		return ""
	}
}

// rowsOf compares one series with the values of the packets that arrived, or of those that were lost.
func rowsOf(n int, lost bool, want func(i int) []float64) check {
	var of []int
	for i := range n {
		if lostAt(i) == lost {
			of = append(of, i)
		}
	}
	return rows(len(of), func(k int) []float64 { return want(of[k]) })
}

// rows compares the columns of one series after the time.
func rows(n int, want func(i int) []float64) check {
	return func(got []series) string {
		if len(got) != 1 || len(got[0].Values) != n {
			return fmt.Sprintf("want one series with %d rows", n)
		}
		for i, row := range got[0].Values {
			for k, w := range want(i) {
				if !near(row[k+1], w) {
					return fmt.Sprintf("row %d is %v, want %v", i, row, want(i))
				}
			}
		}
		return ""
	}
}

// table compares rows after the time, in any order: all have the time of the run.
func table(want ...[]any) check {
	same := func(got, want []any) bool {
		for k, w := range want {
			if v, number := w.(float64); number && !near(got[k+1], v) || !number && got[k+1] != w {
				return false
			}
		}
		return len(got) == len(want)+1
	}
	return func(got []series) string {
		if len(got) != 1 || len(got[0].Values) != len(want) {
			return fmt.Sprintf("want one series with %d rows", len(want))
		}
		for _, w := range want {
			found := 0
			for _, row := range got[0].Values {
				if same(row, w) {
					found++
				}
			}
			if found != 1 {
				return fmt.Sprintf("%d rows are %v", found, w)
			}
		}
		return ""
	}
}

// byFlow compares a series for each of the two connections.
func byFlow(want func(flow, i int) float64) check {
	return func(got []series) string {
		if len(got) != 2 {
			return fmt.Sprintf("%d series, want one for each connection", len(got))
		}
		for flow, s := range got {
			if s.Tags["flow"] != fmt.Sprint(flow) || len(s.Values) != flowRows {
				return fmt.Sprintf("connection %v has %d rows, want %d of connection %d", s.Tags, len(s.Values), flowRows, flow)
			}
			for i, row := range s.Values {
				if !near(row[1], want(flow, i)) {
					return fmt.Sprintf("connection %d, row %d is %v, want %v", flow, i, row, want(flow, i))
				}
			}
		}
		return ""
	}
}

// total compares the integral of rates per second in intervals of 1 s, which misses the first interval.
func total(want func(flow int) float64, share float64) check {
	return func(got []series) string {
		if len(got) != 2 {
			return fmt.Sprintf("%d series, want one for each connection", len(got))
		}
		for flow, s := range got {
			sum := 0.0
			for _, row := range s.Values {
				sum += row[1].(float64)
			}
			if w := want(flow); sum > w || sum < w*(1-share) {
				return fmt.Sprintf("connection %d: the sum is %g, want %g or up to %g less", flow, sum, w, w*share)
			}
		}
		return ""
	}
}
