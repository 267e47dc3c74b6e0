package saturation_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probes/saturation"
)

// Idle packets at equal positions hide a link's transmission slots; idle packets before the load only hide changes
// during it.
func TestIdlePacketsLeaveAtRandomTimesBeforeTheLoadAndAfterIt(t *testing.T) {
	var plan stream.Plan
	link := wibro()
	c := &planRecorder{link: link, plan: &plan}
	shared, own := loadsession.DefaultOptions(), wibroOptions()
	kind, err := saturation.NewKind(shared, own)
	if err != nil {
		t.Fatal(err)
	}
	if err := kind.Perform(t.Context(), udptraffic.NewSession(c, udptraffic.SessionOptions{}), &loadtest.Run{Directions: []sample.Direction{sample.Forward}}); err != nil {
		t.Fatal(err)
	}
	if err := plan.Check(); err != nil {
		t.Fatal(err)
	}
	load := slices.IndexFunc(plan.Segments, func(s stream.Segment) bool { return s.Packets() > 1 })
	if load != 50 || len(plan.Segments) != 101 {
		t.Fatalf("the load is segment %d of %d", load, len(plan.Segments))
	}
	for _, part := range [][]stream.Segment{plan.Segments[:load], plan.Segments[load+1:]} {
		length, pauses := time.Duration(0), map[time.Duration]bool{}
		for _, s := range part {
			length += s.Duration()
			pauses[s.Pause] = true
			if s.Packets() != 1 || s.Pause > own.Idle.Interval/2 {
				t.Errorf("idle packets: %+v", s)
			}
		}
		if length != own.Idle.Duration || len(pauses) < 40 {
			t.Errorf("idle packets for %v, want %v; %d different intervals of 50", length, own.Idle.Duration, len(pauses))
		}
	}
}

// planRecorder records the plan of a transfer.
type planRecorder struct {
	link *bottleneck
	plan *stream.Plan
}

// Transfer is udp.Carrier.
func (c *planRecorder) Transfer(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, progress func(loadtest.Progress), adjustRate stream.Adjuster) (*udptraffic.CarrierResult, error) {
	*c.plan = p
	return c.link.Transfer(ctx, d, p, idle, progress, adjustRate)
}
