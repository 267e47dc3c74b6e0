package chrony

import (
	"strings"

	fb "github.com/facebook/time/ntp/chrony"
)

// kindOf says what kind of source chronyd follows: the label `kind` of
// oneway_clock_reference_info.
//
// chronyd's protocol tells the kind of a reference clock only by its reference
// identifier: refid in chrony.conf, or else the driver's name and a number
// (refclock.c: PPS0, SHM0, SOC0, PHC0). The names taken here are those that our
// configurations give. A shared-memory segment without a name counts as nmea: whether
// sentences or pulses are in it nobody can tell, and nmea claims less.
func kindOf(t *fb.Tracking) string {
	switch {
	case t.RefID == refIDLocal:
		return "local"
	case t.IPAddr != nil:
		return "ntp"
	}
	name := strings.ToUpper(fb.RefidToString(t.RefID))
	for _, k := range []struct {
		kind     string
		prefixes []string
	}{
		{"pps", []string{"PPS", "GPPS"}},
		{"nmea", []string{"NMEA", "GPS", "SHM"}},
		{"ptp", []string{"PHC", "PTP"}},
	} {
		for _, prefix := range k.prefixes {
			if strings.HasPrefix(name, prefix) {
				return k.kind
			}
		}
	}
	return "other"
}
