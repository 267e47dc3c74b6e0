//go:build unix

package httpd

import (
	"math"
	"syscall"
)

// mostDescriptors is how many files and sockets this process may have open (RLIMIT_NOFILE).
func mostDescriptors() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return math.MaxInt
	}
	return int(min(uint64(r.Cur), math.MaxInt)) //nolint:unconvert // int64 on FreeBSD
}
