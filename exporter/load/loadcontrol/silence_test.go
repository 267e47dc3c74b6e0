package loadcontrol

import (
	"net/netip"
	"testing"
	"time"
)

func TestSilenceNamesAnAddressThatThisHostHasLost(t *testing.T) {
	at := netip.MustParseAddrPort("198.51.100.2:8620")
	for local, want := range map[string]string{
		"127.0.0.9:1":     "nothing was received from the load server at 198.51.100.2:8620 for 10s",
		"[::1]:1":         "nothing was received from the load server at 198.51.100.2:8620 for 10s",
		"198.51.100.77:1": "nothing was received from the load server at 198.51.100.2:8620 for 10s: this host no longer has its address 198.51.100.77",
	} {
		c := &Client{Conn: &Conn{local: netip.MustParseAddrPort(local)}}
		if err := c.Silence(at, 10*time.Second); err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
