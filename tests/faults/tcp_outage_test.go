package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/program"
)

// Flows that an outage cuts off are unfinished, and the run goes on.
func TestShortFlowsInAnOutageAreUnfinished(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	p := s.StartShort(t, "--direction=reverse", "--flow-bytes=300kB", "--repetitions=8", "--flow-timeout=2s")
	_, before := s.Network.Counts(sample.Reverse)
	program.Eventually(t, "a flow runs", func() bool {
		_, now := s.Network.Counts(sample.Reverse)
		return now.Delivered > before.Delivered+300
	})
	s.cut(t)
	time.Sleep(3500 * time.Millisecond) // the outage: longer than the flow's limit of time
	s.mend(t)
	z := p.FinishShort(t, 0).Result.Sizes[0]
	t.Logf("%d of %d unfinished, median %+v", z.Unfinished, len(z.Flows), z.Completion.Median)
	if len(z.Flows) != 8 || z.Unfinished < 1 || z.Unfinished > 2 || z.Completion.Median == nil || z.Completion.Median.Value < 0.3 {
		t.Errorf("%+v", z)
	}
}

// A path without a way for the flows, beside the control connection, ends the run after some flows of each size.
func TestShortFlowsOnABlockedPathEndTheRun(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	nft(t, s.Network.Server, "inet", "input", fmt.Sprintf("tcp dport != %d", hostport.LoadServer))
	r := s.StartShort(t, "--flow-bytes=10kB", "--flow-bytes=20kB", "--flow-timeout=1s").FinishShort(t, 1)
	unfinished := 0
	for _, z := range r.Result.Sizes {
		unfinished += z.Unfinished
		for _, f := range z.Flows {
			if f.Completion != nil || !strings.Contains(f.Unfinished, "of the load server within 1s; is it open there and on the path?") {
				t.Errorf("%+v", f)
			}
		}
	}
	if r.Outcome != "incomplete" || r.Reason != "timeout" || unfinished != 4 || len(r.Result.Sizes) != 4 {
		t.Errorf("%s, %s, %q: %d unfinished, %+v", r.Outcome, r.Reason, r.Error, unfinished, r.Result.Sizes)
	}
}

// A measurement that an outage ends is reported and counts in no result; the others do.
func TestSweepGoesOnAfterAnOutage(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	p := s.StartSweep(t, "--direction=reverse", "--congestion-control=cubic", "--cell-duration=3s", "--omit=500ms", "--repetitions=2", "--idle-timeout=1s",
		"--send-buffer-bytes=32KiB", "--send-buffer-bytes=64KiB")
	_, before := s.Network.Counts(sample.Reverse)
	program.Eventually(t, "a measurement runs", func() bool {
		_, now := s.Network.Counts(sample.Reverse)
		return now.Delivered > before.Delivered+300
	})
	s.cut(t)
	time.Sleep(2500 * time.Millisecond) // the outage: longer than the idle timeout, with its checks
	s.mend(t)
	r := p.FinishSweep(t)
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
