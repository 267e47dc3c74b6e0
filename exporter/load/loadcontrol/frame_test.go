package loadcontrol

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// persistent is a connection whose deadlines do nothing.
type persistent struct{ net.Conn }

func (persistent) SetReadDeadline(time.Time) error { return nil }

// readsFrom returns a client end that reads from r, without a goroutine.
func readsFrom(r io.Reader) *Conn {
	return &Conn{nc: persistent{}, in: bufio.NewReader(r), client: true, mostBytes: MaxBytes}
}

func TestFramesAreReadAsWritten(t *testing.T) {
	large := bytes.Repeat([]byte{7}, 3*partBytes+1)
	want := []event{{message: message("alone")}, {message: message("with"), data: large}, {message: message("after")}}
	var b []byte
	for _, e := range want {
		m, err := encode(&e.message)
		if err != nil {
			t.Fatal(err)
		}
		b = append(append(b, frame(m, len(e.data))...), e.data...)
	}
	c := readsFrom(oneByte{bytes.NewReader(b)})
	var buf []byte
	for _, want := range want {
		got, err := c.next(&buf)
		if err != nil || !cmp.Equal(got.message, want.message) || !bytes.Equal(got.data, want.data) {
			t.Fatalf("%s with %d bytes, %v; want %s with %d", got.message.name(), len(got.data), err, want.message.name(), len(want.data))
		}
	}
	if _, err := c.next(&buf); !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after the last frame: %v, want EOF", err)
	}
}

// oneByte returns one byte per read.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(b []byte) (int, error) { return o.r.Read(b[:min(1, len(b))]) }

func TestBadFramesAreRefused(t *testing.T) {
	for _, c := range []struct{ name, bytes, want string }{
		{"random", "HTTP/1.1 400 Bad Request\r\n", "loadcontrol: protocol violated: message of 1213486160 bytes with 791752241 bytes of data; want 1 to 65536 and at most 134217728"},
		{"empty", strings.Repeat("\x00", 8), "loadcontrol: protocol violated: message of 0 bytes with 0 bytes of data; want 1 to 65536 and at most 134217728"},
		{"too long a message", "\x00\x01\x00\x01\x00\x00\x00\x00", "loadcontrol: protocol violated: message of 65537 bytes with 0 bytes of data; want 1 to 65536 and at most 134217728"},
		{"4 GiB of bytes", "\x00\x00\x00\x01\xff\xff\xff\xff", "loadcontrol: protocol violated: message of 1 bytes with 4294967295 bytes of data; want 1 to 65536 and at most 134217728"},
		{"truncated header", "\x00\x00\x00", "within a frame: unexpected EOF"},
		{"no message", string(frame(make([]byte, 9), 0)[:8]), "within a frame: unexpected EOF"},
		{"truncated message", string(frame(make([]byte, 9), 0)[:10]), "within a frame: unexpected EOF"},
		{"truncated bytes", string(frame([]byte(`{"traffic":{"name":"x"}}`), 2)) + "x", "within a frame: unexpected EOF"},
	} {
		var buf []byte
		_, err := readsFrom(strings.NewReader(c.bytes)).next(&buf)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestFramesToAClientFitItsMemoryLimit(t *testing.T) {
	client, _ := net.Pipe()
	defer client.Close()
	before := debug.SetMemoryLimit(64 << 20)
	limited := newConn(client, nil, true)
	debug.SetMemoryLimit(before)
	if got := limited.mostBytes; got != 4<<20 {
		t.Errorf("with a memory limit of 64 MiB: %d, want 4 MiB", got)
	}
	var buf []byte
	c := readsFrom(bytes.NewReader(append(frame([]byte(`{"traffic":{"name":"x"}}`), 1001), make([]byte, 1001)...)))
	c.mostBytes = 1000
	if e, err := c.next(&buf); !errors.Is(err, ErrProtocol) || e.data != nil {
		t.Errorf("a frame above the limit: %d bytes, %v", len(e.data), err)
	}
}

// FuzzFrame: a decoded frame was in the input, and uses no more memory than the input.
func FuzzFrame(f *testing.F) {
	f.Add(frame([]byte(`{"close":{}}`), 0))
	f.Add(append(frame([]byte(`{"traffic":{"name":"x"}}`), 100), make([]byte, 100)...))
	f.Add(frame([]byte(`{"traffic":{"name":"x"}}`), MaxBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := readsFrom(bytes.NewReader(b))
		var buf []byte
		for read := 0; ; {
			e, err := c.next(&buf)
			if cap(buf) > 2*MaxMessageBytes || cap(e.data) > 2*len(b)+partBytes {
				t.Fatalf("%d and %d bytes of memory for %d", cap(buf), cap(e.data), len(b))
			}
			if err != nil {
				return
			}
			if read += frameHeaderBytes + len(e.data); read > len(b) || !bytes.Contains(b, e.data) {
				t.Fatalf("%d bytes, of %d", read, len(b))
			}
		}
	})
}
