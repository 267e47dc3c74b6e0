package calibration

import (
	"fmt"
	"os"
)

// System is what a calibration is bound to. The zero value is unknown and differs
// from everything.
type System struct {
	// Host and Kernel are those of uname -n and -r.
	Host, Kernel string
	// Driver names the driver of an interface, "" if there is no such interface or it
	// does not say.
	Driver func(iface string) string
}

// ThisSystem is the one this program runs on.
func ThisSystem() System {
	host, _ := os.Hostname() // unknown differs from everything
	return System{Host: host, Kernel: kernelRelease(), Driver: DriverOf}
}

// differs says in what r is not of this system, "" if it is.
func (s System) differs(r *Record) string {
	switch {
	case r.Host != s.Host:
		return fmt.Sprintf("calibrated on host %q, this is %q", r.Host, s.Host)
	case r.Kernel != s.Kernel:
		return fmt.Sprintf("calibrated with kernel %q, this is %q", r.Kernel, s.Kernel)
	case s.Driver == nil || r.Driver != s.Driver(r.Interface):
		return fmt.Sprintf("calibrated with driver %q, which is another one now", r.Driver)
	}
	return ""
}
