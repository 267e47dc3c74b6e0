package probe

import (
	"fmt"
	"time"
)

// Figures writes a duration with three figures and a unit that people read.
func Figures(d time.Duration) string {
	switch abs := d.Abs(); {
	case abs >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case abs >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.3g µs", d.Seconds()*1e6)
}
