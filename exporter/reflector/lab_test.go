package reflector

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
)

// epochStart is when the tests' clocks start.
const epochStart = instant.Time(1_800_000_000_000_000_000)

// fixedClock is a clock.Monitor of constant quality.
type fixedClock clock.Quality

func (c fixedClock) Quality(instant.Time) clock.Quality { return clock.Quality(c) }
func (fixedClock) Run(ctx context.Context) error        { <-ctx.Done(); return nil }

func goodClock() fixedClock {
	return fixedClock{State: clock.Synchronized, Bound: sample.Bound{Error: time.Millisecond, Reason: sample.OK}}
}

// lab is a shard without sockets, and a monotonic clock that the test sets.
type lab struct {
	t   testing.TB
	s   *shard
	now time.Duration
}

func newLab(t testing.TB, change func(*Options)) *lab {
	t.Helper()
	o := Options{Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, RatePackets: -1}
	if change != nil {
		change(&o)
	}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, s: newShard(&o, rand.New(rand.NewPCG(3, 4)).Uint32)}
	l.s.clock = viewClock(goodClock(), epochStart)
	return l
}

func (l *lab) wall() instant.Time { return epochStart.Add(l.now) }

// deliver passes bytes to the reflector and returns its reply.
func (l *lab) deliver(peer netip.AddrPort, b []byte) ([]byte, pendingReply, Result) {
	in := inOf(l, peer, b)
	return l.deliverIn(&in)
}

// inOf is the datagram of these bytes.
func inOf(l *lab, peer netip.AddrPort, b []byte) tstamp.In {
	return tstamp.In{
		Payload: append([]byte(nil), b...), Peer: peer, Local: netip.MustParseAddr("127.0.0.1"),
		Stamp: sample.Stamp{At: l.wall(), Origin: sample.Kernel}, At: l.wall().Add(20 * time.Microsecond),
		TTL: 61, DSCP: 10,
	}
}

func (l *lab) deliverIn(in *tstamp.In) ([]byte, pendingReply, Result) {
	var a pendingReply
	r := l.s.handle(in, l.now, &a)
	if !r.Answered() {
		return nil, a, r
	}
	l.s.seal(&a, l.wall().Add(50*time.Microsecond))
	return a.payload, a, r
}

// poller is a sender of requests.
type poller struct {
	l    *lab
	peer netip.AddrPort
	ssid uint16
	run  uint32
	// epoch is the reflector's, once a reply has reported it.
	epoch uint32
	key   *stampfmt.Key
	tmax  uint32 // milliseconds
}

func (l *lab) poller(peer string, run uint32) *poller {
	return &poller{l: l, peer: netip.MustParseAddrPort(peer), ssid: 77, run: run}
}

// base is a request without TLVs.
func (k *poller) base(seq uint32) []byte {
	p := stampfmt.SenderPacket{
		Seq: seq, T1: timefmt.NTP.Encode(k.l.wall(), 0), SSID: k.ssid,
		Error: timefmt.MakeErrorEstimate(time.Millisecond, true, timefmt.NTP),
	}
	if k.key != nil {
		return p.AppendAuthenticatedTo(nil, k.key)
	}
	return p.AppendTo(nil)
}

// request is a request of the oneway sender.
func (k *poller) request(seq uint32, change func(*stampfmt.Receipt)) []byte {
	r := stampfmt.Receipt{Words: 4, Run: k.run, Epoch: k.epoch, Tx: k.tmax, Next: seq + 1}
	if change != nil {
		change(&r)
	}
	b := stampfmt.FollowUp{}.AppendTo(k.base(seq))
	return k.finish(r.AppendTo(b))
}

// finish computes the checksums of a request.
func (k *poller) finish(b []byte) []byte {
	if k.key != nil {
		b = stampfmt.PutTLVHMAC(stampfmt.AppendTLVHMAC(b), stampfmt.AuthenticatedBytes, k.key)
	}
	stampfmt.SealCRC(b, k.key != nil)
	if k.key != nil {
		stampfmt.PutTLVHMAC(b, stampfmt.AuthenticatedBytes, k.key)
		stampfmt.PutHMAC(b, k.key)
	}
	return b
}

// reply is a parsed reply.
type reply struct {
	result  Result
	data    []byte
	base    stampfmt.ReflectorPacket
	receipt stampfmt.Receipt
	follow  stampfmt.FollowUp
	flags   map[stampfmt.TLVType]uint8
	values  map[stampfmt.TLVType][]byte
	reply   pendingReply
}

// send delivers a request and parses the reply.
func (k *poller) send(b []byte) reply {
	k.l.t.Helper()
	data, a, r := k.l.deliver(k.peer, b)
	rep := reply{result: r, data: data, reply: a}
	if data == nil {
		return rep
	}
	if len(data) != len(b) {
		k.l.t.Fatalf("reply to %d bytes has %d bytes", len(b), len(data))
	}
	rep.parse(k.l.t, k.key)
	if rep.receipt.Filled {
		k.epoch = rep.receipt.Epoch
		if !stampfmt.CheckCRC(data, k.key != nil) {
			k.l.t.Fatal("the reply's CRC does not match")
		}
	}
	return rep
}

func (k *poller) poll(seq uint32) reply {
	k.l.t.Helper()
	return k.send(k.request(seq, nil))
}

func (k *poller) statsQuery(next uint32, finish bool) reply {
	k.l.t.Helper()
	return k.send(k.request(next, func(r *stampfmt.Receipt) { r.StatsQuery, r.Finish, r.Next = true, finish, next }))
}

func (rep *reply) parse(t testing.TB, key *stampfmt.Key) {
	t.Helper()
	var err error
	baseBytes := stampfmt.UnauthenticatedBytes
	if key != nil {
		baseBytes = stampfmt.AuthenticatedBytes
		rep.base, err = stampfmt.ParseReflectorAuthenticated(rep.data, key)
	} else {
		padded := append(append([]byte(nil), rep.data...), 0, 0, 0)
		rep.base, err = stampfmt.ParseReflector(padded[:max(stampfmt.UnauthenticatedBytes, len(rep.data))])
	}
	if err != nil {
		t.Fatalf("reply: %v", err)
	}
	rep.flags, rep.values = map[stampfmt.TLVType]uint8{}, map[stampfmt.TLVType][]byte{}
	for rest := rep.data[min(baseBytes, len(rep.data)):]; len(rest) > 0; {
		var v stampfmt.TLV
		if v, rest, err = stampfmt.NextTLV(rest); err != nil {
			return
		}
		rep.flags[v.Type], rep.values[v.Type] = v.Flags, v.Value
		switch v.Type {
		case stampfmt.TypeReceipt:
			rep.receipt, _ = stampfmt.ParseReceipt(v.Value)
		case stampfmt.TypeFollowUp:
			rep.follow, _ = stampfmt.ParseFollowUp(v.Value)
		default:
		}
	}
}
