package loadtest

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/exporter/sample"
	"oneway.example/tests/program"
)

// sweepOutcome is the output of `oneway test tcp-sweep --json`.
type sweepOutcome struct {
	Result struct {
		Knees   []tcpsweep.Knee         `json:"knees"`
		Cells   []tcpsweep.MeasuredCell `json:"cells"`
		Omitted []tcpsweep.Omission     `json:"omitted"`
	} `json:"results"`
	Notes []string `json:"notes"`
}

// startSweep starts `oneway test tcp-sweep` on the client.
func (s *site) startSweep(t *testing.T, more ...string) *process {
	t.Helper()
	args := []string{"test", "tcp-sweep", s.at.String(), "--token-file=" + s.tokenFile, "--pin=" + s.pin, "--clock=static", "--json", "--no-agent"}
	return start(t, s.network.Client, append(args, more...)...)
}

func (p *process) finishSweep(t *testing.T) (o sweepOutcome) {
	t.Helper()
	select {
	case <-p.Done: // a sweep takes longer than finish waits
	case <-time.After(2 * time.Minute):
	}
	p.finish(t, 0)
	if err := json.Unmarshal([]byte(p.Stdout.String()), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// Over the link of the thesis' TCP experiments (80 ms up, 14 ms down, 10 Mb/s: a BDP of 113 kB of payload) small buffers
// starve, those from 128 KiB on fill the link, and larger ones only lengthen the round trip.
func TestSweepFindsTheBufferThatFillsTheLink(t *testing.T) {
	o := overWibro(t)
	o.Profile.Forward.Delay = 80 * time.Millisecond
	s := newSite(t, o)
	r := s.startSweep(t,
		"--direction=reverse", "--congestion-control=cubic", "--cell-duration=3s", "--omit=1s", "--seed=1",
		"--send-buffer-bytes=17KiB", "--send-buffer-bytes=64KiB", "--send-buffer-bytes=128KiB", "--send-buffer-bytes=512KiB", "--send-buffer-bytes=auto",
	).finishSweep(t)
	if len(r.Result.Cells) != 5 || len(r.Result.Omitted) != 0 || len(r.Result.Knees) != 1 {
		t.Fatalf("%+v; notes %q", r.Result, r.Notes)
	}
	const rate = 10e6 / 8 * efficiency
	longest := 0.0
	for _, m := range r.Result.Cells {
		if m.Throughput == nil || m.RTT == nil || len(m.Repetitions) != 3 {
			t.Errorf("%v: %+v", m.Cell, m)
			continue
		}
		t.Logf("%3.0f KiB: %7.1f kB/s (%.1f to %.1f), RTT %6.1f ms (%.1f to %.1f), again %.4f, limited by %q, models %v", float64(m.SendBuffer)/1024,
			m.Throughput[1]/1e3, m.Throughput[0]/1e3, m.Throughput[2]/1e3, 1e3*m.RTT[1], 1e3*m.RTT[0], 1e3*m.RTT[2], *m.Retransmitted, m.Limit, m.Repetitions[0].Models.Throughput)
		if ratio := m.Throughput[1] / *m.Model("window"); math.Abs(ratio-1) > 0.1 {
			t.Errorf("%v: %.3f of the mean outstanding bytes by the mean RTT", m.Cell, ratio)
		}
		if m.SendBuffer == 0 {
			continue // its round trip depends on the queue
		}
		fills := m.SendBuffer >= 128<<10
		if got := m.Throughput[1] / rate; fills && got < 0.95 || !fills && (got > 0.9 || m.Limit != "receive_window") {
			t.Errorf("%v: %.3f of the link's rate, limited by %q", m.Cell, got, m.Limit)
		}
		if m.RTT[1] < longest {
			t.Errorf("%v: median RTT %v after %v with a smaller buffer", m.Cell, m.RTT[1], longest)
		}
		longest = m.RTT[1]
	}
	k := r.Result.Knees[0]
	if k.Buffer == nil || *k.Buffer != 128<<10 || k.BDP == nil || math.Abs(*k.BDP/(rate*0.094)-1) > 0.1 {
		t.Fatalf("knee %+v: want 128 KiB, and a BDP of %.0f bytes", k, rate*0.094)
	}
	t.Logf("knee %d bytes, BDP %.0f", *k.Buffer, *k.BDP)
}

// A measurement that an outage ends is reported and counts in no result; the others do.
func TestSweepGoesOnAfterAnOutage(t *testing.T) {
	s := newSite(t, overSlow())
	up := slow()
	p := s.startSweep(t, "--direction=reverse", "--congestion-control=cubic", "--cell-duration=3s", "--omit=500ms", "--repetitions=2", "--idle-timeout=1s",
		"--send-buffer-bytes=32KiB", "--send-buffer-bytes=64KiB")
	_, before := s.network.Counts(sample.Reverse)
	program.Eventually(t, "a measurement runs", func() bool {
		_, now := s.network.Counts(sample.Reverse)
		return now.Delivered > before.Delivered+300
	})
	for _, loss := range []float64{1, 0} {
		for _, d := range sample.Directions() {
			l := towards(up, d)
			l.Loss = loss
			if err := s.network.SetLink(d, l); err != nil {
				t.Fatal(err)
			}
		}
		if loss > 0 {
			time.Sleep(2500 * time.Millisecond) // the outage: longer than the idle timeout, with its checks
		}
	}
	r := p.finishSweep(t)
	partial, complete := 0, 0
	for _, m := range r.Result.Cells {
		for _, one := range m.Repetitions {
			if one.Partial != "" {
				partial++
			} else {
				complete++
			}
		}
		if m.Throughput == nil || m.Throughput[0] < 50e3 {
			t.Errorf("%v: throughput %v, want that without the outage", m.Cell, m.Throughput)
		}
	}
	t.Logf("%d partial, %d complete; notes %q", partial, complete, r.Notes)
	if partial != 1 || complete != 3 {
		t.Errorf("%d partial, %d complete; want 1 and 3", partial, complete)
	}
}
