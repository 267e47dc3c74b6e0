package control

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestFramesAreReadAsTheyWereWritten(t *testing.T) {
	var b []byte
	large := bytes.Repeat([]byte{7}, MaxChunkBytes)
	b = appendFrame(b, frameMessage, []byte("{}"))
	b = appendFrame(b, frameRecords, large)
	r := bufio.NewReader(oneByte{bytes.NewReader(b)})
	var buf []byte
	for _, want := range []struct {
		kind    byte
		payload []byte
	}{{frameMessage, []byte("{}")}, {frameRecords, large}} {
		kind, payload, err := readFrame(r, buf, func() {})
		if err != nil || kind != want.kind || !bytes.Equal(payload, want.payload) {
			t.Fatalf("type %d, %d octets, %v; want type %d, %d octets", kind, len(payload), err, want.kind, len(want.payload))
		}
		buf = payload
	}
	if _, _, err := readFrame(r, buf, func() {}); !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after the last frame: %v, want EOF", err)
	}
}

// oneByte gives one octet at a time.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(b []byte) (int, error) { return o.r.Read(b[:min(1, len(b))]) }

func TestBadFramesAreRefused(t *testing.T) {
	for _, c := range []struct{ name, octets, want string }{
		{"no such type", "\x00\x00\x00\x00\x01x", "control: protocol violated: frame of type 0, want 1 or 2"},
		{"random", "HTTP/1.1 400 Bad Request\r\n", "control: protocol violated: frame of type 72, want 1 or 2"},
		{"empty", "\x01\x00\x00\x00\x00", "control: protocol violated: frame of 0 octets, want 1 to 65536"},
		{"too long a message", "\x01\x00\x01\x00\x01", "control: protocol violated: frame of 65537 octets, want 1 to 65536"},
		{"4 GiB of records", "\x02\xff\xff\xff\xff", "control: protocol violated: frame of 4294967295 octets, want 1 to 65536"},
		{"truncated header", "\x01\x00\x00", "within a frame: unexpected EOF"},
		{"truncated payload", "\x01\x00\x00\x00\x09{}", "within a frame: unexpected EOF"},
	} {
		_, _, err := readFrame(bufio.NewReader(strings.NewReader(c.octets)), nil, func() {})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, frameMessage, []byte(`{"ping":{"seq":1}}`)))
	f.Add(appendFrame(appendFrame(nil, frameRecords, make([]byte, 100)), 9, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		var again, buf []byte
		for {
			kind, payload, err := readFrame(r, buf, func() {})
			if err != nil {
				break
			}
			if cap(payload) > max(MaxMessageBytes, MaxChunkBytes) {
				t.Fatalf("%d octets of memory", cap(payload))
			}
			again = appendFrame(again, kind, payload)
			buf = payload
		}
		if !bytes.HasPrefix(b, again) {
			t.Errorf("read %x\nof   %x", again, b)
		}
	})
}
