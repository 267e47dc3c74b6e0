package udptraffic_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

const start = instant.Time(1_800_000_000_000_000_000)

func kernel(ms int) sample.Stamp {
	return sample.Stamp{At: start.Add(time.Duration(ms) * time.Millisecond), Origin: sample.Kernel}
}

// sentEvery returns n packets of 100 bytes at an interval of 10 ms.
func sentEvery(n int) (stream.Plan, *stream.Sent) {
	p := stream.Plan{Segments: []stream.Segment{{PayloadBytes: 100, Interval: 10 * time.Millisecond, Burst: 1, Bursts: n}}}
	s := &stream.Sent{Planned: n}
	for i := range n {
		s.Packets = append(s.Packets, stream.SentPacket{Stamp: kernel(10 * i), Due: kernel(10 * i).At})
	}
	return p, s
}

type arrival struct {
	seq    uint32
	ms     int
	damage stream.Damage
}

func received(all ...arrival) *stream.Received {
	r := &stream.Received{}
	for _, a := range all {
		r.Packets = append(r.Packets, stream.ReceivedPacket{Seq: a.seq, Stamp: kernel(a.ms), PayloadBytes: 100, Damage: a.damage})
	}
	return r
}

func TestJoinCountsEachOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		arrivals []arrival
		refuse   []int
		untried  int
		withheld int // of those refused
		want     udptraffic.Counts
	}{
		"all arrive in order": {
			arrivals: []arrival{{seq: 0}, {seq: 1}, {seq: 2}, {seq: 3}},
			want:     udptraffic.Counts{Planned: 4, Sent: 4, Arrived: 4},
		},
		"none arrives": {want: udptraffic.Counts{Planned: 4, Sent: 4, Lost: 4}},
		// RFC 5560: a loss stays a loss, however many copies of other packets arrive.
		"a duplicate does not cancel a loss": {
			arrivals: []arrival{{seq: 0}, {seq: 1}, {seq: 1}, {seq: 1}, {seq: 3}},
			want:     udptraffic.Counts{Planned: 4, Sent: 4, Arrived: 3, Lost: 1, Duplicated: 2},
		},
		"a late copy is not reordered": {
			arrivals: []arrival{{seq: 0}, {seq: 1}, {seq: 2}, {seq: 3}, {seq: 0}},
			want:     udptraffic.Counts{Planned: 4, Sent: 4, Arrived: 4, Duplicated: 1},
		},
		"a number below the next expected is reordered": {
			arrivals: []arrival{{seq: 2}, {seq: 0}, {seq: 1}, {seq: 3}},
			want:     udptraffic.Counts{Planned: 4, Sent: 4, Arrived: 4, Reordered: 2},
		},
		"a refused packet is not lost": {
			refuse: []int{1, 2}, arrivals: []arrival{{seq: 0}},
			want: udptraffic.Counts{Planned: 4, Refused: 2, Sent: 2, Arrived: 1, Lost: 1},
		},
		"a withheld packet is not lost": {
			refuse: []int{1, 2, 3}, withheld: 2, arrivals: []arrival{{seq: 0}},
			want: udptraffic.Counts{Planned: 4, Refused: 1, Withheld: 2, Sent: 1, Arrived: 1},
		},
		"a packet not tried is not lost": {
			untried: 3, arrivals: []arrival{{seq: 0}},
			want: udptraffic.Counts{Planned: 4, NotTried: 3, Sent: 1, Arrived: 1},
		},
		"a number that was not sent is unsent": {
			refuse: []int{1}, untried: 1, arrivals: []arrival{{seq: 0}, {seq: 1}, {seq: 3}, {seq: 1 << 31}},
			want: udptraffic.Counts{Planned: 4, NotTried: 1, Refused: 1, Sent: 2, Arrived: 1, Lost: 1, Unsent: 3},
		},
		"a packet with damaged copies only is lost": {
			arrivals: []arrival{{seq: 0, damage: stream.Truncated}, {seq: 1, damage: stream.BitErrors}, {seq: 2}, {seq: 3}},
			want:     udptraffic.Counts{Planned: 4, Sent: 4, Arrived: 2, Lost: 2, Damaged: [5]int{0, 1, 0, 1, 0}},
		},
		"an intact copy after a damaged one counts": {
			arrivals: []arrival{{seq: 0, damage: stream.Overwritten}, {seq: 0}, {seq: 1}, {seq: 2}, {seq: 3}},
			want:     udptraffic.Counts{Planned: 4, Sent: 4, Arrived: 4, Damaged: [5]int{0, 0, 1, 0, 0}},
		},
		"a damaged copy is no duplicate": {
			arrivals: []arrival{{seq: 0}, {seq: 0, damage: stream.Overwritten}, {seq: 1}, {seq: 2}, {seq: 3}},
			want:     udptraffic.Counts{Planned: 4, Sent: 4, Arrived: 4, Damaged: [5]int{0, 0, 1, 0, 0}},
		},
		"the number in a damaged header is ignored": {
			arrivals: []arrival{{seq: 0}, {seq: 1, damage: stream.BadHeader}, {seq: 1 << 30, damage: stream.BadHeader}},
			want:     udptraffic.Counts{Planned: 4, Sent: 4, Arrived: 1, Lost: 3, Damaged: [5]int{0, 0, 0, 0, 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := sentEvery(4)
			s.Packets = s.Packets[:4-c.untried]
			for _, i := range c.refuse {
				s.Packets[i].Stamp = sample.Stamp{}
			}
			s.Refused = len(c.refuse) - c.withheld
			packets, got := udptraffic.Join(p, 28, s, received(c.arrivals...))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(packets) != len(s.Packets) {
				t.Errorf("%d packets of %d tried", len(packets), len(s.Packets))
			}
			if got.Sent != got.Arrived+got.Lost || got.Planned != got.Sent+got.Refused+got.Withheld+got.NotTried {
				t.Errorf("packets are not conserved: %+v", got)
			}
		})
	}
}

// A receiver lists a limited number of duplicates, and counts the others.
func TestJoinCountsDuplicatesWithoutAnEntry(t *testing.T) {
	p, s := sentEvery(1)
	r := received(arrival{seq: 0}, arrival{seq: 0}, arrival{seq: 0, damage: stream.BadHeader})
	r.Overflow, r.CorruptPackets = 10, 4 // 3 of them without an entry
	if _, c := udptraffic.Join(p, 28, s, r); c.Duplicated != 1+7 || c.Arrived != 1 {
		t.Errorf("%+v", c)
	}
	for _, r.CorruptPackets = range []int{-1, 0, math.MaxInt} {
		for _, r.Overflow = range []uint64{0, 1 << 63, 1<<64 - 1} {
			if _, c := udptraffic.Join(p, 28, s, r); c.Duplicated < 1 || c.Arrived != 1 {
				t.Errorf("%+v of %d damaged, %d without an entry", c, r.CorruptPackets, r.Overflow)
			}
		}
	}
}

func TestJoinTakesTheFirstIntactCopysStamp(t *testing.T) {
	p, s := sentEvery(3)
	packets, _ := udptraffic.Join(p, 28, s, received(
		arrival{seq: 0, ms: 20, damage: stream.BitErrors}, arrival{seq: 0, ms: 25}, arrival{seq: 0, ms: 30},
		arrival{seq: 1, ms: 40, damage: stream.Truncated}, arrival{seq: 1, ms: 45, damage: stream.BitErrors},
	))
	for i, want := range []struct {
		at     sample.Stamp
		copies uint16
		damage stream.Damage
		lost   bool
	}{{kernel(25), 2, stream.BitErrors, false}, {kernel(40), 0, stream.Truncated, true}, {sample.Stamp{}, 0, stream.Intact, true}} {
		if p := packets[i]; p.Arrived != want.at || p.Copies != want.copies || p.Damage != want.damage || p.Lost() != want.lost {
			t.Errorf("packet %d: %+v, want %+v", i, p, want)
		}
	}
}

func TestJoinSetsSegmentsAndSizes(t *testing.T) {
	p := stream.Plan{Segments: []stream.Segment{
		{PayloadBytes: 100, Burst: 1, Bursts: 2, Interval: time.Millisecond},
		{PayloadBytes: 1000, Burst: 3, Bursts: 1, Interval: time.Millisecond},
	}}
	s := &stream.Sent{Planned: 5}
	for i := range 4 { // the last was not tried
		s.Packets = append(s.Packets, stream.SentPacket{Stamp: kernel(i)})
	}
	packets, c := udptraffic.Join(p, 48, s, received())
	var got [][2]int
	for _, p := range packets {
		got = append(got, [2]int{int(p.Segment), int(p.IPBytes)})
	}
	if diff := cmp.Diff([][2]int{{0, 148}, {0, 148}, {1, 1048}, {1, 1048}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.NotTried != 1 {
		t.Errorf("%+v", c)
	}
}

// Arbitrary records of a remote end, such as more packets than planned, must not break the counts.
func FuzzJoinConservesPackets(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, uint8(4), uint8(4))
	f.Add([]byte{0x10, 0x41, 0xff, 3, 3}, uint8(9), uint8(4))
	f.Fuzz(func(t *testing.T, outcomes []byte, tried, planned uint8) {
		p, s := sentEvery(int(planned)%64 + 1)
		_, many := sentEvery(int(tried) % 80)
		s.Packets = many.Packets
		r := &stream.Received{}
		for i, b := range outcomes {
			r.Packets = append(r.Packets, stream.ReceivedPacket{Seq: uint32(b & 0x3f), Damage: stream.Damage(b >> 6), Stamp: kernel(i)})
		}
		packets, c := udptraffic.Join(p, 28, s, r)
		switch {
		case c.Sent != c.Arrived+c.Lost, c.Planned != c.Sent+c.Refused+c.Withheld+c.NotTried, c.NotTried < 0:
			t.Errorf("sent packets are not conserved: %+v", c)
		case len(outcomes) < c.Arrived+c.Duplicated+c.Unsent:
			t.Errorf("more packets arrived than were received: %+v of %d", c, len(outcomes))
		case len(packets) > c.Planned:
			t.Errorf("%d packets of %d planned", len(packets), c.Planned)
		}
	})
}
