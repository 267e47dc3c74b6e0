package tcp_test

import (
	"testing"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/tcpstamp"
	"oneway.example/exporter/traffic/tcp"
)

// joined returns the received samples by the sent one, for those that both ends have.
func joined(sent, received *tcp.FlowEnd) map[tcpstamp.Sent]tcpstamp.Received {
	byOffset := map[int64]tcpstamp.Received{}
	for _, r := range received.Received {
		byOffset[r.Offset] = r
	}
	both := map[tcpstamp.Sent]tcpstamp.Received{}
	for _, s := range sent.Sent {
		if r, ok := byOffset[s.Offset]; ok {
			both[s] = r
		}
	}
	return both
}

// The records of both ends are of the same bytes, whose delay is not negative: both ends read one clock.
func TestStampsOfBothEndsJoin(t *testing.T) {
	for _, d := range sample.Directions() {
		p := plan(d, time.Second)
		p.Stamps = true
		res, _ := transfer(t, p)
		sent, received := &res.Sender[0], &res.Receiver[0]
		both := joined(sent, received)
		t.Logf("%s: %d bytes, %d samples sent, %d received, %d joined, %d acknowledgments", d, received.Payload, len(sent.Sent), len(received.Received), len(both), len(sent.Acks))
		delays, exact := 0, 0
		for s, r := range both {
			if s.First == 0 || s.Transmissions != 1 {
				continue
			}
			if r.Reordered {
				continue
			}
			delays++
			if r.Early == 0 {
				exact++
			}
			if delay := r.At.Sub(s.First); delay < 0 || delay-r.Early > 100*time.Millisecond {
				t.Errorf("%s: byte %d: delay %v, early %v", d, s.Offset, delay, r.Early)
			}
			if s.Scheduled > s.First || s.Written > s.Scheduled || r.NotBefore > r.Read {
				t.Errorf("%s: %+v, %+v", d, s, r)
			}
		}
		t.Logf("%s: %d delays, %d of them exact; handshake %+v, %+v", d, delays, exact, sent.Handshake, received.Handshake)
		if res.Cut != "" || delays < 10 || len(sent.Received) > 0 || len(received.Sent) > 0 {
			t.Errorf("%s: %q, %d delays", d, res.Cut, delays)
		}
		if !res.SharedClock || res.Bound().Reason != sample.OK || res.Ends.StampError(d, sample.Stamp{Origin: sample.Kernel}, sample.Stamp{Origin: sample.Kernel}) <= 0 {
			t.Errorf("%s: clocks %+v, %+v", d, res.Local, res.Remote)
		}
	}
}
