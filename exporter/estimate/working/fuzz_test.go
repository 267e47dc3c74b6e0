package working

import (
	"encoding/binary"
	"encoding/json"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
)

// FuzzEvaluate takes numbers and delays as a load server may send them: the report has no value that JSON has not, and none
// that is out of its range.
func FuzzEvaluate(f *testing.F) {
	f.Add(make([]byte, 29*20), int64(0), int64(time.Second))
	f.Add([]byte{}, int64(0), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, from, to int64) {
		var all []Packet
		for ; len(b) >= 29 && len(all) < 500; b = b[29:] {
			word := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[i:])) }
			r := record.Packet{Packet: sample.Packet{Seq: uint64(b[0]) + uint64(len(all)), ReverseSeq: uint64(word(1))}, Restarts: uint64(b[28] & 1)}
			r.Outcome = record.Outcome(b[27] % 3)
			at := start.Add(time.Duration(len(all)) * 10 * ms)
			stamp := func(t instant.Time) sample.Stamp { return sample.Stamp{At: t, Origin: sample.Kernel} }
			forward, reverse := time.Duration(word(9)>>2), time.Duration(word(17)>>2) // a packet's timestamp is within 68 years of now
			r.T1, r.T2, r.T3, r.T4 = stamp(at), stamp(at.Add(forward)), stamp(at.Add(reverse)), stamp(at.Add(10*ms))
			r.Forward, r.Reverse = sample.Delay{Value: forward, Bound: ms, Reason: sample.OK}, sample.Delay{Value: reverse, Bound: ms, Reason: sample.Reason(b[25] & 3)}
			r.TooLate = [2]bool{b[26]&1 > 0, b[26]&2 > 0}
			all = append(all, Keep(&r))
		}
		load := Load{sample.Forward, Span{start.Add(time.Duration(from)), start.Add(time.Duration(to))}}
		for _, p := range Evaluate(all, Span{start, start.Add(time.Second)}, []Load{load}) {
			if _, err := json.Marshal(p); err != nil {
				t.Fatal(err)
			}
			for _, d := range sample.Directions() {
				w := p.Way(d)
				switch {
				case w.Lost > w.Decided || w.Decided > p.Packets || w.Loss != nil && (*w.Loss < 0 || *w.Loss > 1):
					t.Errorf("%+v", w)
				case w.Variation != nil && (w.Variation.P50 < 0 || w.Variation.P95 != nil && *w.Variation.P95 < w.Variation.P50):
					t.Errorf("variation %+v", w.Variation)
				case w.R != nil && (*w.R < 0 || *w.R > 100):
					t.Errorf("R %v", *w.R)
				}
			}
			if p.RoundTrips != nil && *p.RoundTrips <= 0 {
				t.Errorf("%v round trips", *p.RoundTrips)
			}
		}
	})
}
