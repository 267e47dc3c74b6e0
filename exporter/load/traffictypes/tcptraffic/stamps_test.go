package tcptraffic_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/tests/remoteend"
)

// stamped is plan with stamps.
func stamped(d sample.Direction, lasts time.Duration) tcptraffic.Plan {
	p := plan(d, lasts)
	p.Stamps = true
	return p
}

// joined returns the received samples by the sent one, for those that both ends have.
func joined(sent, received *tcptraffic.FlowEnd) map[tcpstamp.Sent]tcpstamp.Received {
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

// delays returns the number of delays of a flow whose ends read one clock, and reports those that cannot be.
func delays(t *testing.T, what string, sent, received *tcptraffic.FlowEnd) (n int) {
	t.Helper()
	both := joined(sent, received)
	for s, r := range both {
		if s.Written > s.Scheduled && s.Scheduled != 0 || s.Scheduled > s.First && s.First != 0 || s.First > s.Last || r.NotBefore > r.Read || r.At > r.Read {
			t.Errorf("%s: times are not in order: %+v, %+v", what, s, r)
		}
		if s.First == 0 || s.Transmissions != 1 || r.At == 0 || r.Reordered {
			continue
		}
		n++
		if delay := r.At.Sub(s.First); delay < 0 || delay-r.Early > 10*time.Second {
			t.Errorf("%s: byte %d: delay %v, at most %v less", what, s.Offset, delay, r.Early)
		}
	}
	t.Logf("%s: %d bytes, %d samples sent, %d received, %d joined, %d delays, %d acknowledgments",
		what, received.Payload, len(sent.Sent), len(received.Received), len(both), n, len(sent.Acks))
	if len(sent.Received) > 0 || len(received.Sent) > 0 || len(received.Acks) > 0 {
		t.Errorf("%s: an end has records of the other", what)
	}
	return n
}

// samplesOf ends a transfer after so many times the least distance of samples, not after a time in which a busy machine sends few
// of them; the duration only bounds a hang.
func samplesOf(p *tcptraffic.Plan, samples int64) {
	p.Bytes, p.Duration = samples*32<<10, 2*time.Minute
}

// The records of both ends are of the same bytes, whose delay is not negative: both ends read one clock.
func TestStampsOfBothEndsJoin(t *testing.T) {
	remoteend.NothingLeft(t)
	for what, change := range map[string]func(p *tcptraffic.Plan){
		"bulk, by time":  func(*tcptraffic.Plan) {}, // also on a busy machine it has hundreds of samples
		"without copies": func(p *tcptraffic.Plan) { samplesOf(p, 4000); p.Discard = true },
		"odd number":     func(p *tcptraffic.Plan) { samplesOf(p, 1600); p.Bytes++ },
		"paced": func(p *tcptraffic.Plan) {
			samplesOf(p, 100)
			p.Flows[0].PacingRate, p.Flows[0].MSS = 5_000_000, 1460
		},
		"tiny messages": func(p *tcptraffic.Plan) { samplesOf(p, 20); p.Flows[0].MessageBytes = 7 },
		"tiny, not delayed": func(p *tcptraffic.Plan) {
			samplesOf(p, 20)
			p.Flows[0].MessageBytes, p.Flows[0].NoDelay, p.Flows[0].PacingRate = 700, true, 1_000_000
		},
		"messages at times": func(p *tcptraffic.Plan) {
			samplesOf(p, 80)
			p.Flows[0].MessageBytes, p.Flows[0].MessageInterval = 20_000, 5*time.Millisecond
		},
		"small buffers": func(p *tcptraffic.Plan) {
			samplesOf(p, 1600) // they do not end segments, and are fewer
			p.Flows[0].SendBuffer, p.Flows[0].ReceiveBuffer = 16<<10, 16<<10
		},
	} {
		for _, d := range sample.Directions() {
			p := stamped(d, 2*time.Second)
			change(&p)
			res, _ := transfer(t, p)
			sent, received := &res.Sender[0], &res.Receiver[0]
			n := delays(t, what+", "+d.String(), sent, received)
			if res.Cut != "" || p.Bytes > 0 && received.Payload != p.Bytes {
				t.Errorf("%s, %s: %d bytes, cut %q", what, d, received.Payload, res.Cut)
			}
			if n < 10 {
				t.Errorf("%s, %s: %d delays", what, d, n)
			}
		}
	}
}

// The clocks and the handshake are known at both ends.
func TestStampsHaveTheirClocksAndTheHandshake(t *testing.T) {
	for _, d := range sample.Directions() {
		res, _ := transfer(t, stamped(d, 300*time.Millisecond))
		client, server := res.Sender[0].Handshake, res.Receiver[0].Handshake
		if d == sample.Reverse {
			client, server = server, client
		}
		if off := int32(client.TSval - server.TSval); !server.SYN || client.SYN || max(off, -off) > int32(client.TSvalError) || client.OwnScale != server.PeerScale || server.MSS <= 0 {
			t.Errorf("%s: %+v, %+v", d, client, server)
		}
		if !res.SharedClock || res.Bound().Reason != sample.OK || res.Local.Before.At == 0 || res.Remote.After.At <= res.Remote.Before.At {
			t.Errorf("%s: clocks %+v, %+v, shared %t", d, res.Local, res.Remote, res.SharedClock)
		}
		kernel := sample.Stamp{Origin: sample.Kernel}
		if e := res.Ends.StampError(d, kernel, kernel); e <= 0 || e > time.Millisecond {
			t.Errorf("%s: error of the stamps %v", d, e)
		}
	}
}

// A transfer without stamps has no record of them.
func TestPlainTransfersHaveNoStamps(t *testing.T) {
	for _, d := range sample.Directions() {
		res, _ := transfer(t, plan(d, 100*time.Millisecond))
		for _, e := range []tcptraffic.FlowEnd{res.Sender[0], res.Receiver[0]} {
			if e.Stamped != nil || e.Handshake != (tcpstamp.Handshake{}) {
				t.Errorf("%s: %+v, %+v", d, e.Stamped, e.Handshake)
			}
		}
	}
}

// Of many flows the first four have stamps.
func TestFewOfManyFlowsAreStamped(t *testing.T) {
	for _, d := range sample.Directions() {
		p := stamped(d, 500*time.Millisecond)
		for range 9 {
			p.Flows = append(p.Flows, p.Flows[0])
		}
		res, _ := transfer(t, p)
		for i := range res.Sender {
			sent, received := &res.Sender[i], &res.Receiver[i]
			if n := delays(t, d.String(), sent, received); (n > 0) != (i < 4) || (sent.Stamped != nil) != (i < 4) || (received.Stamped != nil) != (i < 4) {
				t.Errorf("%s, flow %d: %d delays", d, i, n)
			}
		}
	}
}

func TestStampsOverIPv6(t *testing.T) {
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{Address: netip.IPv6Loopback(), Do: func(f func() error) error { return f() }})
	_, err := once(t, shared, func(ctx context.Context, s *tcptraffic.Session) error {
		for _, d := range sample.Directions() {
			p := stamped(d, 0)
			samplesOf(&p, 800)
			res, err := s.Transfer(ctx, p)
			if err != nil {
				return err
			}
			if n := delays(t, d.String(), &res.Sender[0], &res.Receiver[0]); n < 10 || res.Receiver[0].Handshake.MSS == 0 {
				return errors.New(d.String())
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// What was recorded until a transfer was canceled, or ended by a limit, is there.
func TestEndedTransferKeepsItsStamps(t *testing.T) {
	remoteend.NothingLeft(t)
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
	_, err := once(t, shared, func(ctx context.Context, s *tcptraffic.Session) error {
		for _, d := range sample.Directions() {
			short, cancel := context.WithTimeout(ctx, 400*time.Millisecond)
			p := stamped(d, 20*time.Second)
			p.Flows[0].PacingRate = 10_000_000
			res, err := s.Transfer(short, p)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || res == nil {
				t.Errorf("%s: %v", d, err)
				continue
			}
			if n := delays(t, d.String(), &res.Sender[0], &res.Receiver[0]); n < 5 {
				t.Errorf("%s: %d delays", d, n)
			}
			p.Most = 2_000_000
			if res, err = s.Transfer(ctx, p); err != nil || res.Sender[0].Ended != tcptraffic.EndedLimit {
				return errors.Join(err, errors.New(d.String()))
			}
			if n := delays(t, d.String(), &res.Sender[0], &res.Receiver[0]); n < 5 {
				t.Errorf("%s, ended by the limit: %d delays", d, n)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Bursts of segments have the acknowledgments that advanced.
func TestBurstsHaveTheirAcknowledgments(t *testing.T) {
	for _, d := range sample.Directions() {
		p := stamped(d, 10*time.Second) // the bytes take 3 s
		p.Bytes = 7_500_000
		p.Flows[0].Options = tcpsocket.Options{MSS: 1460, PacingRate: 2_500_000}
		res, _ := transfer(t, p)
		acks := res.Sender[0].Acks
		if len(acks) < 50 {
			t.Errorf("%s: %d acknowledgments", d, len(acks))
		}
		for i, a := range acks[1:] {
			if before := acks[i]; a.Offset <= before.Offset || a.At < before.At || a.Burst < before.Burst {
				t.Errorf("%s: %+v after %+v", d, a, before)
			}
		}
	}
}

// Segments of their own take more of a send buffer: a small one that is configured has delays, but no bursts.
func TestSmallSendBufferHasNoBursts(t *testing.T) {
	p := plan(sample.Forward, time.Second)
	p.Stamps, p.Flows[0].SendBuffer = true, 64<<10
	res, _ := transfer(t, p)
	if n := len(res.Sender[0].Acks); n > 0 {
		t.Errorf("%d acknowledgments of bursts", n)
	}
	if len(joined(&res.Sender[0], &res.Receiver[0])) == 0 {
		t.Error("no samples")
	}
}
