package tcp

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/tests/testseed"
)

// Records that pass the checks of the messages, and have impossible times, give no negative duration, no delay of years, and no point
// far from the run: those of a store would need a shard for each.
func TestImpossibleTimesOfAnEndGiveNoImpossibleDurations(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	now := instant.Now()
	times := []instant.Time{1, 2, 1e9, now, now.Add(time.Second), now.Add(-time.Hour), 1 << 62, math.MaxInt64 - 1, math.MaxInt64}
	one := func() instant.Time { return times[rng.IntN(len(times))] }
	for range 300 {
		r := stamped(40 * ms)
		from := &r.Sender[0]
		early, late := from.Sent[0].First.Add(-24*time.Hour), from.Sent[len(from.Sent)-1].First.Add(25*time.Hour)
		r.Receiver[0].Payload, from.Payload = 1<<40, 1<<40
		for i := range from.Sent {
			if rng.IntN(3) == 0 {
				s := &from.Sent[i]
				s.Written, s.Scheduled, s.First, s.Last, s.Acked = one(), one(), one(), one(), one()
			}
		}
		for i := range from.Acks {
			if rng.IntN(3) == 0 {
				from.Acks[i].At, from.Acks[i].Early = one(), 24*time.Hour
			}
		}
		if tcpstamp.CheckSent(from.Sent, from.Payload) != nil || tcpstamp.CheckAcks(from.Acks, from.Payload) != nil {
			continue
		}
		d := evaluateStamps(r, nil)
		if _, err := json.Marshal(d); err != nil {
			t.Fatal(err)
		}
		d.drawStamps()
		for what, all := range map[string]map[string]float64{"socket": d.Delay.Socket, "host queue": d.Delay.HostQueue, "resend": d.Delay.Resend} {
			for rank, v := range all {
				if v < 0 {
					t.Fatalf("%s, quantile %s: %g s", what, rank, v)
				}
			}
		}
		for _, row := range d.Delay.all {
			if at := instant.Time(d.Delay.Begin + row[2]); row[3] > int64(24*time.Hour) || row[3] < -int64(24*time.Hour) || at < early || at > late {
				t.Fatalf("byte sent at %v: delay %v", at, time.Duration(row[3]))
			}
		}
		if lead := d.Split.Lead; lead != nil && *lead > 86400 {
			t.Fatalf("an acknowledgment comes %g s early", *lead)
		}
		if d.Acks != nil && len(d.Acks.values) > 0 && d.Acks.values[0] < 0 {
			t.Fatalf("time between acknowledgments %v", d.Acks.values[0])
		}
	}
}
