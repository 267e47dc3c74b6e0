package ledger

import (
	"encoding/binary"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
)

// fuzzedBytes are the bytes of one reply of FuzzCounts.
const fuzzedBytes = 44

// fuzzedReply makes a reply to one of the requests asked at testStart from fuzzedBytes bytes: flags, then 32-bit fields.
func fuzzedReply(b []byte) (r Reply) {
	field := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	flags := field(0)
	r.Packet.Seq, r.Packet.SenderSeq, r.Packet.SenderT1 = field(1), field(2), timefmt.NTP.Encode(testStart, 0)
	if flags&1 != 0 {
		r.Packet.SenderT1++
	}
	r.Packet.T2 = timefmt.NTP.Encode(testStart, 0)
	r.Packet.T3 = r.Packet.T2
	r.HasReceipt = flags&2 != 0
	r.Receipt = stampfmt.Receipt{
		Filled: true, Words: 4, StatsQuery: flags&4 != 0, Finish: flags&8 != 0, Host: flags&16 != 0, Epoch: flags >> 16,
		Next: field(3), Base: field(4), Received: field(5), Lost: field(6), Duplicated: field(7), Late: field(8), Tx: field(9), SocketDrops: field(10),
	}
	return r
}

// FuzzCounts: whatever replies arrive, each packet without a reply is counted, and no packet is counted twice unless our
// reflector reports that (SECURITY.md: such counts are accepted).
func FuzzCounts(f *testing.F) {
	const asked = 20
	replies := func(all ...[fuzzedBytes / 4]uint32) (b []byte) {
		for _, one := range all {
			for _, field := range one {
				b = binary.BigEndian.AppendUint32(b, field)
			}
		}
		return b
	}
	f.Add(replies([11]uint32{0, 3, 3}, [11]uint32{0, 4, 4}))
	f.Add(replies([11]uint32{5<<16 | 2, 3, 3, 4, 4, 4, 0, 0, 0, 4}, [11]uint32{5<<16 | 2, 8, 9, 10, 8, 8, 2, 0, 0, 9}))
	f.Add(replies([11]uint32{5<<16 | 18, 4, 9, 10, 10, 5, 5, 0, 0, 5, 5}, [11]uint32{6<<16 | 18, 0, 12, 13, 0, 1, 0, 0, 0, 1}))
	f.Add(replies([11]uint32{5<<16 | 14, 9, 9, 10}))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, kind := range []RemoteKind{RemoteUnknown, RemoteOurs} {
			agent := newRemoteAgent(t, kind, nil)
			a := agent.s
			for range asked {
				a.Send(agent.now, testStart, ClockThen{})
			}
			receipts := false
			for rest := b; len(rest) >= fuzzedBytes; rest = rest[fuzzedBytes:] {
				agent.now += time.Millisecond
				at := testStart.Add(agent.now)
				in, r := tstamp.In{Stamp: sample.Stamp{At: at, Origin: sample.Kernel}, At: at}, fuzzedReply(rest)
				receipts = receipts || r.HasReceipt
				if q, ok := a.Accept(&r, agent.now); ok {
					if present := a.Report(&r, q, agent.now); !q.StatsQuery {
						one := pendingOf(&in, &r, q)
						a.Judge(&in, &r, q, &one, agent.now, present)
					}
				}
				if agent.checkReplies(); !receipts {
					agent.check()
				}
			}
		}
	})
}
