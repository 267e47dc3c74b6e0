package tcp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/exporter/probe/report"
)

// traced is a transfer of some flows in which the window grows, with a loss at 2 s that ends the slow start.
func traced(flows int) *tcptraffic.Result {
	r := steady(flows, 1_000_000)
	for i := range r.Sender {
		f := &r.Sender[i]
		f.Final.MSS = 1448
		for k := range f.Samples {
			s := &f.Samples[k]
			s.Cwnd, s.Ssthresh, s.Acked = 10+int64(k), tcpsocket.Unlimited, int64(s.At)/1000
			s.Sent, s.Outstanding, s.SendBuffer = s.Acked+20_000, 20_000, 87_040+int64(k)*1000
			if s.At >= 2*time.Second {
				s.Ssthresh, s.Retransmitted = 50, 2896
			}
		}
		f.Samples[0].RTT = 0
		for k := range r.Receiver[i].Samples {
			r.Receiver[i].Samples[k].ReceiveBuffer = 131_072
		}
	}
	return r
}

func drawingsOf(t *testing.T, r *tcptraffic.Result) map[string]report.Drawing {
	t.Helper()
	all := map[string]report.Drawing{}
	for _, d := range (&Result{Directions: []*Direction{evaluated(r, time.Second)}}).Drawings() {
		d.Title = strings.TrimPrefix(d.Direction+": "+d.Title, ": ")
		if _, double := all[d.Title]; double {
			t.Errorf("two drawings are %q", d.Title)
		}
		all[d.Title] = d
	}
	return all
}

// series returns one of a drawing by its name.
func series(t *testing.T, d report.Drawing, name string) report.Series {
	t.Helper()
	i := slices.IndexFunc(d.Series, func(s report.Series) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("%q has no series %q", d.Title, name)
	}
	return d.Series[i]
}

func TestDrawingsOfAFlowHaveBothTimeScales(t *testing.T) {
	all := drawingsOf(t, traced(1))
	if len(all) != 11 {
		t.Errorf("%d drawings", len(all))
	}
	for title, names := range map[string]string{
		"bytes": "sent, acknowledged, received", "congestion window": "cwnd, ssthresh, outstanding, retransmitted (2.896 kB)", "round-trip time": "RTT",
		"buffers": "send buffer, receive buffer, outstanding, not sent",
	} {
		for _, scale := range []struct {
			name  string
			until float64
		}{{"first 3 s", 3}, {"whole run", 5.08}} {
			d, ok := all["forward: "+title+", "+scale.name]
			if !ok {
				t.Errorf("no drawing of %s, %s", title, scale.name)
				continue
			}
			var got []string
			for _, s := range d.Series {
				got = append(got, s.Name)
				if s.Form == report.AsMarks {
					continue
				}
				if last := s.X[len(s.X)-1]; last > scale.until || last < scale.until-0.2 || len(s.X) != len(s.Y) {
					t.Errorf("%s: %s ends at %v s", d.Title, s.Name, last)
				}
			}
			if strings.Join(got, ", ") != names {
				t.Errorf("%s: %q", d.Title, got)
			}
		}
	}
}

func TestDrawnValuesAreThoseOfTheSamples(t *testing.T) {
	all := drawingsOf(t, traced(1))
	windows := all["forward: congestion window, first 3 s"]
	if cwnd := series(t, windows, "cwnd"); cwnd.X[100] != 1 || cwnd.Y[100] != 110*1448 {
		t.Errorf("window of %v bytes at %v s", cwnd.Y[100], cwnd.X[100])
	}
	if s := series(t, windows, "ssthresh"); s.X[0] != 2 || s.Y[0] != 50*1448 { // unlimited before
		t.Errorf("threshold of %v bytes from %v s on", s.Y[0], s.X[0])
	}
	if m := series(t, windows, "retransmitted (2.896 kB)"); len(m.X) != 1 || m.X[0] != 2 || m.Y[0] != 210*1448 {
		t.Errorf("marks at %v, %v", m.X, m.Y)
	}
	if s := series(t, all["forward: round-trip time, first 3 s"], "RTT"); s.X[0] != 0.01 || s.Y[0] < 0.1 || s.Y[0] > 0.101 { // unknown before
		t.Errorf("RTT of %v s at %v s", s.Y[0], s.X[0])
	}
	if s := series(t, all["forward: buffers, whole run"], "send buffer"); s.Y[100] != 187_040 {
		t.Errorf("send buffer of %v bytes", s.Y[100])
	}
	// Half the rate in the first second after 80 ms, then all of it.
	rates := series(t, all["forward: throughput, first 3 s"], "received")
	if rates.Form != report.AsSteps || rates.Y[5] < 0.49e6 || rates.Y[5] > 0.51e6 || rates.Y[20] < 0.99e6 || rates.Y[20] > 1.01e6 {
		t.Errorf("%v", rates.Y)
	}
	if s := series(t, all["forward: throughput by second"], "all flows"); len(s.X) != 6 || s.X[5] != 5 || s.Y[5] != s.Y[4] {
		t.Errorf("%v, %v", s.X, s.Y)
	}
}

func TestDrawingsOfManyFlowsShowTheFirstOnes(t *testing.T) {
	for _, c := range []struct {
		flows int
		of    string
		drawn int
	}{{4, "", 4}, {5, ", first 4 of 5 flows", 4}, {64, ", first 4 of 64 flows", 4}} {
		all := drawingsOf(t, traced(c.flows))
		if n := len(all["forward: bytes"+c.of+", whole run"].Series); n != c.drawn {
			t.Errorf("%d flows: %d series", c.flows, n)
		}
		windows := all["forward: congestion window"+c.of+", first 3 s"]
		if n := len(windows.Series); n != 2*c.drawn || windows.Series[1].Name != "cwnd 2 (cubic)" || windows.Series[5].Name != "retransmitted (2.896 kB) 2 (cubic)" {
			t.Errorf("%d flows: %d series of windows, %q and %q", c.flows, n, windows.Series[1].Name, windows.Series[5].Name)
		}
		if s := series(t, all["forward: throughput by second"], "all flows"); s.Y[3] < 0.99e6*float64(c.flows) {
			t.Errorf("%d flows: %v", c.flows, s.Y)
		}
	}
}

func TestDrawingOfTwoWaysHasBothInOneTime(t *testing.T) {
	r := &Result{TwoWay: &TwoWay{Directions: [2]Part{{Direction: "reverse", PerSecond: []float64{5, 6, 7}}, {Direction: "forward", PerSecond: []float64{0, 2, 0}}}}}
	all := r.Drawings()
	if len(all) != 1 || len(all[0].Series) != 2 {
		t.Fatalf("%+v", all)
	}
	if s := all[0].Series[1]; s.Name != "forward" || len(s.X) != 4 || s.X[3] != 3 || s.Y[1] != 2 || s.Y[3] != 0 {
		t.Errorf("%+v", s)
	}
}

func TestRateOfTheLinkStandsBesideTheThroughput(t *testing.T) {
	rate := 1.25e6
	d := evaluated(traced(1), time.Second)
	d.LinkRate = &rate
	all := (&Result{Directions: []*Direction{d}}).Drawings()
	if s := series(t, all[0], "rate of the link, headers included"); s.Y[0] != rate || s.Y[1] != rate || s.X[1] != 5 {
		t.Errorf("%+v", s)
	}
}

// A transfer of which one end or both are unknown, as after an abort.
func TestDrawingsOfAPartialTransferDoNotFail(t *testing.T) {
	for name, change := range map[string]func(*tcptraffic.Result){
		"no receiver": func(r *tcptraffic.Result) { r.Receiver[0] = tcptraffic.FlowEnd{} },
		"no sender":   func(r *tcptraffic.Result) { r.Sender[0] = tcptraffic.FlowEnd{} },
		"neither":     func(r *tcptraffic.Result) { r.Receiver[0], r.Sender[0] = tcptraffic.FlowEnd{}, tcptraffic.FlowEnd{} },
		"one sample": func(r *tcptraffic.Result) {
			r.Sender[0].Samples, r.Receiver[0].Samples = r.Sender[0].Samples[:1], r.Receiver[0].Samples[:1]
		},
	} {
		r := traced(1)
		r.Cut = "aborted"
		change(r)
		if n := len(drawingsOf(t, r)); n != 11 {
			t.Errorf("%s: %d drawings", name, n)
		}
	}
	if all := (&Result{Directions: []*Direction{{Direction: "forward"}}}).Drawings(); len(all) != 0 {
		t.Errorf("%d drawings of no flow", len(all))
	}
}

func BenchmarkDrawings(b *testing.B) {
	for _, flows := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d flows", flows), func(b *testing.B) {
			res := &Result{Directions: []*Direction{evaluated(traced(flows), time.Second), evaluated(traced(flows), time.Second)}}
			for b.Loop() {
				res.Drawings()
			}
		})
	}
}
