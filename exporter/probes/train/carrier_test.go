package train

import (
	"context"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/endclock"
)

// begin is an arbitrary time.
const begin = instant.Time(1_700_000_000_000_000_000)

// simulatedPath is a simulated path, the same in both directions: a droptail queue, a transmitter, an MTU, and
// configured losses. It implements udp.Carrier.
type simulatedPath struct {
	rate  float64 // IP bytes a second
	queue int     // bytes; 0: no limit
	// bucket is how many bytes pass at line, in bytes a second, before rate applies.
	bucket, line float64
	mtu          int // IP bytes; 0: no limit
	// port is the sending interface's MTU: larger packets are refused. 0: no limit.
	port int
	ipv6 bool
	// lose reports which packets are lost, counted over all transfers; nil: none.
	lose func(n int) bool
	// stamps is the origin of timestamps.
	stamps sample.Origin
	// nic is the time between packets of a burst at the sender.
	nic time.Duration
	// pace changes nic by train; nil: constant.
	pace func(train int) time.Duration
	// slows is added to nic after six tenths of each burst.
	slows time.Duration
	// arrival changes the arrival time of a packet; nil: unchanged.
	arrival func(at instant.Time, i int) instant.Time
	// err ends every transfer.
	err error

	// watch is called with each plan; nil: no callback.
	watch func(stream.Plan)
	// paused is the total time of pauses.
	paused time.Duration

	now    instant.Time
	free   instant.Time
	tokens float64
	filled instant.Time
	sent   int
	bursts int
	plans  []stream.Plan
}

func (r *simulatedPath) session() *udptraffic.Session {
	return udptraffic.NewSession(r, udptraffic.SessionOptions{IPv6: r.ipv6, SharedClock: true})
}

func (r *simulatedPath) overhead() int {
	if r.ipv6 {
		return 48
	}
	return 28
}

// Transfer is udp.Carrier.
func (r *simulatedPath) Transfer(_ context.Context, _ sample.Direction, p stream.Plan, _ time.Duration, _ func(loadtest.Progress), _ stream.Adjuster) (*udptraffic.CarrierResult, error) {
	if r.err != nil {
		return nil, r.err
	}
	if r.now == 0 {
		r.now = begin
	}
	r.plans = append(r.plans, p)
	if r.watch != nil {
		r.watch(p)
	}
	out := &udptraffic.CarrierResult{Sent: &stream.Sent{Planned: p.Packets(), Begin: r.now}, Received: &stream.Received{}}
	for _, s := range p.Segments {
		r.now = r.now.Add(s.Pause)
		for range s.Bursts {
			nic := r.nic
			if r.pace != nil {
				nic = r.pace(r.bursts)
			}
			r.bursts++
			for i := range s.Burst {
				r.packet(out, p, s.PayloadBytes, r.now.Add(time.Duration(i)*nic+time.Duration(max(0, i-s.Burst*6/10))*r.slows))
			}
			r.now = r.now.Add(s.Interval)
		}
	}
	out.Sent.End = r.now
	r.now = max(r.now, r.free).Add(time.Second)
	ok := endclock.State{Reason: "ok"}
	out.Local, out.Remote = endclock.Span{Before: ok, After: ok}, endclock.Span{Before: ok, After: ok}
	return out, nil
}

// packet passes one packet over the path.
func (r *simulatedPath) packet(out *udptraffic.CarrierResult, p stream.Plan, payload int, at instant.Time) {
	ip, seq := payload+r.overhead(), uint32(len(out.Sent.Packets))
	if r.port > 0 && ip > r.port && !p.Fragment {
		out.Sent.Packets = append(out.Sent.Packets, stream.SentPacket{Due: at})
		out.Sent.Refused++
		return
	}
	out.Sent.Packets = append(out.Sent.Packets, stream.SentPacket{Due: at, Stamp: sample.Stamp{At: at, Origin: r.stamps}})
	out.PayloadBytes += int64(payload)
	out.Packets++
	r.sent++
	if r.lose != nil && r.lose(r.sent-1) || r.mtu > 0 && ip > r.mtu && !p.Fragment {
		return
	}
	wire := onTheWire(ip, r.mtu, r.ipv6)
	if backlog := max(0, r.free.Sub(at)).Seconds() * r.rate; r.queue > 0 && int(backlog) > r.queue {
		return
	}
	begins := max(r.free, at)
	r.tokens = min(r.bucket, r.tokens+begins.Sub(r.filled).Seconds()*r.rate)
	took := (float64(wire) - r.tokens) / r.rate
	if r.line > 0 {
		took = max(took, float64(wire)/r.line)
	}
	r.free = begins.Add(time.Duration(took * 1e9))
	r.filled, r.tokens = r.free, max(0, r.tokens+took*r.rate-float64(wire))
	arrived := r.free.Add(30 * time.Millisecond)
	if r.arrival != nil {
		arrived = r.arrival(arrived, int(seq))
	}
	out.Received.Packets = append(out.Received.Packets, stream.ReceivedPacket{
		Seq: seq, PayloadBytes: uint16(payload), Stamp: sample.Stamp{At: arrived, Origin: r.stamps},
	})
}
