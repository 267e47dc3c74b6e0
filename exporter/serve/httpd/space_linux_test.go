package httpd

import (
	"net"
	"syscall"
	"testing"
)

func TestKernelBuffersOfAConnectionAreBounded(t *testing.T) {
	r := spaceIn(64 << 20)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in, err := limiterListener{l, newLimiter(10, 10), &r}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	raw, err := in.(*conn).Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for option, asked := range map[int]int{syscall.SO_SNDBUF: r.send, syscall.SO_RCVBUF: r.receive} {
		var got int
		if e := raw.Control(func(fd uintptr) { got, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, option) }); e != nil || err != nil {
			t.Fatal(e, err)
		}
		if got > 2*asked { // socket(7): doubled, without automatic growth
			t.Errorf("option %d: %d bytes, want at most twice %d", option, got, asked)
		}
	}
}
