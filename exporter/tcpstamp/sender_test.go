package tcpstamp

import (
	"testing"
	"time"

	"oneway.example/exporter/instant"
)

const ms = instant.Time(time.Millisecond)

// write writes bytes for a time at a rate in bytes a second, in messages of size bytes.
func write(s *Sender, size int64, rate float64, d time.Duration, each func(w Write, from int64, now instant.Time)) (payload int64) {
	begin := instant.Time(1e12)
	for now := begin; now.Sub(begin) < d; {
		for end := payload + size; payload < end; {
			w := s.Next(payload, end, now)
			if each != nil {
				each(w, payload, now)
			}
			now += instant.Time(float64(w.End-payload) / rate * 1e9)
			payload = w.End
		}
	}
	return payload
}

func TestSamplesAreNestedAndNoFasterThanTheLimit(t *testing.T) {
	for _, rate := range []float64{1e4, 1e6, 12.5e6, 1.25e9} {
		s := NewSender(0, 0)
		payload := write(s, 128<<10, rate, 4*time.Second, nil)
		sent, acks := s.Records(payload)
		if err := CheckSent(withTransmissions(sent), payload); err != nil || len(acks) > 0 {
			t.Fatalf("%v B/s: %v, %d acknowledgments", rate, err, len(acks))
		}
		for i := range sent {
			if sent[i].Offset%s.grid != 0 {
				t.Fatalf("%v B/s: byte %d, grid %d", rate, sent[i].Offset, s.grid)
			}
		}
		if most := int(4 * time.Second / MinSpacing); len(sent) > most+spacedOver || rate > 1e6 && len(sent) < most/8 {
			t.Errorf("%v B/s: %d samples, want %d to %d", rate, len(sent), most/8, most)
		}
	}
}

func withTransmissions(s []Sent) []Sent {
	for i := range s {
		s[i].First, s[i].Last, s[i].Transmissions = s[i].Written, s[i].Written, 1
	}
	return s
}

func TestStampsFindTheirSample(t *testing.T) {
	s := NewSender(0, 0)
	for x := int64(0); x < 10*Grid; x += Grid {
		if w := s.Next(x, 1<<20, 1e12+instant.Time(x)*ms); w != (Write{x + Grid, WantAll, false}) {
			t.Fatalf("%+v", w)
		}
	}
	s.Stamp(Stamp{Event: Scheduled, Offset: 2 * Grid, At: 10})
	for _, at := range []instant.Time{11, 15} {
		s.Stamp(Stamp{Event: Left, Offset: 2 * Grid, At: at})
	}
	s.Stamp(Stamp{Event: Scheduled, Offset: 2 * Grid, At: 14})
	s.Stamp(Stamp{Event: Acked, Offset: 2 * Grid, At: 20, Early: 2})
	s.Stamp(Stamp{Event: Acked, Offset: 2*Grid + 1, At: 21})
	sent, _ := s.Records(9 * Grid)
	want := Sent{Offset: 2 * Grid, Written: sent[1].Written, Scheduled: 10, First: 11, Last: 15, Acked: 20, AckedEarly: 2, Transmissions: 2}
	if len(sent) != 9 || sent[1] != want {
		t.Errorf("%d samples, %+v, want %+v", len(sent), sent[1], want)
	}
}

func TestBurstsAreConsecutiveSegmentsAndRare(t *testing.T) {
	const mss = 1448
	for _, rate := range []float64{1e6, 125e6} {
		s := NewSender(mss, 4*time.Second/MaxBursts)
		inBurst, total := 0.0, 0.0
		payload := write(s, 128<<10, rate, 4*time.Second, func(w Write, from int64, now instant.Time) {
			total += float64(w.End - from)
			if w.Record {
				inBurst += float64(w.End - from)
				if w.End-from > mss || w.Wants == WantNothing {
					t.Fatalf("segment of %d bytes wants %d", w.End-from, w.Wants)
				}
				s.Stamp(Stamp{Event: Acked, Offset: w.End, At: now + 50*ms, Through: w.End, Known: true})
			}
		})
		_, acks := s.Records(payload)
		if err := CheckAcks(acks, payload); err != nil {
			t.Fatal(err)
		}
		if bursts := len(acks) / BurstSegments; bursts < 4 || bursts > MaxBursts || inBurst/total > 0.26 {
			t.Errorf("%v B/s: %d acknowledgments, %.2f of the bytes in bursts", rate, len(acks), inBurst/total)
		}
	}
}

// The kernel stamps each segment that one acknowledgment covers.
func TestOneAcknowledgmentIsRecordedOnce(t *testing.T) {
	for _, known := range []bool{true, false} {
		s := NewSender(1000, 0)
		write(s, 1000, 1e6, 300*time.Millisecond, nil)
		b := s.bursts[0]
		at := instant.Time(2e12)
		for i := int64(1); i <= 20; i++ {
			through := b.from + (i+1)/2*2000
			s.Stamp(Stamp{Event: Acked, Offset: b.from + i*1000, At: at.Add(time.Duration((i+1)/2)*time.Millisecond + time.Duration(i%2)*time.Microsecond), Through: through, Known: known})
		}
		s.Stamp(Stamp{Event: Acked, Offset: b.from + 1000, At: at + 1e9, Through: b.from + 1000, Known: known})
		if len(s.acks) != 10 || s.acks[9].Offset != b.from+20_000 {
			t.Errorf("known %v: %d acknowledgments: %+v", known, len(s.acks), s.acks)
		}
	}
}

func TestChecksRejectWhatNoEndCollects(t *testing.T) {
	sent := []Sent{{Offset: Grid}, {Offset: 2 * Grid, First: 5, Last: 6, Transmissions: 2}}
	received := []Received{{Offset: Grid, At: 5, Early: 3}, {Offset: 3 * Grid}}
	acks := []Ack{{Burst: 1, Offset: 10, At: 5}, {Burst: 1, Offset: 20, At: 6}, {Burst: 2, Offset: 30, At: 7}}
	const payload = 4 * Grid
	if CheckSent(sent, payload) != nil || CheckReceived(received, payload) != nil || CheckAcks(acks, payload) != nil {
		t.Fatal("good records were rejected")
	}
	for i, change := range []func(x *Sent){
		func(x *Sent) { x.Offset = Grid }, func(x *Sent) { x.Offset++ }, func(x *Sent) { x.Offset = 5 * Grid },
		func(x *Sent) { x.Transmissions = 0 }, func(x *Sent) { x.Transmissions = -1 }, func(x *Sent) { x.Last = 0 },
		func(x *Sent) { x.AckedEarly = -1 }, func(x *Sent) { x.Acked = -1 },
	} {
		bad := append([]Sent{}, sent...)
		if change(&bad[1]); CheckSent(bad, payload) == nil {
			t.Errorf("sent %d was accepted: %+v", i, bad[1])
		}
	}
	for i, change := range []func(x *Received){
		func(x *Received) { x.Offset = -Grid }, func(x *Received) { x.Early = -1 }, func(x *Received) { x.Doubt = -1 },
	} {
		bad := append([]Received{}, received...)
		if change(&bad[1]); CheckReceived(bad, payload) == nil {
			t.Errorf("received %d was accepted: %+v", i, bad[1])
		}
	}
	for i, change := range []func(x *Ack){
		func(x *Ack) { x.Burst = 0 }, func(x *Ack) { x.Burst = MaxBursts }, func(x *Ack) { x.Offset = 10 },
		func(x *Ack) { x.Offset = payload + 1 }, func(x *Ack) { x.At = 0 }, func(x *Ack) { x.Early = -1 },
	} {
		bad := append([]Ack{}, acks...)
		if change(&bad[1]); CheckAcks(bad, payload) == nil {
			t.Errorf("ack %d was accepted: %+v", i, bad[1])
		}
	}
	if CheckSent(make([]Sent, MaxSent+1), payload) == nil || (&Handshake{PeerScale: 15}).Check() == nil || (&Handshake{PeerScale: -1}).Check() != nil {
		t.Error("limits")
	}
}

func TestSenderDoesNotAllocate(t *testing.T) {
	s, now, x := NewSender(1448, 10*time.Millisecond), instant.Time(1e12), int64(0)
	if n := testing.AllocsPerRun(100_000, func() {
		w := s.Next(x, x+128<<10, now)
		for _, e := range []Event{Scheduled, Left, Acked} {
			s.Stamp(Stamp{Event: e, Offset: w.End, At: now, Through: w.End, Known: true})
		}
		x, now = w.End, now+10_000
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSender(b *testing.B) {
	s, now, x := NewSender(1448, 10*time.Millisecond), instant.Time(1e12), int64(0)
	for b.Loop() {
		w := s.Next(x, x+128<<10, now)
		for _, e := range []Event{Scheduled, Left, Acked} {
			s.Stamp(Stamp{Event: e, Offset: w.End, At: now, Through: w.End, Known: true})
		}
		x, now = w.End, now+10_000
	}
}
