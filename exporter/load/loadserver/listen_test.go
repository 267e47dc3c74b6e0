package loadserver

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/load/traffictypes"
	"oneway.example/exporter/probe/link"
)

func TestPortInUseHasARemedy(t *testing.T) {
	s := newSite(t, Options{}, "a")
	o := s.o
	o.Listen = []netip.AddrPort{s.r.Addrs()[0]}
	second, err := New(o, Env{Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: link.NewTable(nil), Traffic: traffictypes.All()})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "address already in use: another program, possibly another load server, uses this port; stop it or listen on another port") {
		t.Errorf("got %v", err)
	}
}
