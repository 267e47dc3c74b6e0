package tcptraffic_test

import (
	"context"
	"testing"
	"time"

	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
)

func TestClockOfTheLoadServerIsSampledDuringATransfer(t *testing.T) {
	for _, d := range sample.Directions() {
		lost := &clocktest.Passing{After: 50 * time.Millisecond, Until: 700 * time.Millisecond, Bound: sample.Bound{Reason: sample.LocalUnsynchronized}}
		var res *tcptraffic.Result
		_, err := once(t, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{Clock: lost}), func(ctx context.Context, s *tcptraffic.Session) (err error) {
			res, err = s.Transfer(ctx, plan(d, time.Second))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if before, after := res.Remote.Before.Reason, res.Remote.After.Reason; before != "ok" || after != "local_unsynchronized" {
			t.Errorf("%s: the clock is %q before and %q after", d, before, after)
		}
	}
}
