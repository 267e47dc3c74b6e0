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

// A client whose UDP packets get lost may still send over TCP: the session ends when nothing comes from it, however long
// a transfer is planned.
func TestIdlePartEndsTheSessionWhenAllPartsAreIdle(t *testing.T) {
	e := &ending{}
	s := &serving{host: e, parts: map[string]traffic.Session{"udp": nil, "tcp": nil}, until: map[string]time.Time{}, idle: map[string]time.Time{}}
	udp, tcp := &host{e, s, "udp"}, &host{e, s, "tcp"}
	if udp.End(traffic.ErrIdleTimeout); e.why != nil {
		t.Errorf("the idle part ended the session of another one: %v", e.why)
	}
	broken := errors.New("broken")
	if udp.End(broken); !errors.Is(e.why, broken) {
		t.Errorf("another reason did not end the session: %v", e.why)
	}
	e.why = nil
	s.idle["udp"] = time.Now().Add(-time.Second)
	if tcp.End(traffic.ErrIdleTimeout); e.why != nil {
		t.Errorf("a part that is no longer idle did not keep the session: %v", e.why)
	}
	if udp.End(traffic.ErrIdleTimeout); !errors.Is(e.why, traffic.ErrIdleTimeout) {
		t.Errorf("both parts are idle: %v", e.why)
	}
}
