//go:build !unix

package loan

import "syscall"

// lock does nothing where there are no locks: the agent runs on Linux.
func lock(string) (unlock func(), err error) { return func() {}, nil }

func private(_, _ string, _ syscall.RawConn) error { return nil }
