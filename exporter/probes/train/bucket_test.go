package train

import (
	"math"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/load/stream"
)

// A token bucket that trains of 25 packets do not empty, and those of 200 do, is a refusal of all sizes; a larger
// one is reported as possible.
func TestBucketLargerThanATrainIsFoundByLongTrains(t *testing.T) {
	const line, rate = 100e6 / 8, 2.5e6 / 8
	for name, c := range map[string]struct {
		bucket        float64
		simulatedPath simulatedPath
		told          float64
		hidden        int
	}{
		"none":                    {0, simulatedPath{}, rate, 195 * 1500 / 2},
		"ten packets":             {15_000, simulatedPath{}, 0, 0},
		"a hundred packets":       {150_000, simulatedPath{}, 0, 0},
		"a thousand packets":      {1_500_000, simulatedPath{}, line, 195 * 1500 / 2},
		"a queue of 150 packets":  {0, simulatedPath{queue: 225_000}, rate, 146 * 1500 / 2},
		"a queue of ten packets":  {0, simulatedPath{queue: 15_000}, rate, 6 * 1500 / 2},
		"two seconds are enough":  {0, simulatedPath{rate: 200e3 / 8}, 200e3 / 8, 20 * 1500 / 2},
		"no long trains, twenty":  {30_000, simulatedPath{}, 0, 0}, // trains of 828 bytes do not empty it
		"no long trains, thirty":  {45_000, simulatedPath{}, line, 20 * 1500 / 2},
		"no long trains, hundred": {150_000, simulatedPath{}, line, 20 * 1500 / 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.simulatedPath
			if r.port, r.bucket, r.line = 1500, c.bucket, line; r.rate == 0 {
				r.rate = rate
			}
			o := DefaultOptions()
			o.PayloadBytes = []int{1472, 800}
			if strings.HasPrefix(name, "no long") {
				o.LongTrainPackets = 0
			}
			d, run := must(t, &r, o)
			summary := d.summary()[0].Text()
			if c.told == 0 {
				if d.Capacity != nil || d.Sizes[0].Median != nil || !strings.Contains(summary, "bucket") || len(run.Notes) == 0 {
					t.Errorf("%+v: %s, notes %q, want a refusal", d, summary, run.Notes)
				}
				s := d.Shaper
				if s == nil || math.Abs(s.Rate-r.rate) > s.RateBound || s.Burst == nil || math.Abs(*s.Burst-c.bucket) > *s.BurstBound {
					t.Fatalf("shaper %v ± %v, burst %v ± %v; want %v B/s after %v B", s.Rate, s.RateBound, *s.Burst, *s.BurstBound, r.rate, c.bucket)
				}
				if s.RateBound > 0.02*s.Rate || *s.BurstBound > 0.05**s.Burst+1500 {
					t.Errorf("the bounds of %v ± %v and %v ± %v are wide", s.Rate, s.RateBound, *s.Burst, *s.BurstBound)
				}
				if told := d.summary()[1].Text(); !strings.Contains(told, "after a burst of") {
					t.Errorf("the summary of the shaper is %q", told)
				}
				return
			}
			near(t, "capacity", d.Capacity, c.told, 0.001)
			if *d.Capacity != *d.Sizes[0].Median || *d.Bound != *d.Sizes[0].Bound || *d.Bound > 0.02*c.told {
				t.Errorf("capacity %v ± %v, that of the size %v ± %v", *d.Capacity, *d.Bound, *d.Sizes[0].Median, *d.Sizes[0].Bound)
			}
			if off := d.HiddenBucket - c.hidden; off < -3*1500 || off > 3*1500 || !strings.Contains(summary, "±") {
				t.Errorf("hidden bucket %d bytes, want %d; %s; %v", d.HiddenBucket, c.hidden, summary, d.LongTrains)
			}
		})
	}
}

func TestTrainsOfFiveToSevenPacketsShowABucket(t *testing.T) {
	for packets := 5; packets <= 7; packets++ {
		o := DefaultOptions()
		o.PayloadBytes, o.TrainPackets, o.LongTrainPackets = []int{1472}, packets, 0
		d, _ := must(t, &simulatedPath{rate: wibro, port: 1500, bucket: 4500, line: 1e9}, o)
		if z := d.Sizes[0]; z.Median != nil || z.Trains["token_bucket"] == 0 {
			t.Errorf("%d packets: %v of %v, trains %v", packets, z.Median, wibro, z.Trains)
		}
	}
}

// The rules, the dashboards and the summary use one capacity: that of the largest unfragmented size.
func TestOneSizeRepresentsTheDirection(t *testing.T) {
	d, _ := must(t, &simulatedPath{rate: wibro, mtu: 1300}, DefaultOptions())
	if z := d.best(); z.PacketBytes != 1228 || d.PacketBytes != 1228 || *d.Capacity != *z.Median {
		t.Errorf("%d B with %v represents the direction, whose capacity is %v", z.PacketBytes, *z.Median, *d.Capacity)
	}
	for _, m := range []*metric.Desc{metric.PathCapacity, metric.PathCapacityBound} {
		if len(m.Labels) != 3 {
			t.Errorf("%s has labels %v, want one value a direction", m.Name, m.Labels)
		}
	}
}

// The bucket is full before some trains only, and of the long ones only two arrive whole: the short trains that have emptied it show it.
func TestBucketThatOnlySomeTrainsFindFullIsMeasured(t *testing.T) {
	const rate, bucket = 1e6 / 8, 10_000
	o := DefaultOptions()
	o.PayloadBytes, o.Trains = []int{1472}, 10
	path := &simulatedPath{rate: rate, port: 1500, line: 1e9 / 8}
	isLong, long := false, 0
	path.watch = func(p stream.Plan) { isLong = p.Segments[len(p.Segments)-1].Burst > o.TrainPackets }
	path.lose = func(n int) bool { return long > 2 && n%10 == 0 }
	path.pace = func(train int) time.Duration {
		path.bucket = float64(train%2) * bucket // others empty it before every second train
		if isLong {
			path.bucket = bucket
			long++
		}
		return 5 * time.Microsecond
	}
	d, run := must(t, path, o)
	if n := d.Sizes[0].Trains; n["clean"] < o.Trains || n["token_bucket"] < 3 || d.Refusal == "" {
		t.Fatalf("trains %v, refusal %q, notes %q; want clean trains, and others that show a bucket", n, d.Refusal, run.Notes)
	}
	s := d.Shaper
	if s == nil || math.Abs(s.Rate-rate) > s.RateBound || s.Burst == nil || math.Abs(*s.Burst-bucket) > *s.BurstBound {
		t.Fatalf("shaper %+v, capacity %v; want %v B/s after %v B", s, d.Capacity, rate, bucket)
	}
}

// The line before the bucket is faster than the sender, so that no train that the bucket passes is clean: those that double empty it.
func TestBucketBehindALineFasterThanTheSenderIsMeasured(t *testing.T) {
	const line = 10e9 / 8
	for name, c := range map[string]struct {
		rate, bucket float64
		packets      int // of the longest train
	}{
		"100 kB":              {20e6 / 8, 100_000, 200},
		"200 kB":              {20e6 / 8, 200_000, 200},
		"60 kB":               {20e6 / 8, 60_000, 100},
		"slow":                {1e6 / 8, 60_000, 100},
		"2000 times slower":   {310e3 / 8, 45_000, 81}, // for which the link needs 2 s
		"at half the pace":    {300e6 / 8, 60_000, 200},
		"larger than a train": {20e6 / 8, 600_000, 200},
		"none":                {600e6 / 8, 0, 200},
	} {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			o.PayloadBytes = []int{1472, 800}
			longest, trains := 0, 0
			path := &simulatedPath{rate: c.rate, bucket: c.bucket, line: line, port: 1500, nic: 20 * time.Microsecond}
			path.watch = func(p stream.Plan) {
				if n := p.Segments[0].Burst; n > o.TrainPackets {
					longest, trains = max(longest, n), trains+len(p.Segments)
				}
			}
			d, run := must(t, path, o)
			if longest > c.packets || longest < c.packets*9/10 || trains > 6 {
				t.Errorf("%d long trains of up to %d packets, want %d packets", trains, longest, c.packets)
			}
			if d.Capacity != nil {
				t.Errorf("capacity %v; want none", *d.Capacity)
			}
			if name == "none" || c.bucket > 200*1500 {
				if d.Shaper != nil || d.Refusal != "" || !strings.Contains(d.refusals()[0], "sent too slowly") {
					t.Errorf("shaper %+v, %q; want none, as trains were sent too slowly", d.Shaper, d.refusals())
				}
				return
			}
			s := d.Shaper
			if s == nil || math.Abs(s.Rate-c.rate) > s.RateBound || s.Burst == nil || math.Abs(*s.Burst-c.bucket) > *s.BurstBound {
				t.Fatalf("shaper %+v of %+v, notes %q, long trains %v; want %v B/s after %v B", s, d, run.Notes, d.LongTrains, c.rate, c.bucket)
			}
			if s.RateBound > 0.02*s.Rate || *s.BurstBound > 0.05**s.Burst+1500 {
				t.Errorf("the bounds of %v ± %v and %v ± %v are wide", s.Rate, s.RateBound, *s.Burst, *s.BurstBound)
			}
			if told := d.summary()[1].Text(); !strings.Contains(told, "after a burst of") || len(run.Notes) != 1 {
				t.Errorf("the summary of the shaper is %q, the notes %q", told, run.Notes)
			}
		})
	}
}

// A train that looks as if it had emptied a bucket, and the next does not, does not end the doubling.
func TestOneTrainThatLooksLikeABucketDoesNotEndTheDoubling(t *testing.T) {
	const rate, bucket = 20e6 / 8, 200_000
	o := DefaultOptions()
	o.PayloadBytes = []int{1472}
	path := &simulatedPath{rate: rate, bucket: bucket, line: 10e9 / 8, port: 1500, nic: 20 * time.Microsecond}
	longest, disturbed := 0, 0
	path.watch = func(p stream.Plan) { longest = max(longest, p.Segments[0].Burst) }
	path.arrival = func(at instant.Time, i int) instant.Time {
		if longest == 50 && i >= 30 { // a host that is late from the 30th packet on
			disturbed++
			at = at.Add(time.Duration(i-30) * 100 * time.Microsecond)
		}
		return at
	}
	d, _ := must(t, path, o)
	if s := d.Shaper; disturbed == 0 || d.LongTrains["token_bucket"] == 0 || s == nil || math.Abs(s.Rate-rate) > s.RateBound || s.Burst == nil || math.Abs(*s.Burst-bucket) > *s.BurstBound {
		t.Errorf("shaper %+v after trains of %d packets, %d packets late, %v; want %v B/s after %v B", s, longest, disturbed, d.LongTrains, rate, bucket)
	}
}

// Random losses shorten trains, but no queue limits them: long trains are sent, and the note has the cause.
func TestRandomLossesAreNoQueue(t *testing.T) {
	for name, queue := range map[string]int{"random losses": 0, "a queue": 20_000} {
		o := DefaultOptions()
		o.PayloadBytes = []int{1472}
		path := &simulatedPath{rate: wibro, port: 1500, queue: queue}
		long := false
		path.watch = func(p stream.Plan) { long = long || p.Segments[0].Burst >= 2*o.TrainPackets }
		if queue == 0 {
			lost := map[int]bool{}
			for i, at := range []int{20, 3, 11} { // of the first three trains
				lost[100+25*i+at] = true
			}
			begun := -1
			path.lose = func(n int) bool {
				if begun < 0 && len(path.plans) > 0 && path.plans[len(path.plans)-1].Segments[0].Burst == o.TrainPackets {
					begun = n
				}
				return begun >= 0 && lost[100+n-begun]
			}
		}
		d, run := must(t, path, o)
		notes, short := strings.Join(run.Notes, "\n"), d.Sizes[0].TrainPackets < o.TrainPackets
		if !short || d.Capacity == nil || long != (queue == 0) || strings.Contains(notes, "random loss") != (queue == 0) || strings.Contains(notes, "limit of a queue") != (queue > 0) {
			t.Errorf("%s: trains of %d packets, capacity %v, long trains %v, %v, notes %q", name, d.Sizes[0].TrainPackets, d.Capacity, long, d.LongTrains, notes)
		}
	}
}

// A sender that slows down within its trains is no token bucket.
func TestSenderThatSlowsDownIsNoBucket(t *testing.T) {
	// The time between packets grows after the first 15 of 25 and 64 of 100.
	for _, slower := range []time.Duration{2 * time.Microsecond, 5 * time.Microsecond, 30 * time.Microsecond} {
		path := &simulatedPath{rate: 10e9 / 8, port: 1500, nic: 2 * time.Microsecond}
		path.slows = slower
		o := DefaultOptions()
		o.PayloadBytes = []int{1472}
		d, _ := must(t, path, o)
		if d.Shaper != nil || d.Refusal != "" || d.Sizes[0].Trains["token_bucket"]+d.LongTrains["token_bucket"] > 0 {
			t.Errorf("%v: shaper %+v, %q, trains %v, long %v; want no token bucket", slower, d.Shaper, d.Refusal, d.Sizes[0].Trains, d.LongTrains)
		}
	}
}
