package loadtest

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/tests/bottleneck"
	"oneway.example/tests/lab"
	"oneway.example/tests/precision"
	"oneway.example/tests/standstill"
	"oneway.example/tests/tcplog"
)

// overWibroTCP is the link of the thesis' TCP experiments, with the payload of TCP in its log.
func overWibroTCP(t *testing.T) lab.Options {
	t.Helper()
	profile, err := lab.LoadProfile("wibro-tcp")
	if err != nil {
		t.Fatal(err)
	}
	client, _ := lab.Addresses()
	return lab.Options{Profile: profile, Segments: tcplog.Segments(client, loadcontrol.DefaultPort)}
}

// connections are those of a sweep of one direction by the link's log: by cell, in the order of the repetitions.
func (s *site) connections(t *testing.T, d sample.Direction, seed uint64, cells, repetitions int) (by [][]tcplog.Connection) {
	t.Helper()
	s.Drained(t)
	all := tcplog.Connections(s.Network.Log(d), s.Network.Log(1-d))
	turns := loadtest.Turns(cells, repetitions, seed)
	if len(all) < len(turns) {
		t.Fatalf("the link's log has %d connections, want %d", len(all), len(turns))
	}
	by = make([][]tcplog.Connection, cells)
	for i, cell := range turns {
		by[cell] = append(by[cell], all[len(all)-len(turns)+i])
	}
	return by
}

// Over the link of the thesis' TCP experiments (80 ms up, 14 ms down, 10 Mb/s: a BDP of 113 kB of payload) small buffers
// starve, those from 128 KiB on fill the link, and larger ones only lengthen the round trip. The link's log has the truth.
func TestSweepFindsTheBufferThatFillsTheLink(t *testing.T) {
	s, w := newSite(t, overWibroTCP(t)), standstill.Begin(t)
	begin := instant.Now()
	r := s.StartSweep(t,
		"--direction=reverse", "--congestion-control=cubic", "--cell-duration=3s", "--omit=1s", "--seed=1",
		"--send-buffer-bytes=17KiB", "--send-buffer-bytes=64KiB", "--send-buffer-bytes=128KiB", "--send-buffer-bytes=512KiB", "--send-buffer-bytes=auto",
	).FinishSweep(t)
	if len(r.Result.Cells) != 5 || len(r.Result.Omitted) != 0 || len(r.Result.Knees) != 1 {
		t.Fatalf("%+v; notes %q", r.Result, r.Notes)
	}
	const rate = 10e6 / 8 * efficiency
	by := s.connections(t, sample.Reverse, 1, 5, 3)
	judge := standstill.Judging(t, w)
	all := judge.Measurement(begin, instant.Now()) // the figures of a cell are medians of repetitions that are far apart
	longest := 0.0
	for i, m := range r.Result.Cells {
		if m.Throughput == nil || m.RTT == nil || len(m.Repetitions) != 3 {
			t.Errorf("%v: %+v", m.Cell, m)
			continue
		}
		t.Logf("%3.0f KiB: %7.1f kB/s (%.1f to %.1f), RTT %6.1f ms (%.1f to %.1f), again %.4f, limited by %q, models %v", float64(m.SendBuffer)/1024,
			m.Throughput[1]/1e3, m.Throughput[0]/1e3, m.Throughput[2]/1e3, 1e3*m.RTT[1], 1e3*m.RTT[0], 1e3*m.RTT[2], *m.Retransmitted, m.Limit, m.Repetitions[0].Models.Throughput)
		for k, one := range m.Repetitions {
			isTrue(judge.Measurement(by[i][k].Time()), fmt.Sprintf("%d KiB, repetition %d", m.SendBuffer>>10, k+1), m.SendBuffer, one, by[i][k].Between(time.Second, 3*time.Second))
		}
		if ratio := m.Throughput[1] / *m.Model("window"); math.Abs(ratio-1) > 0.1 {
			all.Errorf("%v: %.3f of the mean outstanding bytes by the mean RTT", m.Cell, ratio)
		}
		if m.SendBuffer == 0 {
			continue // its round trip depends on the queue
		}
		fills := m.SendBuffer >= 128<<10
		if share := m.Throughput[1] / rate; fills && share < 0.95 || !fills && (share > 0.9 || m.Limit != "receive_window") {
			all.Errorf("%v: %.3f of the link's rate, limited by %q", m.Cell, share, m.Limit)
		}
		if m.RTT[1] < longest {
			all.Errorf("%v: median RTT %v after %v with a smaller buffer", m.Cell, m.RTT[1], longest)
		}
		longest = m.RTT[1]
	}
	k := r.Result.Knees[0]
	if k.Buffer == nil || *k.Buffer != 128<<10 || k.BDP == nil || math.Abs(*k.BDP/(rate*0.094)-1) > 0.1 {
		all.Errorf("knee %+v: want 128 KiB, and a BDP of %.0f bytes", k, rate*0.094)
	} else {
		t.Logf("knee %d bytes, BDP %.0f", *k.Buffer, *k.BDP)
	}
	judge.Conclude()
}

// isTrue compares a measurement of at least 2 s with the link's log: the receiver's samples are 100 ms apart, and at either
// end of the time a host may be late with a window; the sender's round trip is smoothed and has the wake-ups of both hosts
// in it.
func isTrue(t precision.TB, what string, buffer int64, one tcpsweep.Repetition, truth tcplog.Truth) {
	t.Helper()
	t.Logf("%s: %.1f kB/s, by the log %.1f; RTT %.1f ms, %.1f; %d of %d segments again, %d dropped", what,
		*one.Throughput/1e3, truth.Throughput/1e3, 1e3*one.RTT[1], 1e3*truth.RTT[1].Seconds(), truth.Again, truth.Segments, truth.Dropped)
	if off := math.Abs(*one.Throughput - truth.Throughput); off > 0.02*truth.Throughput+float64(min(buffer, 64<<10))/2 {
		t.Errorf("%s: %.1f kB/s; by the log %.1f", what, *one.Throughput/1e3, truth.Throughput/1e3)
	}
	if rtt := truth.RTT[1].Seconds(); one.RTT[1] < 0.9*rtt-0.01 || one.RTT[1] > 1.1*rtt+0.03 {
		t.Errorf("%s: median round trip %.1f ms; by the log %.1f", what, 1e3*one.RTT[1], 1e3*rtt)
	}
	if again := *one.Retransmitted * float64(truth.Segments); math.Abs(again-float64(truth.Again)) > 2+0.02*again {
		t.Errorf("%s: %.1f of %d segments were sent again; by the log %d", what, again, truth.Segments, truth.Again)
	}
}

// A buffer above path and queue (117 kB and 1100 kB) makes a flow drop its own segments; one below does not.
func TestSweepShowsTheLossThatABufferAboveTheQueueInduces(t *testing.T) {
	s := newSite(t, overWibroTCP(t))
	judge := standstill.Judging(t, standstill.Begin(t))
	r := s.StartSweep(t,
		"--direction=reverse", "--congestion-control=reno", "--cell-duration=4s", "--omit=1s", "--seed=1", "--repetitions=1",
		"--send-buffer-bytes=512KiB", "--send-buffer-bytes=2MiB",
	).FinishSweep(t)
	if len(r.Result.Cells) != 2 {
		t.Fatalf("%+v; notes %q", r.Result, r.Notes)
	}
	by := s.connections(t, sample.Reverse, 1, 2, 1)
	for i, m := range r.Result.Cells {
		if m.Throughput == nil || m.RTT == nil || m.Retransmitted == nil {
			t.Fatalf("%v: %+v", m.Cell, m)
		}
		truth := by[i][0].Between(time.Second, 4*time.Second)
		one := judge.Measurement(by[i][0].Time())
		isTrue(one, fmt.Sprintf("%d KiB", m.SendBuffer>>10), m.SendBuffer, m.Repetitions[0], truth)
		if m.Send.Clipped || m.Receive.Clipped {
			t.Logf("%v: this host limits the buffers: %+v, %+v", m.Cell, m.Send, m.Receive)
			continue
		}
		if over := m.SendBuffer > 1217_000; over != (*m.Retransmitted > 0.005) || over != (truth.Dropped > 20) {
			one.Errorf("%v: %.4f sent again, %d segments dropped", m.Cell, *m.Retransmitted, truth.Dropped)
		}
	}
	judge.Conclude()
}

// On a link whose rate moves, as a cellular one's, a sweep ends with intervals: quartiles of the repetitions, and a knee or
// why there is none.
func TestSweepOfACellularLinkEndsWithIntervals(t *testing.T) {
	t.Parallel()
	profile, err := lab.LoadProfile("cellular")
	if err != nil {
		t.Fatal(err)
	}
	profiles := []lab.Profile{profile}
	if dir := os.Getenv("ONEWAY_TRACES"); dir != "" {
		profiles = append(profiles, recorded(t, dir)...)
	}
	for _, profile := range profiles {
		t.Run(profile.Name, func(t *testing.T) { endsWithIntervals(t, profile) })
	}
}

func endsWithIntervals(t *testing.T, profile lab.Profile) {
	s := newSite(t, lab.Options{Profile: profile})
	r := s.StartSweep(t, "--direction=reverse", "--congestion-control=cubic", "--cell-duration=2s", "--omit=500ms", "--seed=1", "--idle-timeout=30s",
		"--send-buffer-bytes=17KiB", "--send-buffer-bytes=128KiB", "--send-buffer-bytes=auto").FinishSweep(t)
	if len(r.Result.Cells) != 3 || len(r.Result.Knees) != 1 {
		t.Fatalf("%+v; notes %q", r.Result, r.Notes)
	}
	wide := 0
	for _, m := range r.Result.Cells {
		if m.Throughput == nil || m.RTT == nil || len(m.Repetitions) != 3 {
			t.Fatalf("%v: %+v; notes %q", m.Cell, m, r.Notes)
		}
		q := m.Throughput
		if m.RTTMin == nil || q[0] < 0 || q[0] > q[1] || q[1] > q[2] {
			t.Errorf("%v: quartiles of the throughput %v, least round trip %v", m.Cell, *q, m.RTTMin)
		}
		if q[2] > 1.05*q[0] {
			wide++
		}
		t.Logf("%3.0f KiB: %.1f kB/s (%.1f to %.1f), RTT %.0f ms", float64(m.SendBuffer)/1024, q[1]/1e3, q[0]/1e3, q[2]/1e3, 1e3*m.RTT[1])
	}
	if wide == 0 {
		t.Error("the quartiles of no cell are 5 % apart, as on a link of constant rate")
	}
	// A knee by the medians is decided only if the repetitions of neighboring sizes do not overlap.
	k := r.Result.Knees[0]
	if !k.Overlap && k.AtMost == nil && k.Buffer != nil || k.Best <= 0 || k.BDP == nil {
		t.Errorf("knee %+v", k)
	}
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
}

// recorded are the links of the recorded traces in a directory, in mahimahi's format: NAME.down and NAME.up.
func recorded(t *testing.T, dir string) (all []lab.Profile) {
	t.Helper()
	downs, err := filepath.Glob(filepath.Join(dir, "*.down"))
	if err != nil {
		t.Fatal(err)
	}
	for _, down := range downs {
		name := strings.TrimSuffix(filepath.Base(down), ".down")
		p := lab.Profile{Name: name}
		for _, l := range []struct {
			link  *lab.Link
			file  string
			queue int
		}{{&p.Forward, strings.TrimSuffix(down, ".down") + ".up", 100_000}, {&p.Reverse, down, 300_000}} {
			text, err := os.ReadFile(l.file)
			if err != nil {
				t.Fatal(err)
			}
			*l.link = lab.Link{Delay: 40 * time.Millisecond, Queue: l.queue}
			if l.link.Trace, err = bottleneck.ParseTrace(text); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, p)
	}
	return all
}
