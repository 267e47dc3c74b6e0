package incident

import (
	"math/rand/v2"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/tests/testseed"
)

// floorsOf are the changes of the floor of a path with these smallest round trips, a packet a second with a queue; 0: no reply.
func floorsOf(rng *rand.Rand, f *floor, begin time.Time, trips func(at time.Duration) time.Duration, long time.Duration) (found []floorStep) {
	for at := time.Duration(0); at < long; at += time.Second {
		trip, sent := trips(at), instant.FromTime(begin.Add(at))
		p := lost(uint64(at), sent)
		if trip > 0 {
			p = replied(uint64(at), sent, trip/2+exponential(rng, 3*ms), trip/2)
		}
		if step, changed := f.add(p, begin.Add(at)); changed {
			found = append(found, step)
		}
	}
	return found
}

func TestAFloorThatMovesAndStaysIsOneEvent(t *testing.T) {
	const long, moves = 6 * time.Hour, 2 * time.Hour
	begin := time.Unix(1_790_000_000, 0)
	for name, c := range map[string]struct {
		after time.Duration // the round trip after moves
		until time.Duration // it is 30 ms again
		want  int
	}{
		"a longer route":               {50 * ms, long, 1},
		"a shorter route":              {20 * ms, long, 1},
		"there and back":               {50 * ms, moves + time.Hour, 2},
		"ten minutes are no new floor": {50 * ms, moves + 10*time.Minute, 0},
		"a fast time is no new floor":  {20 * ms, moves + 9*time.Minute, 0},
		"less than a fifth and 5 ms":   {34 * ms, long, 0},
		"an outage is no change":       {0, moves + time.Hour, 0},
		"nothing":                      {30 * ms, long, 0},
		"a little more than a fifth":   {37 * ms, long, 1},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
			found := floorsOf(rng, &floor{}, begin, func(at time.Duration) time.Duration {
				if at >= moves && at < c.until {
					return c.after
				}
				return 30 * ms
			}, long)
			if len(found) != c.want {
				t.Fatalf("%+v, want %d", found, c.want)
			}
			if c.want == 0 {
				return
			}
			f := found[0]
			if off := f.since.Sub(begin.Add(moves)); off < 0 || off > floorTime+time.Second || f.before-30*ms > ms || f.before < 30*ms || f.after-c.after > ms || f.after < c.after {
				t.Errorf("%v after it from %v to %v", off, f.before, f.after)
			}
		})
	}
}

// TestLoadTestsAreNoPartOfAFloor: a test every minute leaves no block.
func TestLoadTestsAreNoPartOfAFloor(t *testing.T) {
	f, rng, begin := &floor{}, rand.New(rand.NewPCG(testseed.Of(t), 1)), time.Unix(1_790_000_000, 0)
	found := floorsOf(rng, f, begin, func(at time.Duration) time.Duration {
		if at > time.Hour && at%time.Minute == 0 {
			f.pause()
		}
		if at > time.Hour {
			return 90 * ms
		}
		return 30 * ms
	}, 3*time.Hour)
	if len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// TestFewPacketsAreNoFloor: a packet a minute has its blocks of ten minutes, and the change of the floor is found in them.
func TestFewPacketsAreNoFloor(t *testing.T) {
	f, begin := &floor{}, time.Unix(1_790_000_000, 0)
	var found []floorStep
	for i := range 120 {
		trip := 30 * ms
		if i >= 80 {
			trip = 60 * ms
		}
		if step, changed := f.add(replied(uint64(i), instant.FromTime(begin), trip/2, trip/2), begin.Add(time.Duration(i)*time.Minute)); changed {
			found = append(found, step)
		}
	}
	if len(found) != 1 || len(f.blocks) != floorNew {
		t.Errorf("%+v, %d blocks", found, len(f.blocks))
	}
}

// TestEventsOfPackets: a rise of delay, of loss, and a restart of the remote end are events of the path, with one series each.
func TestEventsOfPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, onePath())
		tables := b.recorder.Tables().Listen(100)
		defer tables.Close()
		b.send(20*time.Minute, 30*ms, "a")
		if got := b.sink.All(metric.PathEvent); len(got) != 0 {
			t.Fatalf("a calm path has the events %v", got)
		}
		begin := time.Now()
		b.send(2*time.Minute, 400*ms, "a")
		risen, ok := b.sink.Value(metric.PathEvent, "a", "delay_risen")
		if at := time.Unix(0, int64(risen*1e9)); !ok || at.Before(begin) || at.Sub(begin) > time.Minute {
			t.Errorf("the delay has risen %v after it did", at.Sub(begin))
		}
		b.send(2*time.Minute, 0, "a")
		if _, ok := b.sink.Value(metric.PathEvent, "a", "loss_risen"); !ok {
			t.Error("an outage is no event")
		}
		p := replied(b.seq+1, instant.FromTime(time.Now()), 30*ms, 30*ms)
		p.Restarts = 1
		b.recorder.Packets().Record(p)
		time.Sleep(time.Second) // simulated time (synctest)
		if _, ok := b.sink.Value(metric.PathEvent, "a", "remote_restarted"); !ok || len(b.sink.All(metric.PathEvent)) != 3 {
			t.Errorf("the events are %v", b.sink.All(metric.PathEvent))
		}
		into := make([]record.Table, 100)
		n, _ := tables.Take(into)
		var texts []string
		for _, one := range into[:n] {
			if one.Schema == record.Events {
				texts = append(texts, one.Tags[0]+": "+one.ID)
			}
		}
		form := regexp.MustCompile(`^delay_risen: forward delay of 400 ms, before 30[.0-9]* ms; reverse delay of 400 ms, before 30[.0-9]* ms; round trip delay of 800 ms, before 60[.0-9]* ms$`)
		if len(texts) != 3 || !form.MatchString(texts[0]) {
			t.Errorf("the texts are %q", texts)
		}
	})
}
