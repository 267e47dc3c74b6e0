package stamp

import (
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probes/stamp/ledger"
)

// askedSession is a session of a run with asked outstanding requests to a remote end of that kind.
func askedSession(t *testing.T, peer netip.AddrPort, kind ledger.RemoteKind, run uint32, asked uint64, keys ...*stampfmt.Key) *session {
	t.Helper()
	o := DefaultOptions()
	o.Codecs, o.keys = nil, keys // a session without codecs is created quickly
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	s, err := newSession(nil, peer, &o, static.New(50*time.Microsecond, metric.Discard{}), newSeries(metric.Discard{}, "p", "stamp"))
	if err != nil {
		t.Fatal(err)
	}
	s.account.Kind, s.run = kind, run
	for range asked {
		s.account.Send(sched.Now(), wheelStart, ledger.ClockThen{})
	}
	return s
}

// remoteOf is what a session knows of its remote end.
type remoteOf struct {
	kind        ledger.RemoteKind
	returnsTLVs bool
}

func remotes() []remoteOf {
	return []remoteOf{{}, {ledger.RemoteStateful, true}, {ledger.RemoteOurs, true}}
}

// session is askedSession with a remote end of this kind.
func (r remoteOf) session(t *testing.T, peer netip.AddrPort, run uint32, asked uint64, keys ...*stampfmt.Key) *session {
	t.Helper()
	s := askedSession(t, peer, r.kind, run, asked, keys...)
	s.returnsTLVs = r.returnsTLVs
	return s
}

// bothOf returns the counts of both directions.
func bothOf(a *ledger.Account) [2]ledger.DirectionCounts {
	return [2]ledger.DirectionCounts{a.Direction(sample.Forward), a.Direction(sample.Reverse)}
}

// checkCounts: no packet is counted twice.
func checkCounts(t *testing.T, a *ledger.Account) {
	t.Helper()
	for dir, c := range bothOf(a) {
		if c.Lost.Known && c.Received.Value+c.Lost.Value+c.Dropped.Value > c.Sent.Value {
			t.Fatalf("%v: %+v", sample.Direction(dir), c)
		}
	}
}

// Any reply, with a correct checksum where it has one, is read without a fault, and no packet is counted twice. The
// second reply is of the same remote end.
func FuzzReplies(f *testing.F) {
	const run, asked = 7, 20
	peer := netip.MustParseAddrPort("127.0.0.1:862")
	replyTo := func(seq uint32, rc *stampfmt.Receipt) []byte {
		user := wheelStart
		p := stampfmt.ReflectorPacket{
			Seq: seq, SenderSeq: seq, SenderT1: timefmt.NTP.Encode(user, 0), SenderTTL: 255,
			T2: timefmt.NTP.Encode(user, 0), T3: timefmt.NTP.Encode(user, 0),
		}
		b := p.AppendTo(nil)
		if rc != nil {
			rc.Filled, rc.Words, rc.Run = true, 4, run
			b = rc.AppendTo(b)
		}
		return b
	}
	f.Add(replyTo(3, nil), replyTo(4, nil), false)
	f.Add(replyTo(3, &stampfmt.Receipt{Epoch: 5, Next: 4, Base: 4, Received: 4, Tx: 4}), replyTo(9, &stampfmt.Receipt{Epoch: 5, Next: 10, Base: 8, Received: 8, Lost: 2, Bursts: 1, Tx: 9}), true)
	f.Add(replyTo(9, &stampfmt.Receipt{Epoch: 5, Next: 10, Base: 10, Received: 5, Lost: 5, Tx: 5, Host: true, SocketDrops: 5}), replyTo(12, &stampfmt.Receipt{Epoch: 6, Next: 13, Received: 1, Tx: 1, Host: true}), true)
	f.Add(replyTo(9, &stampfmt.Receipt{StatsQuery: true, Finish: true, Epoch: 5, Next: 10}), []byte{}, true)
	f.Fuzz(func(t *testing.T, first, second []byte, sealed bool) {
		for _, of := range remotes() {
			s := of.session(t, peer, run, asked)
			at := wheelStart.Add(time.Millisecond)
			for _, b := range [][]byte{first, second} {
				b = append([]byte{}, b...)
				if sealed {
					stampfmt.SealCRC(b, false)
				}
				s.received(0, &tstamp.In{Payload: b, Peer: peer, Stamp: sample.Stamp{At: at, Origin: sample.Kernel}, At: at}, sched.Now())
				at = at.Add(time.Millisecond)
				checkCounts(t, s.account)
			}
		}
	})
}
