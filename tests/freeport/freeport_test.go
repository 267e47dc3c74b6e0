package freeport

import (
	"net"
	"sync"
	"testing"
)

func TestPortsAreDifferentAndFree(t *testing.T) {
	var (
		mu    sync.Mutex
		taken = map[uint16]bool{}
		all   sync.WaitGroup
	)
	for range 8 {
		all.Go(func() {
			for range 50 {
				first := Range(t, 3)
				mu.Lock()
				for port := first; port < first+3; port++ {
					if taken[port] || port < firstPort || port >= endPort {
						t.Errorf("port %d is given twice, or not in the range", port)
					}
					taken[port] = true
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	at := Address(t)
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.ListenPacket("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
}

func TestPortIsReservedUntilTheTestEnds(t *testing.T) {
	var port int
	t.Run("holder", func(t *testing.T) {
		port = int(Port(t))
		if _, ok := reserve(port, 1); ok {
			t.Error("a port is reserved twice")
		}
	})
	release, ok := reserve(port, 1)
	if !ok {
		t.Fatal("the port is not free after the end of its test")
	}
	release()
}

func TestUsedPortIsNotReserved(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, port := range []int{l.Addr().(*net.TCPAddr).Port, c.LocalAddr().(*net.UDPAddr).Port} {
		if _, ok := reserve(port, 1); ok {
			t.Errorf("port %d is in use, and reserved", port)
		}
	}
}
