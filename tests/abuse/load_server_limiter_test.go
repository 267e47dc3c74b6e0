package abuse

import (
	"errors"
	"testing"
	"time"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/tests/await"
)

func TestFloodFromFourAddressesDoesNotRefuseClients(t *testing.T) {
	const clients = 20
	f := startLoadServer(t, loadcontrol.Limits{})
	v := f.enter(1 << 20)
	defer f.flood(loadserver.DefaultMaxConnections, 4)()
	if !await.Within(20*time.Second, func() bool { return f.r.Status().Connections == loadserver.DefaultMaxConnections }) {
		t.Fatalf("%d connections: the flood does not reach the limit", f.r.Status().Connections)
	}
	reset := 0
	for range clients {
		c, err := f.dial(f.token)
		if err != nil {
			if _, refused := errors.AsType[*loadcontrol.Refusal](err); !refused {
				reset++
			}
			continue
		}
		c.Close()
	}
	if reset > 0 {
		t.Errorf("the load server reset %d of %d valid connections", reset, clients)
	}
	if n := f.r.Status().Connections; n > loadserver.DefaultMaxConnections {
		t.Errorf("%d connections, above the limit", n)
	}
	if err := v.stream(1, 20); err != nil {
		t.Errorf("the session opened before the flood: %v", err)
	}
}

// stream runs a reverse stream of n packets.
func (v *testClient) stream(id uint16, n int) error {
	t := reverse(id, n)
	if _, err := v.session.Expect(id, t.Plan); err != nil {
		return err
	}
	if _, err := v.Start(v.f.t.Context(), t); err != nil {
		return err
	}
	_, _, err := v.Wait(v.f.t.Context(), id)
	return err
}
