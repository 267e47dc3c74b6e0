package saturate_test

import (
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/heavy/heavytest"
	"oneway.example/exporter/probes/saturate"
	"oneway.example/tests/lab"
)

// Ten times what the link carries: nine packets of ten are dropped, and so are the control
// connection's words and acknowledgements, for longer than it is silent otherwise. That is
// what somebody asks for who does not know the link.
func TestRunOutlastsTenTimesTheLinksRate(t *testing.T) {
	long(t, 25*time.Second)
	profile, err := lab.LoadProfile("wibro")
	if err != nil {
		t.Fatal(err)
	}
	network := lab.Start(t, lab.Options{Profile: profile})
	shared := heavytest.FarEnd(t, netip.AddrPortFrom(network.Server.Addr4, 8620), network.Server.Do)
	shared.Directions = []string{"forward"}
	shared.DrainTimeout = 2 * time.Second // the queue takes 0.35 s; with it the session bears 6.9 s
	own := saturate.DefaultOptions()
	own.Rate.Forward = 25e6 / 8
	own.Duration, own.Idle.Duration, own.Skip = 20*time.Second, time.Second, time.Second
	l := runOver(t, network, shared, own).Body.(*saturate.Result).Directions[0].Load
	t.Logf("%s (%s): %.0f of %.0f B/s", l.State, l.Evidence, l.Throughput, l.Offered)
	if err := near("rate", l.Throughput, float64(profile.Forward.Rate)/8, 0.02); err != nil {
		t.Error(err)
	}
}
