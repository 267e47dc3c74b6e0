package mixed

import (
	"errors"
	"testing"
	"time"

	"oneway.example/exporter/load/traffic"
)

// ending is a host of which only End is called.
type ending struct {
	traffic.Host
	why error
}

func (e *ending) End(why error) { e.why = why }

func (e *ending) SetBusy(time.Time) {}

// An outage longer than the idle timeout of UDP does not end the transfer of TCP beside it, which waits longer.
func TestIdlePartEndsTheSessionOnlyIfNoOtherHasTraffic(t *testing.T) {
	e := &ending{}
	s := &serving{host: e, until: map[string]time.Time{}}
	udp, tcp := &host{e, s, "udp"}, &host{e, s, "tcp"}
	tcp.SetBusy(time.Now().Add(time.Hour))
	if udp.End(traffic.ErrIdleTimeout); e.why != nil {
		t.Errorf("the idle part ended the session of another one: %v", e.why)
	}
	broken := errors.New("broken")
	if udp.End(broken); !errors.Is(e.why, broken) {
		t.Errorf("another reason did not end the session: %v", e.why)
	}
	e.why = nil
	tcp.SetBusy(time.Time{})
	if udp.End(traffic.ErrIdleTimeout); !errors.Is(e.why, traffic.ErrIdleTimeout) {
		t.Errorf("without other traffic: %v", e.why)
	}
}
