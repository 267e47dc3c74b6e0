//go:build !linux

package phc

import (
	"errors"
	"fmt"
)

// Device is an open PTP hardware clock; there is none here.
type Device struct{}

// Open fails: other systems' clocks are not taken up yet.
func Open(int) (*Device, error) {
	return nil, fmt.Errorf("phc: hardware time stamps: %w on this system", errors.ErrUnsupported)
}

// Read fails.
func (*Device) Read() (Reading, error) { return Reading{}, errors.ErrUnsupported }

// Close does nothing.
func (*Device) Close() error { return nil }

// Interface fails.
func Interface(string) (Info, error) {
	return Info{}, fmt.Errorf("phc: hardware time stamps: %w on this system", errors.ErrUnsupported)
}
