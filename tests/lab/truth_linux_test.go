package lab

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/precision"
)

func bothFamilies(t *testing.T, f func(t *testing.T, v6 bool)) {
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "IPv4", true: "IPv6"}[v6], func(t *testing.T) { f(t, v6) })
	}
}

// TestLogHoldsTheTruth holds the log against stamps that others took: the
// sender's clock around its system call, the kernel's at the receiving socket.
// However busy the machine is, they must bracket each other exactly.
func TestLogHoldsTheTruth(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v6 bool) {
		profile := Profile{Name: "truth", Forward: Link{Rate: 10_000_000, Delay: 14 * time.Millisecond}}
		l := Start(t, Options{Profile: profile, Classifier: keyed})
		s := newStation(t, l.Client, l.Server, v6)
		const count = 300
		s.stream(count, 172, 3*time.Millisecond)
		arrivals := s.finish(l)
		log := l.Log(sample.Forward)
		if len(log) != count || len(arrivals) != count {
			t.Fatalf("%d in the log, %d arrived, want %d", len(log), len(arrivals), count)
		}
		header := map[bool]int{false: 28, true: 48}[v6]
		for i, r := range log {
			a, sent := arrivals[i], s.sent[r.Key]
			if a.key != r.Key || r.Outcome != Delivered || r.Size != 172+header || !a.whole {
				t.Fatalf("record %+v, arrival %+v", r, a)
			}
			if r.Entry < sent.After || r.Entry > sent.Before {
				t.Errorf("packet %d: entry %v outside of its sending %+v", r.Key, r.Entry, sent)
			}
			if a.at < r.Exit.After || a.at > r.Exit.Before {
				t.Errorf("packet %d: received at %v, outside of its exit %+v", r.Key, a.at, r.Exit)
			}
			if r.Exit.After < r.Due {
				t.Errorf("packet %d: left %v early", r.Key, r.Due.Sub(r.Exit.After))
			}
		}
		if n := l.links[sample.Forward].unstamped.Load(); n > 0 {
			t.Errorf("%d entries without a kernel stamp", n)
		}
	})
}

// punctual runs a round whose error is a lack of punctuality. On a quiet machine up to
// three times: a hiccup spoils a round, a wrong link all of them. Beside other work it is
// logged.
func punctual(t *testing.T, round func(t *testing.T) error) {
	t.Helper()
	err := round(t)
	for again := 0; err != nil && precision.Asserted() && again < 2; again++ {
		t.Logf("round spoilt: %v", err)
		err = round(t)
	}
	precision.Missed(t, err)
}

// quantiles of lateness: median, 99 % and the smallest.
func quantiles(late []time.Duration) (low, median, p99 time.Duration) {
	slices.Sort(late)
	return late[0], late[len(late)/2], late[len(late)*99/100]
}

func TestDelayIsTheConfiguredOne(t *testing.T) {
	for _, delay := range []time.Duration{time.Millisecond, 30 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			punctual(t, func(t *testing.T) error {
				l := Start(t, Options{Profile: Profile{Name: "delay", Forward: Link{Delay: delay}}, Classifier: keyed})
				s := newStation(t, l.Client, l.Server, false)
				s.stream(400, 44, 2500*time.Microsecond)
				arrivals := s.finish(l)
				log := l.Log(sample.Forward)
				if len(log) != 400 || len(arrivals) != len(log) {
					t.Fatalf("%d in the log, %d arrived, want 400", len(log), len(arrivals))
				}
				var late []time.Duration
				for i, r := range log {
					if r.Due != r.Entry.Add(delay) {
						t.Errorf("packet %d was due after %v", r.Key, r.Due.Sub(r.Entry))
					}
					late = append(late, arrivals[i].at.Sub(r.Entry)-delay)
				}
				low, median, p99 := quantiles(late)
				t.Logf("later than %v by: min %v, median %v, 99 %% %v", delay, low, median, p99)
				if low < 0 {
					t.Errorf("a packet came %v early", -low)
				}
				// The last hundredth is the machine's: its log tells it apart, and is tested above.
				if median > 100*time.Microsecond {
					return fmt.Errorf("half are late by %v, want 100us at most", median)
				}
				return nil
			})
		})
	}
}

// TestSaturatedLinkHasRateAndQueue offers the WiBro uplink twice its rate, as
// the thesis did (chapter 6), and looks at the receiver's stamps.
func TestSaturatedLinkHasRateAndQueue(t *testing.T) {
	profile, err := LoadProfile("wibro")
	if err != nil {
		t.Fatal(err)
	}
	bothFamilies(t, func(t *testing.T, v6 bool) {
		punctual(t, func(t *testing.T) error { return saturation(t, profile, v6) })
	})
}

func saturation(t *testing.T, profile Profile, v6 bool) error {
	up := profile.Forward
	l := Start(t, Options{Profile: profile, Classifier: keyed})
	s := newStation(t, l.Client, l.Server, v6)
	const payload = 1382
	size := payload + map[bool]int{false: 28, true: 48}[v6]
	interval := time.Duration(float64(size*8) / float64(2*up.Rate) * 1e9)
	s.stream(uint64(2*time.Second/interval), payload, interval)
	arrivals := s.finish(l)

	tx := time.Duration(int64(size) * 8e9 / up.Rate)
	full := time.Duration(float64(up.Queue*8) / float64(up.Rate) * 1e9)
	entry, exit := make(map[uint64]instant.Time), make(map[uint64]Interval)
	var free instant.Time // when the link has sent the packet before
	var longest time.Duration
	for _, r := range l.Log(sample.Forward) {
		entry[r.Key], exit[r.Key] = r.Entry, r.Exit
		if r.Outcome != Delivered {
			continue
		}
		departure := max(r.Entry, free)
		free = departure.Add(tx)
		longest = max(longest, departure.Sub(r.Entry))
		if r.Due != departure.Add(up.Delay) || r.Exit.After < r.Due {
			t.Errorf("packet %d: due %v and left %v after its turn, want %v and no earlier", r.Key, r.Due.Sub(departure), r.Exit.After.Sub(departure), up.Delay)
		}
	}
	for _, a := range arrivals {
		if x, ok := exit[a.key]; !ok || a.at < x.After || a.at > x.Before {
			t.Errorf("packet %d: received at %v, outside of its exit %+v", a.key, a.at, x)
		}
	}
	// It was full, and a packet that finds no room waits for none: the longest wait is the
	// whole queue's, less the packet that had no room and the one under way.
	if longest > full || longest < full-2*tx {
		t.Errorf("a packet waited for %v, the whole queue for %v", longest, full)
	}
	var queueing []time.Duration // while the queue is full; the largest may be the machine's
	for _, a := range arrivals[len(arrivals)/2:] {
		queueing = append(queueing, a.at.Sub(entry[a.key])-up.Delay)
	}
	slices.Sort(queueing)
	most := queueing[len(queueing)*9/10]
	first, last := arrivals[0].at, arrivals[len(arrivals)-1].at
	rate := float64((len(arrivals)-1)*size*8) / last.Sub(first).Seconds()
	counts, _ := l.Counts(sample.Forward)
	t.Logf("%.0f bit/s, queueing delay up to %v, %+v", rate, most, counts)
	if counts.DroppedQueue == 0 || counts.Delivered != uint64(len(arrivals)) || counts.Entered != uint64(len(s.sent)) {
		t.Errorf("packets not conserved: %+v; sent %d, arrived %d", counts, len(s.sent), len(arrivals))
	}
	if r := rate / float64(up.Rate); r < 0.99 || r > 1.01 {
		return fmt.Errorf("rate %.0f bit/s, want %d within 1 %%", rate, up.Rate)
	}
	if q := float64(most) / float64(full); q < 0.98 || q > 1.02 {
		return fmt.Errorf("queueing delay up to %v, want %v within 2 %%", most, full)
	}
	return nil
}

// TestNothingIsLostAtFullSpeed: what the lab itself can carry.
func TestNothingIsLostAtFullSpeed(t *testing.T) {
	for _, tt := range []struct {
		payload, count int
		interval       time.Duration
		rate           int64
	}{
		{1472, 30_000, 0, 300_000_000},
		{32, 20_000, 16 * time.Microsecond, 0}, // 60 IP bytes, 62 500 packets a second
	} {
		t.Run(fmt.Sprintf("%d bytes", tt.payload), func(t *testing.T) {
			profile := Profile{Name: "fast", Forward: Link{Rate: tt.rate, Delay: 5 * time.Millisecond, Queue: 100_000_000}}
			l := Start(t, Options{Profile: profile, Classifier: keyed})
			s := newStation(t, l.Client, l.Server, false)
			s.stream(uint64(tt.count), tt.payload, tt.interval)
			s.finish(l) // the receiver's socket may overflow, the lab may not
			counts, _ := l.Counts(sample.Forward)
			if want := uint64(tt.count); counts.Entered != want || counts.Delivered != want {
				t.Fatalf("%+v, want %d", counts, want)
			}
			log := l.Log(sample.Forward)
			in := log[len(log)-1].Entry.Sub(log[0].Entry).Seconds()
			out := log[len(log)-1].Exit.After.Sub(log[0].Exit.After).Seconds()
			packets := float64(tt.count - 1)
			var late []time.Duration
			for _, r := range log {
				late = append(late, r.Late())
			}
			_, median, p99 := quantiles(late)
			t.Logf("late: median %v, 99 %% %v", median, p99)
			t.Logf("in %.0f packets/s, out %.0f packets/s, %.0f Mb/s", packets/in, packets/out, packets*float64(tt.payload+28)*8/out/1e6)
			// Never faster than the link. How slow, the machine decides; that the
			// rate is the link's, TestSaturatedLinkHasRateAndQueue says.
			if limit := float64(tt.rate); limit > 0 && packets*float64(tt.payload+28)*8/out > 1.01*limit {
				t.Errorf("faster than the link's %d bit/s", tt.rate)
			}
		})
	}
}
