// Package freeport reserves ports of the loopback addresses for what a test starts, and for what nobody must listen on.
//
// The kernel gives a port that it has chosen for a test, and that the test has closed again, to any other socket: to a client
// of another test, before the program of this test listens. The ports of this package are below those that Linux chooses, and
// a test holds a lock for each until it ends, so that no other test gets it.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Ports below net.ipv4.ip_local_port_range, whose default begins at 32768.
const (
	firstPort = 20_000
	endPort   = 32_768
)

// Address is an address of 127.0.0.1 whose port is free for TCP and UDP.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(Port(t))))
}

// Port is a port of the loopback addresses that is free for TCP and UDP.
func Port(t testing.TB) uint16 {
	t.Helper()
	return Range(t, 1)
}

// Range returns the first of n consecutive free ports.
func Range(t testing.TB, n int) (first uint16) {
	t.Helper()
	const attempts = 1000
	for range attempts {
		first := firstPort + rand.IntN(endPort-firstPort-n) // any port is as good, so that no seed is needed
		if release, ok := reserve(first, n); ok {
			t.Cleanup(release)
			return uint16(first)
		}
	}
	t.Fatalf("freeport: no %d consecutive ports of %d to %d are free in %d attempts", n, firstPort, endPort-1, attempts)
	return 0
}

// reserve locks ports that are free.
func reserve(first, n int) (release func(), ok bool) {
	var locks []net.PacketConn
	release = func() {
		for _, l := range locks {
			_ = l.Close() // no data are lost
		}
	}
	for port := first; port < first+n; port++ {
		// The name of a socket is the lock: of one network namespace, as the port is, and released when the process ends.
		l, err := net.ListenPacket("unixgram", fmt.Sprintf("@oneway-test-port-%d", port))
		if err != nil {
			release()
			return nil, false
		}
		if locks = append(locks, l); !free(port) {
			release()
			return nil, false
		}
	}
	return release, true
}

// free reports whether no socket of an address of this host has the port.
func free(port int) bool {
	address := ":" + strconv.Itoa(port)
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	_ = l.Close()
	c, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
