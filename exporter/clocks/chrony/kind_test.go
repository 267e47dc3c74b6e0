package chrony

import (
	"net"
	"testing"

	fb "github.com/facebook/time/ntp/chrony"
)

// refID is a reference identifier as chrony.conf names it.
func refID(name string) (id uint32) {
	for i := range 4 {
		id <<= 8
		if i < len(name) {
			id |= uint32(name[i])
		}
	}
	return id
}

func TestKindOfTheSourceFollowsFromItsName(t *testing.T) {
	server := net.IPv4(192, 0, 2, 1)
	for _, c := range []struct {
		what, kind string
		tracking   fb.Tracking
	}{
		{"a pulse", "pps", fb.Tracking{RefID: refID("PPS")}},
		{"a pulse by the driver's name", "pps", fb.Tracking{RefID: refID("PPS0")}},
		{"a pulse in small letters", "pps", fb.Tracking{RefID: refID("pps1")}},
		{"a GPS pulse", "pps", fb.Tracking{RefID: refID("GPPS")}},
		{"sentences", "nmea", fb.Tracking{RefID: refID("NMEA")}},
		{"a receiver", "nmea", fb.Tracking{RefID: refID("GPS")}},
		{"a receiver with a number", "nmea", fb.Tracking{RefID: refID("GPS0")}},
		{"shared memory", "nmea", fb.Tracking{RefID: refID("SHM1")}},
		{"a card", "ptp", fb.Tracking{RefID: refID("PHC0")}},
		{"a card of ours", "ptp", fb.Tracking{RefID: refID("PTP")}},
		{"local mode", "local", fb.Tracking{RefID: refIDLocal}},
		{"a server", "ntp", fb.Tracking{RefID: 0xc0000201, IPAddr: server}},
		{"a server whose id spells PPS", "ntp", fb.Tracking{RefID: refID("PPS"), IPAddr: server}},
		{"an unnamed socket", "other", fb.Tracking{RefID: refID("SOC0")}},
		{"no letters", "other", fb.Tracking{RefID: 0x01020304}},
		{"nothing", "other", fb.Tracking{}},
	} {
		if got := kindOf(&c.tracking); got != c.kind {
			t.Errorf("%s: %q, want %q", c.what, got, c.kind)
		}
		if got := reference(&c.tracking)[3]; got != c.kind {
			t.Errorf("%s: published as %q, want %q", c.what, got, c.kind)
		}
	}
}
