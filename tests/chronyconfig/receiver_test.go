package chronyconfig

import (
	"context"
	"encoding/binary"
	"math"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oneway.example/tests/receiver"
)

// usualLateness is the default lateness of the sentences.
const usualLateness = 100 * time.Millisecond

// openPTY is a receiver without time for chronyd, until the test ends.
func openPTY(t *testing.T) (pty string) {
	t.Helper()
	r, err := receiver.OpenPTY(receiver.Default())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r.Path
}

// openFIFO is a receiver whose time gpsd exports.
func openFIFO(t *testing.T, late time.Duration) (name string) {
	t.Helper()
	s := receiver.Default()
	s.Late = late
	r, err := receiver.OpenFIFO(filepath.Join(t.TempDir(), "receiver"), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r.Path
}

// feed sends a SOCK sample per second to a path, until the test ends: the true time minus the system time is offset.
func feed(t *testing.T, path string, offset time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	running.Go(func() {
		receiver.EverySecond(ctx, func() time.Duration { return 5 * time.Millisecond }, func(second time.Time) {
			conn, err := net.Dial("unixgram", path)
			if err != nil {
				return // chronyd has not started yet
			}
			_, _ = conn.Write(sockSample(second, offset))
			_ = conn.Close()
		})
	})
}

// sockSample is chrony 4's struct sock_sample (refclock_sock.c).
func sockSample(at time.Time, offset time.Duration) []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(at.Unix()))
	b = binary.NativeEndian.AppendUint64(b, uint64(at.Nanosecond()/1000))
	b = binary.NativeEndian.AppendUint64(b, math.Float64bits(offset.Seconds()))
	for _, v := range []uint32{0, 0, 0, 0x534f434b} { // pulse, leap, pad, magic
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}
