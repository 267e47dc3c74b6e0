package loadtest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probes/tcp"
	"oneway.example/tests/lab"
	"oneway.example/tests/precision"
	"oneway.example/tests/standstill"
)

func overWibro(t *testing.T) lab.Options {
	t.Helper()
	profile, err := lab.LoadProfile("wibro")
	if err != nil {
		t.Fatal(err)
	}
	return lab.Options{Profile: profile}
}

// The payload of full segments is 1448 of 1500 bytes.
const efficiency = 1448.0 / 1500

// The throughput of each direction is the payload rate of the link, and what was sent again is what the full queue dropped. A
// busy machine leaves the link idle for moments, so that the throughput is less.
func TestTCPThroughputIsThatOfTheLink(t *testing.T) {
	s := newSite(t, overWibro(t))
	r := s.StartTCP(t, "--congestion-control=cubic", "--duration=8s", "--omit=2s").FinishTCP(t, 0)
	for i, d := range sample.Directions() {
		got, rate := r.Result.Directions[i], map[sample.Direction]float64{sample.Forward: 2.5e6, sample.Reverse: 10e6}[d]/8
		var again int64
		for _, f := range got.Flows {
			again += f.Retransmitted
		}
		_, c := s.Network.Counts(d)
		t.Logf("%s: %.1f kB/s, the link's payload rate is %.1f; RTT %.1f ms, least %.1f; sent again %d bytes, dropped %d packets; limited %v", d,
			*got.Throughput/1e3, rate*efficiency/1e3, 1e3*got.RTT[1], 1e3**got.RTTMin, again, c.DroppedQueue, got.Limited)
		switch ratio := *got.Throughput / (rate * efficiency); {
		case ratio > 1.005:
			t.Errorf("%s: %.3f of the link's rate", d, ratio)
		case ratio < 0.97:
			precision.Missed(t, fmt.Errorf("%s: %.3f of the link's rate", d, ratio))
		}
		if *got.RTTMin < 0.044 || *got.RTTMin > 0.060 || got.RTT[1] < *got.RTTMin {
			t.Errorf("%s: least RTT %v, median %v", d, *got.RTTMin, got.RTT[1])
		}
		if got.Flows[0].CongestionControl != "cubic" {
			t.Errorf("%s: %s", d, got.Flows[0].CongestionControl)
		}
		// A dropped acknowledgment or control segment is not sent again as payload.
		if dropped := int64(c.DroppedQueue) * 1448; again < dropped-20*1448 || dropped == 0 && again > 20*1448 {
			t.Errorf("%s: sent again %d bytes; the link dropped %d packets", d, again, c.DroppedQueue)
		}
	}
}

// Fixed buffers limit the throughput to the bytes that are outstanding per round trip. The link of the thesis' TCP
// experiments (80 ms up, 14 ms down) has 117 kB of bandwidth by delay: smaller buffers do not fill it, and larger
// ones only lengthen the round trip. While this host stands still, nothing is outstanding, which the model does not know.
func TestTCPThroughputOfFixedBuffersIsWindowByRTT(t *testing.T) {
	o := overWibro(t)
	o.Profile.Forward.Delay = 80 * time.Millisecond
	s, w := newSite(t, o), standstill.Begin(t)
	var longest float64
	for _, c := range []struct {
		flags []string
		limit string
		fills bool
	}{
		{[]string{"--receive-buffer-bytes=17KiB"}, "receive_window", false},
		{[]string{"--send-buffer-bytes=17KiB"}, "send_buffer", false},
		{[]string{"--send-buffer-bytes=64KiB", "--receive-buffer-bytes=64KiB"}, "receive_window", false},
		{[]string{"--send-buffer-bytes=256KiB", "--receive-buffer-bytes=256KiB"}, "receive_window", true},
		{[]string{"--send-buffer-bytes=512KiB", "--receive-buffer-bytes=512KiB"}, "receive_window", true},
	} {
		var d *tcp.Direction
		standstill.Decide(t, w, func(r precision.TB) {
			flags := append(c.flags, "--congestion-control=cubic", "--duration=5s", "--omit=2s", "--direction=reverse")
			d = s.StartTCP(t, flags...).FinishTCP(t, 0).Result.Directions[0]
			isWindowByRTT(r, c.flags, d)
			const rate = 10e6 / 8 * efficiency
			if fills := *d.Throughput >= 0.95*rate; fills != c.fills || !fills && (*d.Throughput > 0.9*rate || string(d.Limit) != c.limit) {
				r.Errorf("%s: %.1f kB/s, limited by %s", c.flags, *d.Throughput/1e3, d.Limit)
			}
			if c.fills && d.RTT[1] < longest {
				r.Errorf("%s: median RTT %v after %v with smaller buffers", c.flags, d.RTT[1], longest)
			}
		})
		longest = max(longest, d.RTT[1])
	}
}

// isWindowByRTT compares the throughput of a run of 5 s without the first 2 s, and the model of its result, with the sender's
// samples.
func isWindowByRTT(r precision.TB, flags []string, d *tcp.Direction) {
	r.Helper()
	var outstanding, rtt []float64
	for _, row := range d.Flows[0].SenderRows {
		if at := time.Duration(row[0]); at > 2*time.Second && at < 5*time.Second {
			outstanding, rtt = append(outstanding, float64(row[5])), append(rtt, float64(row[9])/1e9)
		}
	}
	model := mean(outstanding) / mean(rtt)
	r.Logf("%s: %.1f kB/s, %.1f kB outstanding, RTT %.1f ms: model %.1f kB/s; buffers %+v, %+v; limited %v", flags, *d.Throughput/1e3,
		mean(outstanding)/1e3, 1e3*mean(rtt), model/1e3, d.Flows[0].SendBuffer, d.Flows[0].ReceiveBuffer, d.Limited)
	if ratio := *d.Throughput / model; math.Abs(ratio-1) > 0.1 {
		r.Errorf("%s: %.3f of the model", flags, ratio)
	}
	if ratio := d.Models.Throughput["window"] / model; math.Abs(ratio-1) > 0.05 {
		r.Errorf("%s: the result's model is %.3f of that", flags, ratio)
	}
}

// Sampling changes neither the throughput of small buffers nor what limits it.
func TestTCPStampsKeepTheThroughputOfFixedBuffers(t *testing.T) {
	o := overWibro(t)
	o.Profile.Forward.Delay = 80 * time.Millisecond
	s, w := newSite(t, o), standstill.Begin(t)
	for _, buffers := range [][]string{
		{"--send-buffer-bytes=17KiB"}, {"--receive-buffer-bytes=17KiB"}, {"--send-buffer-bytes=64KiB", "--receive-buffer-bytes=64KiB"},
	} {
		of, still := map[bool]*tcp.Direction{}, map[bool]standstill.Standstills{}
		standstill.Decide(t, w, func(r precision.TB) {
			for _, stamps := range []bool{false, true} {
				if of[stamps] != nil && still[stamps].Spans == 0 {
					continue // only the other one is to be repeated
				}
				begin, flags := instant.Now(), append([]string{"--congestion-control=cubic", "--duration=4s", "--omit=1s", "--direction=reverse"}, buffers...)
				if !stamps {
					flags = append(flags, "--no-stamps")
				}
				of[stamps] = s.StartTCP(t, flags...).FinishTCP(t, 0).Result.Directions[0]
				still[stamps] = w.FoundFrom(begin)
			}
			ratio := *of[true].Throughput / *of[false].Throughput
			t.Logf("%s: %.1f kB/s, limited by %q, without stamps %.1f, %q; %v", buffers, *of[true].Throughput/1e3, of[true].Limit, *of[false].Throughput/1e3, of[false].Limit, of[true].Delay.Samples)
			if of[true].Delay.Samples["delay"] == 0 || of[false].Delay != nil {
				t.Errorf("%s: delays %+v, without stamps %+v", buffers, of[true].Delay, of[false].Delay)
			}
			if math.Abs(ratio-1) > 0.02 || of[true].Limit != of[false].Limit {
				r.Errorf("%s: stamps change the throughput to %.3f, and the limit from %q to %q", buffers, ratio, of[false].Limit, of[true].Limit)
			}
		})
	}
}

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

// The bytes that a run reports are those that entered the link, apart from the control connection.
func TestTCPBytesAreThoseThatEnteredTheLink(t *testing.T) {
	s := newSite(t, lab.Options{Profile: lab.Profile{
		Name: "classified", Forward: lab.Link{Rate: 20e6, Delay: 5 * time.Millisecond, Queue: 60_000}, Reverse: lab.Link{Rate: 20e6, Delay: 5 * time.Millisecond, Queue: 60_000},
	}})
	r := s.StartTCP(t, "--congestion-control=reno", "--bytes=5MB", "--duration=30s", "--direction=forward").FinishTCP(t, 0)
	s.Drained(t)
	f := r.Result.Directions[0].Flows[0]
	_, c := s.Network.Counts(sample.Forward)
	again := f.Retransmitted / f.MSS
	t.Logf("%d payload, %d sent, %d IP bytes; the link: %d packets, %d dropped; %d segments again", f.Payload, f.Sent, r.Forward, c.Entered, c.DroppedQueue, again)
	if f.Payload != 5_000_000 || f.Sent-f.Retransmitted < f.Payload || f.Sent-f.Retransmitted > f.Payload+100 {
		t.Errorf("%d payload, %d sent, %d again", f.Payload, f.Sent, f.Retransmitted)
	}
	// The link also drops segments of the control connection.
	if again < int64(c.DroppedQueue)-2 || again > int64(c.DroppedQueue)+5 {
		t.Errorf("%d segments were sent again; the link has dropped %d", again, c.DroppedQueue)
	}
	if share := *r.Result.Directions[0].Retransmitted * float64(f.Sent); int64(share+0.5) != f.Retransmitted {
		t.Errorf("%v of %d bytes are not %d", *r.Result.Directions[0].Retransmitted, f.Sent, f.Retransmitted)
	}
}
