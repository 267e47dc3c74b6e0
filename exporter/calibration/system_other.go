//go:build !linux

package calibration

import "time"

// Only Linux stamps packets so that there is something to calibrate.
func kernelRelease() string { return "" }

// DriverOf is "": see the file for Linux.
func DriverOf(string) string { return "" }

// ModerationOf is 0: see the file for Linux.
func ModerationOf(string) time.Duration { return 0 }
