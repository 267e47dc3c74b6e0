package tcp

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/exporter/probe/report"
)

var _ loadtest.Drawn = (*Result)(nil)

// maxDrawn is the most flows of a drawing; of more, the first are drawn.
const maxDrawn = 4

// rateStep is the step of the throughput of the first seconds.
const rateStep = 100 * time.Millisecond

// scope is a part of the time of a direction.
type scope struct {
	title string
	until int64 // ns
}

// Drawings of each direction, of the first seconds and of the whole time: bytes, windows, RTT, throughput and buffers
// (Woo 2010 figures 6.4 to 6.11; Halepovic 2008 figures 10 to 12).
func (r *Result) Drawings() (all []report.Drawing) {
	for _, d := range r.Directions {
		flows := d.Flows[:min(len(d.Flows), maxDrawn)]
		if len(flows) == 0 {
			continue
		}
		of := ""
		if len(flows) < len(d.Flows) {
			of = fmt.Sprintf(", first %d of %d flows", len(flows), len(d.Flows))
		}
		first := scope{fmt.Sprintf("%s, first %.0f s", of, traceFor.Seconds()), int64(traceFor)}
		whole := scope{of + ", whole run", latest(flows)}
		rates := drawRates(flows, first.until)
		rates.Title = "throughput" + first.title
		own := []report.Drawing{d.drawPerSecond(), rates}
		for _, draw := range []func([]Flow, int64) report.Drawing{drawRTT, drawWindows, drawBytes, drawBuffers} {
			for _, s := range []scope{first, whole} {
				one := draw(flows, s.until)
				one.Title += s.title
				own = append(own, one)
			}
		}
		own = append(own, shares("share of samples by round-trip time"+of, drawRTT(flows, whole.until)))
		all = append(all, report.Toward(d.Direction, append(own, d.drawStamps()...)...)...)
	}
	if r.TwoWay != nil {
		all = append(all, r.TwoWay.draw())
	}
	return all
}

// draw draws the throughput of both directions in the time of the long one.
func (x *TwoWay) draw() report.Drawing {
	var series []report.Series
	for _, p := range x.Directions {
		series = append(series, perSecond(p.Direction, p.PerSecond))
	}
	return over("both directions: throughput by second", "throughput", unit.BytesPerSecond, series)
}

// perSecond has the rates of seconds as steps.
func perSecond(name string, rates []float64) report.Series {
	s := report.Series{Name: name, Form: report.AsSteps}
	for i, rate := range rates {
		s.Add(float64(i), rate)
	}
	if n := len(rates); n > 0 {
		s.Add(float64(n), rates[n-1])
	}
	return s
}

// latest is the time of the last sample.
func latest(flows []Flow) (at int64) {
	for i := range flows {
		for _, samples := range [][]tcptraffic.Row{flows[i].SenderRows, flows[i].ReceiverRows} {
			if n := len(samples); n > 0 {
				at = max(at, samples[n-1][0])
			}
		}
	}
	return at
}

// column is the index of a column in a row; the first one is the time.
func column(name string) int { return record.TCPTrace.Column(name) }

// quantity is a column as it is drawn.
type quantity struct {
	name, column string
	receiver     bool
	factor       float64
}

// drawn has the series of quantities of each flow, up to a time.
func drawn(flows []Flow, until int64, quantities ...quantity) (all []report.Series) {
	for _, q := range quantities {
		for i := range flows {
			s := report.Series{Name: q.name + named(flows, i), Form: report.AsLine}
			samples, of := flows[i].SenderRows, column(q.column)
			if q.receiver {
				samples = flows[i].ReceiverRows
			}
			for _, one := range samples {
				if q.column == "ssthresh_segments" && one[of] >= tcpsocket.Unlimited || q.column == "rtt_ns" && one[of] == 0 {
					continue // not known yet
				}
				if one[0] <= until {
					s.Add(seconds(one[0]), float64(one[of])*q.factor)
				}
			}
			all = append(all, s)
		}
	}
	return all
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// named tells the flow of a series, if there are several.
func named(flows []Flow, i int) string {
	switch from := flows[i].SenderEnd; {
	case len(flows) == 1:
		return ""
	case from == nil:
		return fmt.Sprintf(" %d", i+1)
	default:
		return fmt.Sprintf(" %d (%s)", i+1, from.CongestionControl)
	}
}

// over is a drawing by the time of the transfer.
func over(title, name string, measured unit.Unit, series []report.Series) report.Drawing {
	return report.Drawing{
		Title: title, X: report.Axis{Name: "time", Unit: unit.Seconds}, Y: report.Axis{Name: name, Unit: measured}, Series: series,
	}
}

// drawBytes draws the sent bytes, of one flow also those that were acknowledged and that the application has read.
func drawBytes(flows []Flow, until int64) report.Drawing {
	quantities := []quantity{{"acknowledged", "acked_bytes", false, 1}}
	if len(flows) == 1 {
		quantities = []quantity{{"sent", "sent_bytes", false, 1}, quantities[0], {"received", "payload_bytes", true, 1}}
	}
	return over("bytes", "bytes", unit.Bytes, drawn(flows, until, quantities...))
}

// drawWindows draws the congestion window with the samples in which bytes had been sent again, of one flow also the
// threshold and the outstanding bytes.
func drawWindows(flows []Flow, until int64) report.Drawing {
	var series, marked []report.Series
	for i := range flows {
		f := &flows[i]
		if f.SenderEnd == nil {
			continue
		}
		mss := float64(f.MSS)
		quantities := []quantity{{"cwnd", "cwnd_segments", false, mss}}
		if len(flows) == 1 {
			quantities = append(quantities, quantity{"ssthresh", "ssthresh_segments", false, mss}, quantity{"outstanding", "outstanding_bytes", false, 1})
		}
		marks, retransmitted, cwnd := report.Series{Form: report.AsMarks}, column("retransmitted_bytes"), column("cwnd_segments")
		var before, again int64
		for _, one := range f.SenderRows {
			if n := one[retransmitted]; one[0] <= until && n > before {
				marks.Add(seconds(one[0]), mss*float64(one[cwnd]))
				before, again = n, n
			}
		}
		marks.Name = fmt.Sprintf("retransmitted (%s)", unit.Bytes.Format(float64(again)))
		marks.Name += named(flows, i)
		marked = append(marked, marks)
		own := drawn(flows[i:i+1], until, quantities...)
		for k := range own {
			own[k].Name += named(flows, i)
		}
		series = append(series, own...)
	}
	return over("congestion window", "bytes", unit.Bytes, append(series, marked...))
}

// drawRTT draws the smoothed round-trip time.
func drawRTT(flows []Flow, until int64) report.Drawing {
	return over("round-trip time", "smoothed RTT", unit.Seconds, drawn(flows, until, quantity{"RTT", "rtt_ns", false, 1e-9}))
}

// shares draws the distribution of the values of another drawing.
func shares(title string, of report.Drawing) report.Drawing {
	one := report.Drawing{Title: title, X: of.Y, Y: report.Axis{Name: "samples", Unit: unit.Ratio}}
	for _, s := range of.Series {
		one.Series = append(one.Series, report.Distribution(s.Name, s.Y, len(s.Y)))
	}
	return one
}

// drawBuffers draws the kernel's buffers at both ends, which grow with auto-tuning, of one flow also the bytes in
// flight. Buffers count the kernel's own memory too.
func drawBuffers(flows []Flow, until int64) report.Drawing {
	quantities := []quantity{{"send buffer", "send_buffer_bytes", false, 1}, {"receive buffer", "receive_buffer_bytes", true, 1}}
	if len(flows) == 1 {
		quantities = append(quantities, quantity{"outstanding", "outstanding_bytes", false, 1}, quantity{"not sent", "not_sent_bytes", false, 1})
	}
	return over("buffers", "bytes", unit.Bytes, drawn(flows, until, quantities...))
}

// drawRates draws the throughput of each flow over steps of rateStep.
func drawRates(flows []Flow, until int64) report.Drawing {
	var series []report.Series
	for i := range flows {
		s := report.Series{Name: "received" + named(flows, i), Form: report.AsSteps}
		var from tcptraffic.Row
		rate, payload := 0.0, column("payload_bytes")
		for k, one := range flows[i].ReceiverRows {
			if one[0] > until {
				break
			}
			if past := one[0] - from[0]; k > 0 && past >= int64(rateStep) {
				rate = float64(one[payload]-from[payload]) / seconds(past)
				s.Add(seconds(from[0]), rate)
				from = one
			}
		}
		if len(s.X) > 0 {
			s.Add(seconds(from[0]), rate)
		}
		series = append(series, s)
	}
	return over("", "throughput", unit.BytesPerSecond, series)
}

// drawPerSecond draws the throughput of all flows by second since the first arrival, with its mean and the configured rate
// of the link.
func (d *Direction) drawPerSecond() report.Drawing {
	s := perSecond("all flows", d.PerSecond)
	one := over("throughput by second", "throughput", unit.BytesPerSecond, []report.Series{s})
	for _, level := range []struct {
		name string
		rate *float64
	}{{"mean", d.Throughput}, {"rate of the link, headers included", d.LinkRate}} {
		if n := len(s.X); level.rate != nil && n > 0 {
			one.Series = append(one.Series, report.Series{Name: level.name, Form: report.AsLine, X: []float64{0, s.X[n-1]}, Y: []float64{*level.rate, *level.rate}})
		}
	}
	return one
}
