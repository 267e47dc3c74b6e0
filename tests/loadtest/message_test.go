package loadtest

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probes/message"
	"oneway.example/tests/lab"
	"oneway.example/tests/precision"
)

// messages runs `oneway test message` on the client and returns the parts, by direction and transport, and the notes.
func (s *site) messages(t *testing.T, more ...string) (parts map[string]message.Part, notes []string) {
	t.Helper()
	var o struct {
		Result struct {
			Parts []message.Part `json:"parts"`
		} `json:"results"`
		Notes []string `json:"notes"`
	}
	s.Test(t, "message", append([]string{"--clock-bound=1ms", "--congestion-control=reno"}, more...)...).Decode(t, 0, &o)
	parts = map[string]message.Part{}
	for _, one := range o.Result.Parts {
		parts[one.Direction+" "+string(one.Transport)] = one
		t.Logf("%s %-12s sent %d, %.2f packets each, offered %.1f kB/s, throughput %.1f, lost %.3f, again %.3f, RTT %v, delay %s; partial %q", one.Direction, one.Transport, count(one.Sent),
			known(one.PerMessage), known(one.Offered)/1e3, known(one.Throughput)/1e3, known(one.Loss), known(one.Retransmitted), one.RTT, text(one.Delay), one.Partial)
	}
	return parts, o.Notes
}

func known(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// count is a number of messages; -1: unknown.
func count(v *int64) int64 {
	if v == nil {
		return -1
	}
	return *v
}

// within asserts a value that the load of the machine affects.
func within(t *testing.T, what string, v, least, most float64) {
	t.Helper()
	if v < least || v > most {
		precision.Missed(t, fmt.Errorf("%s: %.4f, want %.4f to %.4f", what, v, least, most))
	}
}

func text(v any) string {
	b, _ := json.Marshal(v) // of numbers
	return string(b)
}

// Over a round trip of 60 ms Nagle's algorithm joins the messages of that time; without it and over UDP each has a packet of
// its own. What is lost is what the link has lost, and the delay is that of the link.
func TestNaglesAlgorithmJoinsMessages(t *testing.T) {
	link := lab.Link{Rate: 10e6, Delay: 30 * time.Millisecond, Queue: 100_000}
	s := newSite(t, lab.Options{Profile: lab.Profile{Name: "messages", Forward: link, Reverse: link}})
	parts, notes := s.messages(t, "--duration=5s", "--message-bytes=100", "--message-rate=100")
	for _, d := range sample.Directions() {
		u, nagle, plain := parts[d.String()+" udp"], parts[d.String()+" tcp"], parts[d.String()+" tcp_no_delay"]
		for _, p := range []message.Part{u, nagle, plain} {
			if count(p.Sent) != 500 || known(p.Throughput) <= 0 || *p.PerMessage > 1.03 {
				t.Errorf("%v, %s: %d messages, %.1f bytes per second, %v packets each", d, p.Transport, count(p.Sent), known(p.Throughput), *p.PerMessage)
			}
			within(t, d.String()+" "+string(p.Transport)+": share of the messages' rate", *p.Throughput/10_000, 0.97, 1.03)
		}
		// Six messages in each round trip; the receiver may delay an acknowledgment by 40 ms.
		if n := *nagle.PerMessage; n > 0.5 {
			t.Errorf("%v: %v packets per message with Nagle's algorithm", d, n)
		}
		within(t, d.String()+": packets per message with Nagle's algorithm", *nagle.PerMessage, 0.05, 0.25)
		within(t, d.String()+": packets per message without it", *plain.PerMessage, 0.98, 1.02)
		if m := u.Delay; *u.Loss != 0 || m == nil || *m.Median < 0.030-m.Bound {
			t.Errorf("%v: lost %v, delay %s", d, *u.Loss, text(m))
		} else {
			within(t, d.String()+": median delay", *m.Median, 0.030-m.Bound, 0.032+m.Bound)
		}
		if rtt := nagle.RTT; rtt == nil || rtt[1] < 0.060 {
			t.Errorf("%v: RTT %v", d, rtt)
		} else {
			within(t, d.String()+": median RTT", rtt[1], 0.060, 0.120)
		}
	}
	if len(notes) != 0 {
		t.Errorf("notes %q", notes)
	}
}

// On a link that is too slow UDP offers all and loses what does not fit; TCP is held back, and delivers all that it took.
func TestSlowLinkHoldsBackTCPAndNotUDP(t *testing.T) {
	const rate = 500e3 / 8
	link := lab.Link{Rate: 8 * rate, Delay: 10 * time.Millisecond, Queue: 20_000}
	s := newSite(t, lab.Options{Profile: lab.Profile{Name: "narrow", Forward: link, Reverse: link}})
	parts, notes := s.messages(t, "--duration=10s", "--message-bytes=1000", "--message-rate=200", "--direction=forward")
	u, nagle := parts["forward udp"], parts["forward tcp"]
	within(t, "share of the messages' rate that UDP offered", *u.Offered/200_000, 0.98, 1.02)
	stream, _ := s.Network.Counts(sample.Forward)
	t.Logf("the link dropped %d of %d packets; notes %q", stream.DroppedQueue, stream.Entered, notes)
	if lost := int(*u.Loss*2000 + 0.5); lost != int(stream.DroppedQueue) || lost < 1000 {
		t.Errorf("UDP lost %d packets; the link has dropped %d", lost, stream.DroppedQueue)
	}
	if got := *nagle.Throughput; got > 1.02*rate || count(nagle.Sent) >= 1900 || count(u.Sent) != 2000 {
		t.Errorf("TCP: %.1f of %.1f kB/s, %d of 2000 messages; UDP: %d", got/1e3, rate/1e3, count(nagle.Sent), count(u.Sent))
	}
	within(t, "TCP's share of the link", *nagle.Throughput/rate, 0.8, 1)
}
