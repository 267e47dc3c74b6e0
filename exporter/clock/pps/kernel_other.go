//go:build !linux

package pps

import (
	"errors"
	"fmt"
)

// system fails: other systems' pulses are not taken up yet.
func system() (kernel, error) {
	return nil, fmt.Errorf("pps: pulses per second: %w on this system", errors.ErrUnsupported)
}
