//go:build !linux

package control

import "net"

// Tune does nothing on this system.
func Tune(*net.TCPConn) {}

// segments is not known on this system.
func segments(net.Conn) uint32 { return 0 }
