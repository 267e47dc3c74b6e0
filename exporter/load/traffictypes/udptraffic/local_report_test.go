package udptraffic_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

const goodClocks = `{"before":{"at_ns":0,"error_bound_ns":10000,"reason":"ok","clock_steps":0},"after":{"at_ns":0,"error_bound_ns":10000,"reason":"ok","clock_steps":0}}`

// Programs that read reports depend on these names, orders and formats.
func TestJSONOfATransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // for simulated time
		link := &loadtesttest.Link{Delay: 5 * time.Millisecond, Each: func(_ sample.Direction, c *udptraffic.CarrierResult) error {
			c.Received.Packets, c.Cut = c.Received.Packets[:2], "the remote end shuts down"
			c.Received.Packets[1].Damage = stream.Truncated
			return nil
		}}
		s := udptraffic.NewSession(link, udptraffic.SessionOptions{SharedClock: true})
		plan := s.Plan(stream.Segment{PayloadBytes: 100, Interval: time.Millisecond, Burst: 1, Bursts: 3})
		if _, err := s.Transfer(t.Context(), sample.Reverse, plan, nil); err != nil {
			t.Fatal(err)
		}
		want := []string{
			`[{"direction":"reverse","plan":{"segments":[{"payload_bytes":100,"interval_ns":1000000,"burst":1,"bursts":3}]}`,
			`"sent":{"planned_packets":3,"send_failed_packets":0,"late_packets":0,"begin_ns":946684800000000000,"end_ns":946684800002000000}`,
			`"received":{"socket_dropped_packets":0,"kernel_checksum_errors":0,"corrupted_packets":0}`,
			`"counts":{"planned_packets":3,"not_tried_packets":0,"send_failed_packets":0,"sent_packets":3,"received_packets":1,"lost_packets":2`,
			`"duplicated_packets":0,"reordered_packets":0,"corrupted_packets":{"truncated":1},"unrecorded_packets":0}`,
			`"local_clock":` + goodClocks, `"remote_clock":` + goodClocks, `"shared_clock":true,"ended_early":"the remote end shuts down"`,
			`"begin_ns":946684800000000000,"every":1,"columns":["seq","segment","ip_bytes","sent_ns","arrived_ns","copies","corruption"]`,
			`"rows":[[0,0,128,0,5000000,1,0],[1,0,128,1000000,6000000,0,1],[2,0,128,2000000,null,0,0]]}]`,
		}
		text, err := json.Marshal(s.Series())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Join(want, ","), string(text)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
