package loadcontrol

import (
	"net/netip"
	"testing"
	"time"
)

func TestSilenceNamesAnAddressThatThisHostHasLost(t *testing.T) {
	at := netip.MustParseAddrPort("127.0.0.2:8620")
	for local, want := range map[string]string{
		"127.0.0.9:1":     "nothing was received from the load server at 127.0.0.2:8620 for 10s",
		"198.51.100.77:1": "nothing was received from the load server at 127.0.0.2:8620 for 10s: this host no longer has its address 198.51.100.77",
	} {
		c := &Client{Conn: &Conn{local: netip.MustParseAddrPort(local)}}
		if err := c.Silence(at, SilentAll, 10*time.Second, time.Minute); err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestSilenceNamesWhatIsSilent(t *testing.T) {
	at := netip.MustParseAddrPort("127.0.0.2:8620")
	c := &Client{Conn: &Conn{local: netip.MustParseAddrPort("127.0.0.1:1")}}
	for what, want := range map[Silent]string{
		SilentTCP: "nothing was received from the load server at 127.0.0.2:8620 over TCP for 10s",
		SilentProcess: "nothing was received from the load server at 127.0.0.2:8620 over the control connection for 10s, " +
			"though its host acknowledges payload: it hangs, or a firewall drops packets of the control connection (TCP)",
		SilentUDP: "nothing was received from the load server at 127.0.0.2:8620 over UDP, nor a message over TCP, for 10s",
		SilentControl: "nothing was received from the load server at 127.0.0.2:8620 over the control connection (TCP) for 10s, " +
			"though other packets of it arrive: does a firewall drop packets of this connection, in either direction?",
	} {
		if err := c.Silence(at, what, 10040*time.Millisecond, 999*time.Millisecond); err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// A firewall alone is not the cause where a queue can be.
func TestSilenceNamesALongQueue(t *testing.T) {
	at := netip.MustParseAddrPort("127.0.0.2:8620")
	c := &Client{Conn: &Conn{local: netip.MustParseAddrPort("127.0.0.1:1")}}
	const want = "nothing was received from the load server at 127.0.0.2:8620 over the control connection (TCP) for 52s, " +
		"though other packets of it arrive: a long queue (round trips of up to 21s) holds back or drops those of this connection, or a firewall does"
	if err := c.Silence(at, SilentControl, 52*time.Second, 21*time.Second); err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
