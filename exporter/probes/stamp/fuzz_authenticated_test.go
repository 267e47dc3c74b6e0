package stamp

import (
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
)

// A sender without the key changes no state of an authenticated session: its packets are discarded and counted.
// Packets sealed with the key are read without a fault, whatever their content.
func FuzzAuthenticatedReplies(f *testing.F) {
	const run, asked = 7, 20
	peer, key := netip.MustParseAddrPort("127.0.0.1:862"), stampfmt.NewKey([]byte("secret"))
	for _, seq := range []uint32{3, asked, 1 << 31} {
		p := stampfmt.ReflectorPacket{Seq: seq, SenderSeq: seq, SenderT1: timefmt.NTP.Encode(wheelStart, 0), SenderTTL: 255}
		f.Add(p.AppendAuthenticatedTo(nil, key))
		rc := stampfmt.Receipt{Filled: true, Words: 4, Run: run, Epoch: 5, Next: seq + 1, Base: seq + 1, Received: seq + 1, Tx: 4}
		f.Add(stampfmt.PutTLVHMAC(stampfmt.AppendTLVHMAC(rc.AppendTo(p.AppendAuthenticatedTo(nil, key))), stampfmt.AuthenticatedBytes, key))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, of := range remotes() {
			for _, sealed := range []bool{false, true} {
				s := of.session(t, peer, run, asked, key)
				pendingReply := append([]byte{}, b...)
				if sealed {
					seal(pendingReply, key)
				} else if len(pendingReply) >= stampfmt.AuthenticatedBytes {
					seal(pendingReply, stampfmt.NewKey([]byte("another")))
				}
				at := wheelStart.Add(time.Millisecond)
				before := bothOf(s.account)
				s.received(0, &tstamp.In{Payload: pendingReply, Peer: peer, Stamp: sample.Stamp{At: at, Origin: sample.Kernel}, At: at}, sched.Now())
				checkCounts(t, s.account)
				n := uint64(0)
				for _, of := range s.account.Faults().Discarded {
					n += of
				}
				if after := bothOf(s.account); !sealed && (n != 1 || after != before || s.account.Epoch() != 0) {
					t.Errorf("%x lacks the key: %d discarded, %+v, before it %+v", b, n, after, before)
				}
			}
		}
	})
}

// seal writes checksum and HMACs of a whole reply where it has space for them.
func seal(b []byte, key *stampfmt.Key) {
	if len(b) < stampfmt.AuthenticatedBytes {
		return
	}
	if at := len(b) - hmacTLVBytes; at >= stampfmt.AuthenticatedBytes {
		copy(b[at:], stampfmt.PutTLVHMAC(stampfmt.AppendTLVHMAC(append([]byte{}, b[:at]...)), stampfmt.AuthenticatedBytes, key)[at:])
		stampfmt.SealCRC(b, true)
		stampfmt.PutTLVHMAC(b, stampfmt.AuthenticatedBytes, key)
	}
	stampfmt.PutHMAC(b, key)
}
