package abuse

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/tests/await"
)

// flood opens connections from addresses of the loopback network at once; half of them start a TLS handshake, and none
// continues.
func (f *remoteEnd) flood(connections, sources int) (closeAll func()) {
	var mu sync.Mutex
	var open []net.Conn
	var dialing sync.WaitGroup
	for source := range sources {
		dialing.Go(func() {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, 0, byte(1+source))}, Timeout: 5 * time.Second}
			for i := range connections / sources {
				c, err := d.DialContext(f.t.Context(), "tcp", f.addr().String())
				if err != nil {
					continue // refused before accept: the same result
				}
				if i%2 == 0 {
					_, _ = c.Write([]byte{0x16, 3, 1}) // the server may have closed it
				}
				mu.Lock()
				open = append(open, c)
				mu.Unlock()
			}
		})
	}
	dialing.Wait()
	return func() {
		for _, c := range open {
			c.Close()
		}
	}
}

func TestFloodOfConnectionsDoesNotRefuseAClient(t *testing.T) {
	const connections = 1000
	f := startLoadServer(t, loadcontrol.Limits{})
	before := heap()
	var most atomic.Int64
	watch, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watch)
		for {
			most.Store(max(most.Load(), int64(f.r.Status().Connections)))
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	defer f.flood(connections, 8)()
	close(stop)
	<-watch
	if n := most.Load(); n > loadserver.DefaultMaxConnections || n < loadserver.DefaultMaxConnections/4 {
		t.Errorf("%d connections were open, want at most %d", n, loadserver.DefaultMaxConnections)
	}
	if !await.Within(5*time.Second, func() bool { return f.r.Status().Refused[loadcontrol.TooMany] > 0 }) {
		t.Error("refused no connection")
	}
	if grown := int64(heap()) - int64(before); grown > 32<<20 {
		t.Errorf("the heap grew by %d bytes, above the limit", grown)
	}
	// The connections are idle: the load server closes them after its timeout.
	if !await.Within(60*time.Second, func() bool {
		v, err := f.visit(1)
		if err == nil {
			v.close()
		}
		return err == nil
	}) {
		t.Error("an authorized client cannot open a session")
	}
	if !await.Within(60*time.Second, func() bool { return f.r.Status().Connections == 0 }) {
		t.Errorf("%d connections are open, want 0", f.r.Status().Connections)
	}
}

func TestFloodFromOneAddressDoesNotRefuseOthers(t *testing.T) {
	f := startLoadServer(t, loadcontrol.Limits{})
	defer f.flood(loadserver.DefaultMaxConnections, 1)()
	if n := f.r.Status().Connections; n > loadserver.DefaultMaxConnections/4 {
		t.Errorf("%d connections from one address, want at most %d", n, loadserver.DefaultMaxConnections/4)
	}
	f.enter(1)
}
