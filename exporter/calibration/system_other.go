//go:build !linux

package calibration

// Only Linux stamps packets so that there is something to calibrate.
func kernelRelease() string { return "" }

// DriverOf is "": see the file for Linux.
func DriverOf(string) string { return "" }
