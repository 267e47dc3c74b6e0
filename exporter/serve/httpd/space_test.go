package httpd

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"syscall"
	"testing"
)

func TestSpaceFitsTheMemoryLimit(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, c := range []struct {
		limit int64
		want  space
	}{
		{math.MaxInt64, space{connections: 512, ofSource: 64, making: 4, makingFor: 2, pending: 64 * mib, most: math.MaxInt, header: 64 << 10}},
		{64 * mib, space{connections: 64, ofSource: 8, making: 1, makingFor: 1, pending: 64 * mib, most: 8 * mib, header: 8 << 10, send: 64 << 10, receive: 16 << 10}},
		{1 * mib, space{connections: 64, ofSource: 8, making: 1, makingFor: 1, pending: 64 * mib, most: mib / 8, header: 8 << 10, send: 64 << 10, receive: 16 << 10}},
		{128 * mib, space{connections: 128, ofSource: 16, making: 1, makingFor: 1, pending: 64 * mib, most: 16 * mib, header: 8 << 10, send: 64 << 10, receive: 16 << 10}},
		{4 * gib, space{connections: 512, ofSource: 64, making: 1, makingFor: 1, pending: 64 * mib, most: 512 * mib, header: 64 << 10, send: 512 << 10, receive: 16 << 10}},
		{16 * gib, space{connections: 512, ofSource: 64, making: 4, makingFor: 2, pending: 64 * mib, most: min(2*gib, math.MaxInt), header: 64 << 10, send: 2 * mib, receive: 16 << 10}},
	} {
		got := spaceIn(c.limit)
		if got != c.want {
			t.Errorf("limit %d: %+v, want %+v", c.limit, got, c.want)
		}
		// The kernel uses twice the requested size.
		if kernel := int64(2 * got.connections * (got.send + got.receive)); c.limit >= 64*mib && kernel > c.limit/5 {
			t.Errorf("limit %d: the kernel may buffer %d bytes", c.limit, kernel)
		}
	}
}

func TestPendingBytesAreAtMostAnEighthOfTheLimit(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		limit   int64
		n, want int
	}{
		{math.MaxInt64, 2 * mib, 64 * mib},
		{math.MaxInt64, 24 * mib, 96 * mib}, // four long replies
		{64 * mib, 2 * mib, 8 * mib},
		{64 * mib, 24 * mib, 24 * mib}, // one reply, which waits already
		{1024 * mib, 2 * mib, 64 * mib},
		{1024 * mib, 24 * mib, 96 * mib},
		{1024 * mib, 48 * mib, 128 * mib},
	} {
		r := spaceIn(c.limit)
		if got := r.mayWait(c.n); got != c.want {
			t.Errorf("limit %d, replies of %d: %d bytes may wait, want %d", c.limit, c.n, got, c.want)
		}
	}
}

// TestReplyThatIsCutOffLeavesNothing: the kernel keeps no part of it either.
func TestReplyThatIsCutOffLeavesNothing(t *testing.T) {
	r := spaceIn(64 << 20)
	made := newReplies(slog.New(slog.DiscardHandler), space{making: 1, makingFor: 1}) // one may wait
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	s := newServer(made.whole(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })), slog.New(slog.DiscardHandler), &r)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(limiterListener{l, newLimiter(10, 10), &r}) }()
	t.Cleanup(func() { _ = s.Close() })
	ask := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 12)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	slow := ask()
	ask()
	if n, err := io.Copy(io.Discard, slow); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the first one read %d bytes of %d, %v; want a reset", n, len(content), err)
	}
}
