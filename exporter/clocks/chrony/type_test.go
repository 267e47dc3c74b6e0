package chrony

import (
	"log/slog"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/metric"
)

func TestEverySettingReachesTheMonitor(t *testing.T) {
	s := settings{Address: "unix:///run/c.sock", Interval: 2 * time.Second, SocketDir: "/run/o", MaxClockError: 1e-5, TrustLocal: true}
	m, err := NewType().New(clock.Env{Sink: metric.Discard{}, Log: slog.New(slog.DiscardHandler)}, func(into ...any) error {
		*into[0].(*settings) = s
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	o := m.(*Monitor).options
	if o.Address != s.Address || o.Interval != s.Interval || o.SocketDir != s.SocketDir || o.MaxClockError != 1e-5 || !o.TrustLocal {
		t.Errorf("%+v", o)
	}
}
