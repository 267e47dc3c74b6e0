package stream

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/testseed"
)

func someSent(rng *rand.Rand, n int) *Sent {
	s := &Sent{}
	at := instant.Time(1_800_000_000_000_000_000)
	for range n {
		at = at.Add(940 * time.Microsecond)
		p := SentPacket{Due: at + instant.Time(rng.IntN(100))}
		if rng.IntN(50) > 0 {
			p.Stamp = sample.Stamp{At: at.Add(time.Duration(rng.IntN(100_000))), Origin: sample.Kernel, TXUncertainty: time.Duration(rng.IntN(5000))}
		}
		s.Packets = append(s.Packets, p)
	}
	return s
}

func someReceived(rng *rand.Rand, n int) *Received {
	r := &Received{}
	at := instant.Time(1_800_000_000_000_000_000)
	for i := range n {
		at = at.Add(940 * time.Microsecond)
		p := ReceivedPacket{Seq: uint32(i), PayloadBytes: 1472, Stamp: sample.Stamp{At: at.Add(time.Duration(rng.IntN(100_000))), Origin: sample.Kernel}}
		if rng.IntN(50) == 0 {
			p.Damage, p.PayloadBytes, p.Seq = Damage(rng.IntN(5)), uint16(rng.IntN(1<<16)), rng.Uint32()
		}
		r.Packets = append(r.Packets, p)
	}
	return r
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
	sent, received := someSent(rng, 5000), someReceived(rng, 5000)
	sent.Packets = append(sent.Packets,
		SentPacket{Due: math.MaxInt64, Stamp: sample.Stamp{At: math.MinInt64, Origin: sample.User, TXUncertainty: math.MaxInt64}},
		SentPacket{Due: math.MinInt64})
	received.Packets = append(received.Packets,
		ReceivedPacket{Seq: math.MaxUint32, Stamp: sample.Stamp{At: math.MinInt64, Origin: sample.User}},
		ReceivedPacket{Stamp: sample.Stamp{At: math.MaxInt64, Origin: sample.User}, PayloadBytes: math.MaxUint16})
	b := sent.AppendTo(nil)
	gotSent, err := ParseSent(b, MaxPackets)
	if err != nil || !cmp.Equal(gotSent, sent.Packets) {
		t.Errorf("sent, %v: %s", err, cmp.Diff(sent.Packets, gotSent))
	}
	c := received.AppendTo(nil)
	gotReceived, err := ParseReceived(c, MaxPackets)
	if err != nil || !cmp.Equal(gotReceived, received.Packets) {
		t.Errorf("received, %v: %s", err, cmp.Diff(received.Packets, gotReceived))
	}
	t.Logf("%.1f bytes a packet sent, %.1f received", float64(len(b))/5002, float64(len(c))/5002)
	for n := 0; n < len(b); n += 1 + len(b)/100 {
		if _, err := ParseSent(b[:n], MaxPackets); err == nil {
			t.Fatalf("%d of %d bytes were parsed without an error", n, len(b))
		}
	}
	if _, err := ParseReceived(append(c, 0), MaxPackets); err == nil {
		t.Error("an extra byte was accepted")
	}
	if _, err := ParseSent(c, MaxPackets); err == nil {
		t.Error("records of a receiver were parsed as a sender's")
	}
}

// The memory is bounded by a small multiple of the input, whatever it claims.
func TestRecordsWithFalseCountsUseLittleMemory(t *testing.T) {
	claim := []byte{sentVersion, 0xff, 0xff, 0xff, 0x01, 0, 0, 0, 0}
	if allocated := testing.AllocsPerRun(100, func() { _, _ = ParseSent(claim, MaxPackets) }); allocated > 1 {
		t.Errorf("%v allocations", allocated)
	}
	if p, err := ParseSent(claim, MaxPackets); err == nil || len(p) > 0 {
		t.Errorf("%d packets, %v", len(p), err)
	}
}

// The other end can make this one allocate memory for the planned packets, and no more.
func TestRecordsOfMoreThanThePlanAreRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const planned = 640
	for n, want := range map[int]bool{planned: true, planned + 1: false} {
		if p, err := ParseSent(someSent(rng, n).AppendTo(nil), planned); (err == nil) != want || want != (len(p) == n) {
			t.Errorf("%d packets sent of %d: %d were parsed, %v", n, planned, len(p), err)
		}
	}
	for n, want := range map[int]bool{planned + planned/64 + slack: true, planned + planned/64 + slack + 1: false} {
		if p, err := ParseReceived(someReceived(rng, n).AppendTo(nil), planned); (err == nil) != want || want != (len(p) == n) {
			t.Errorf("%d packets received of %d: %d were parsed, %v", n, planned, len(p), err)
		}
	}
}

func FuzzParseRecords(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	f.Add(someSent(rng, 20).AppendTo(nil))
	f.Add(someReceived(rng, 20).AppendTo(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := ParseSent(b, MaxPackets); err == nil {
			s := Sent{Packets: p}
			if again, err := ParseSent(s.AppendTo(nil), MaxPackets); err != nil || !cmp.Equal(again, p) {
				t.Errorf("sent %x: %v: %s", b, err, cmp.Diff(p, again))
			}
			if len(p) > len(b) {
				t.Errorf("%d packets of %d bytes", len(p), len(b))
			}
		}
		if p, err := ParseReceived(b, MaxPackets); err == nil {
			r := Received{Packets: p}
			if again, err := ParseReceived(r.AppendTo(nil), MaxPackets); err != nil || !cmp.Equal(again, p) {
				t.Errorf("received %x: %v: %s", b, err, cmp.Diff(p, again))
			}
			if len(p) > len(b) {
				t.Errorf("%d packets of %d bytes", len(p), len(b))
			}
		}
	})
}
