package links

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"oneway.example/exporter/estimate/queue"
	"oneway.example/tests/bottleneck"
)

// Case is a link, a load test of it, and the expected result.
type Case struct {
	Path
	Sender
	// Kinds are the right states; only the first has a size.
	Kinds []queue.State
	// Steady is a link of constant rate without faults.
	Steady bool
	// Limit is the queue's limit in bytes where dropped packets do not show it; zero:
	// they do.
	Limit int
}

const ms = time.Millisecond

// packet is the size of all packets, as in Woo 2010.
const packet = 1410

func sender(offered float64, length time.Duration) Sender {
	every := max(40*ms, time.Duration(20*packet*8e9/offered))
	return Sender{Size: packet, Offered: offered, Length: length, Idle: 50, Every: every, Late: 20 * time.Microsecond}
}

// filled is a tail-drop queue, in a test of twice the link's rate.
func filled(name string, rate float64, limit int, delay time.Duration) Case {
	return Case{
		Path:   Path{Name: name, Bottleneck: bottleneck.Config{Rate: int64(rate), Queue: limit}, Delay: delay},
		Sender: sender(2*rate, 20*time.Second), Kinds: []queue.State{queue.Filled},
	}
}

// but returns the case with a change.
func (c Case) but(name string, change func(*Case)) Case {
	c.Name = name
	change(&c)
	return c
}

// is sets the right states.
func (c *Case) is(states ...queue.State) { c.Kinds = states }

// Made are synthetic links.
func Made() []Case {
	wibro := filled("WiBro", 2.5e6, 110_000, 30*ms)
	all := []Case{
		wibro,
		filled("LAN", 100e6, 256_000, ms),
		filled("EVDO", 150e3, 30_000, 80*ms),
		filled("WiMAX", 10e6, 1_100_000, 14*ms),
		filled("deep", 5e6, 1_500_000, 40*ms),
		filled("shallow", 20e6, 10_000, 20*ms),
	}
	for i := range all {
		all[i].Steady = true
	}
	all = append(all, loads(wibro)...)
	all = append(all, clocks(wibro)...)
	all = append(all, paths(wibro)...)
	all = append(all, fades(wibro)...)
	all = append(all, transmitters(wibro)...)
	return append(all, disciplines(wibro)...)
}

func loads(c Case) []Case {
	return []Case{
		c.but("load of 1.05", func(c *Case) { c.Offered = 1.05 * 2.5e6 }),
		c.but("load of 1.3", func(c *Case) { c.Offered = 1.3 * 2.5e6 }),
		c.but("load of 10", func(c *Case) { c.Offered = 25e6 }),
		c.but("pause of 1 s", func(c *Case) { c.Pause, c.PauseAt = time.Second, 9*time.Second }),
		c.but("not filled", func(c *Case) { c.Offered = 2e6; c.is(queue.NotFilled) }),
		c.but("not filled, loss 2 %", func(c *Case) { c.Offered, c.Loss = 2e6, 0.02; c.is(queue.NotFilled) }),
		c.but("not full yet", func(c *Case) { c.Bottleneck.Queue = 20_000_000; c.is(queue.NotFilled) }),
		c.but("not full yet, loss 1 %", func(c *Case) { c.Bottleneck.Queue, c.Loss = 20_000_000, 0.01; c.is(queue.NotFilled) }),
		c.but("others 10 %, 20 Mb/s", func(c *Case) { c.fast(20e6); c.Bottleneck.Others = 2e6; c.is(queue.Filled, queue.Unknown) }),
		c.but("others 5 %, 100 Mb/s", func(c *Case) { c.fast(100e6); c.Bottleneck.Others = 5e6; c.is(queue.Filled, queue.Unknown) }),
		c.but("load of 1.2, loss 3 %", func(c *Case) { c.fast(5e6); c.Offered, c.Loss = 6e6, 0.03; c.is(queue.Filled, queue.Unknown) }),
		c.but("others 10 %", func(c *Case) { c.Bottleneck.Others = 0.25e6 }),
		c.but("others 30 %", func(c *Case) { c.Bottleneck.Others = 0.75e6 }),
	}
}

func clocks(c Case) []Case {
	return []Case{
		c.but("clock 1 h off", func(c *Case) { c.Offset = time.Hour }),
		c.but("clock 20 ppm fast", func(c *Case) { c.Drift = 20e-6 }),
		c.but("clock slews 5 ms", func(c *Case) { c.Slew = 5 * ms }),
	}
}

func paths(c Case) []Case {
	return []Case{
		c.but("path grows by 5 ms", func(c *Case) { c.Grow, c.GrowAt = 5*ms, 10*time.Second }),
		c.but("path grows by 20 ms", func(c *Case) { c.Grow, c.GrowAt = 20*ms, 10*time.Second }),
		c.but("outage of 300 ms", func(c *Case) { c.Outage, c.OutageAt = 300*ms, 9*time.Second }),
		c.but("outage of 300 ms in 6 s", func(c *Case) { c.Length, c.Outage, c.OutageAt = 6*time.Second, 300*ms, 3*time.Second }),
		c.but("jitter 3 ms", func(c *Case) { c.Jitter = 3 * ms }),
		c.but("loss 1 %", func(c *Case) { c.Loss = 0.01 }),
		c.but("loss 5 %", func(c *Case) { c.Loss = 0.05 }),
		c.but("retransmission", func(c *Case) { c.Retransmit, c.RetransmitDelay = 0.05, 16*ms }),
	}
}

// fades are links with intervals of total loss behind the queue.
func fades(c Case) []Case {
	fade := func(n int, length time.Duration) (all [][2]time.Duration) {
		for i := range n {
			at := time.Duration(i+1) * c.Length / time.Duration(n+1)
			all = append(all, [2]time.Duration{at, at + length})
		}
		return all
	}
	grows := func(c *Case) { c.Bottleneck.Queue = 20_000_000; c.is(queue.NotFilled) }
	return []Case{
		c.but("fade of 60 ms", func(c *Case) { c.Fades = fade(1, 60*ms) }),
		c.but("fade of 500 ms", func(c *Case) { c.Fades = fade(1, 500*ms) }),
		c.but("5 fades of 100 ms", func(c *Case) { c.Fades = fade(5, 100*ms) }),
		c.but("3 fades of 300 ms, load of 1.1", func(c *Case) { c.Fades, c.Offered = fade(3, 300*ms), 2.75e6 }),
		c.but("fade of 4 s", func(c *Case) { c.Fades = fade(1, 4*time.Second) }),
		c.but("fade at the end", func(c *Case) { c.Fades = [][2]time.Duration{{16 * time.Second, 30 * time.Second}} }),
		c.but("fade of 300 ms, not filled", func(c *Case) { c.Fades, c.Offered = fade(1, 300*ms), 2e6; c.is(queue.NotFilled) }),
		c.but("fade of 300 ms, not full yet", func(c *Case) { c.Fades = fade(1, 300*ms); grows(c) }),
		c.but("60 fades of 10 ms, not full yet", func(c *Case) { c.Fades = fade(60, 10*ms); grows(c) }),
		c.but("fade of 100 ms, not full yet, load of 1.05", func(c *Case) { c.Fades, c.Offered = fade(1, 100*ms), 1.05*2.5e6; grows(c) }),
	}
}

func transmitters(c Case) []Case {
	return []Case{
		c.but("slots of 5 ms", func(c *Case) { c.Bottleneck.Slot = 5 * ms }),
		c.but("slots of 10 ms", func(c *Case) { c.Bottleneck.Slot = 10 * ms }),
		c.but("slots of 20 ms", func(c *Case) { c.Bottleneck.Slot = 20 * ms }),
		c.but("token bucket 20 kB", func(c *Case) { c.Bottleneck.Bucket, c.Bottleneck.Peak = 20_000, 100e6 }),
		c.but("token bucket 200 kB", func(c *Case) { c.Bottleneck.Bucket, c.Bottleneck.Peak = 200_000, 100e6 }),
		c.but("two queues", func(c *Case) { c.Bottleneck.Second = &bottleneck.Config{Rate: 2.2e6, Queue: 60_000} }),
	}
}

func disciplines(c Case) []Case {
	return []Case{
		c.but("80 packets", func(c *Case) { c.Bottleneck.Queue, c.Bottleneck.QueuePackets = 0, 80 }),
		c.but("5 packets", func(c *Case) { c.Bottleneck.Queue, c.Bottleneck.QueuePackets = 0, 5 }),
		c.but("drop at the head", func(c *Case) { c.Bottleneck.Discipline, c.Limit = bottleneck.HeadDrop, 110_000 }),
		c.but("CoDel", func(c *Case) { c.managed(bottleneck.CoDel) }),
		c.but("CoDel, load of 1.1", func(c *Case) { c.managed(bottleneck.CoDel); c.Offered = 2.75e6 }),
		c.but("CoDel, 20 Mb/s", func(c *Case) { c.managed(bottleneck.CoDel); c.Bottleneck.Rate, c.Offered = 20e6, 30e6 }),
		c.but("FQ-CoDel", func(c *Case) { c.managed(bottleneck.FQCoDel) }),
		c.but("RED", func(c *Case) { c.Bottleneck.Discipline = bottleneck.RED; c.is(queue.AQM) }),
		c.but("policer", func(c *Case) {
			c.Bottleneck = bottleneck.Config{Rate: 2.5e6, Bucket: 20_000, Police: true}
			c.is(queue.Policer)
		}),
		// On a link of constant rate a limit in time is one in bytes.
		c.but("discard after 300 ms", func(c *Case) { c.timed(); c.is(queue.Filled, queue.TimeLimited) }),
		c.but("discard, rate moves", func(c *Case) {
			c.timed()
			c.Bottleneck.Rate, c.Bottleneck.Trace = 0, bottleneck.Cellular(77, 2.5e6, 40*time.Second)
			c.is(queue.TimeLimited)
		}),
	}
}

// fast is another rate, with a queue of 0.35 s.
func (c *Case) fast(rate float64) {
	c.Bottleneck.Rate, c.Bottleneck.Queue, c.Offered = int64(rate), int(0.35*rate/8), 2*rate
}

func (c *Case) managed(d bottleneck.Discipline) {
	c.Bottleneck.Discipline, c.Bottleneck.Queue, c.Bottleneck.QueuePackets = d, 0, 1000
	c.is(queue.AQM)
}

func (c *Case) timed() { c.Bottleneck.Queue, c.Bottleneck.QueueTime = 0, 300*ms }

// traced is a link with the rate of a trace, in a test of twice its mean rate.
func traced(name string, trace []uint32, limit int) Case {
	mean := float64(len(trace)) * bottleneck.Opportunity * 8 / (float64(trace[len(trace)-1]) / 1000)
	return Case{
		Path:   Path{Name: fmt.Sprintf("%s, %d kB", name, limit/1000), Bottleneck: bottleneck.Config{Trace: trace, Queue: limit}, Delay: 40 * ms},
		Sender: sender(2*mean, 20*time.Second), Kinds: []queue.State{queue.Filled},
	}
}

// Cellular are links of the shape of recorded cellular ones (bottleneck.Cellular), each made with a
// separate seed.
func Cellular(seed uint64) (all []Case) {
	for i, c := range []struct {
		mean  float64
		limit int
	}{{0.5e6, 50_000}, {0.5e6, 150_000}, {1.5e6, 60_000}, {1.5e6, 200_000}, {5e6, 100_000}, {5e6, 500_000}, {20e6, 300_000}, {20e6, 1_500_000}} {
		one := seed*100 + uint64(i)
		all = append(all, traced(fmt.Sprintf("cellular %.1f Mb/s", c.mean/1e6), bottleneck.Cellular(one, c.mean, 60*time.Second), c.limit))
	}
	lossy := traced("cellular 3 Mb/s, loss 1 %", bottleneck.Cellular(seed*100+90, 3e6, 60*time.Second), 150_000)
	lossy.Loss = 0.01
	shared := traced("cellular 3 Mb/s, retransmission", bottleneck.Cellular(seed*100+91, 3e6, 60*time.Second), 150_000)
	shared.Retransmit, shared.RetransmitDelay = 0.05, 16*ms
	light := traced("cellular 3 Mb/s, load of 1.5, loss 0.5 %", bottleneck.Cellular(seed*100+92, 3e6, 60*time.Second), 150_000)
	light.Loss, light.Offered = 0.005, 0.75*light.Offered
	return append(all, lossy, light, shared)
}

// Recorded are the traces in mahimahi's format in a directory, with queues of three sizes; each
// begins at a part of the trace that depends on the seed.
func Recorded(directory string, seed uint64) (all []Case, err error) {
	files, err := filepath.Glob(filepath.Join(directory, "*"))
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("links: %w", err)
		}
		trace, err := bottleneck.ParseTrace(b)
		if err != nil {
			return nil, fmt.Errorf("links: %s: %w", file, err)
		}
		if len(trace) < 100 {
			continue // too short for a result
		}
		skip := seed * 102_947 % uint64(len(trace)/2)
		cut := make([]uint32, 0, len(trace))
		for _, v := range trace[skip:] {
			cut = append(cut, v-trace[skip])
		}
		for _, limit := range []int{50_000, 100_000, 300_000} {
			all = append(all, traced(filepath.Base(file), cut, limit))
		}
	}
	return all, nil
}
