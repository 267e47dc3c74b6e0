package chronyconfig

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/ctxtime"
)

// openPTY is a GNSS receiver on a pty: it sends RMC and GGA once a second until the test ends. gpsd treats a pty as a
// test harness and does not export its time.
func openPTY(t *testing.T) (pty string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Fd makes the file blocking, and Close must be able to end a Read.
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	pty = fmt.Sprintf("/dev/pts/%d", number)
	slave, err := os.OpenFile(pty, os.O_RDWR|unix.O_NOCTTY, 0) // kept open, so that the pty remains when gpsd closes it
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(pty, 0o666); err != nil { // gpsd drops root
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, master) }() // discards gpsd's queries
	writeSentences(t, master, usualLateness, func() { slave.Close(); master.Close() })
	return pty
}

// usualLateness is the default lateness of the sentences.
const usualLateness = 100 * time.Millisecond

// openFIFO is a receiver without a return channel, for chronyd: Debian 12's gpsd (3.22) exports the time of a FIFO to
// SHM 0, as that of a real port.
func openFIFO(t *testing.T, late time.Duration) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "receiver")
	if err := unix.Mkfifo(name, 0o666); err != nil {
		t.Fatal(err)
	}
	fifo, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	writeSentences(t, fifo, late, func() { fifo.Close() })
	return name
}

// writeSentences writes each second's sentences with the given lateness, until the test ends. Their time is that of this host's
// clock.
func writeSentences(t *testing.T, to io.Writer, late time.Duration, hangUp func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); hangUp(); running.Wait() })
	running.Go(func() {
		everySecond(ctx, late, func(second time.Time) { _, _ = io.WriteString(to, sentences(second)) })
	})
}

// everySecond calls f at the given lateness after each second of the clock.
func everySecond(ctx context.Context, late time.Duration, f func(second time.Time)) {
	for {
		second := time.Now().Add(-late).Truncate(time.Second).Add(time.Second)
		// the receiver reports at the begin of a second
		if !ctxtime.Sleep(ctx, time.Until(second.Add(late))) {
			return
		}
		f(second.UTC())
	}
}

// sentences are RMC and GGA for one second (NMEA 0183).
func sentences(at time.Time) string {
	const place = "5104.0000,N,11407.0000,W"
	hms, dmy := at.Format("150405.00"), at.Format("020106")
	return sentence("GPRMC,"+hms+",A,"+place+",0.0,0.0,"+dmy+",,,A") +
		sentence("GPGGA,"+hms+","+place+",1,08,0.9,1045.0,M,-17.0,M,,")
}

func sentence(s string) string {
	var sum byte
	for i := range len(s) {
		sum ^= s[i]
	}
	return fmt.Sprintf("$%s*%02X\r\n", s, sum)
}

// feed sends a SOCK sample per second to a path, until the test ends: the true time minus the system time is offset,
// or, for a pulse, only that a second began.
func feed(t *testing.T, path string, offset time.Duration, pulse bool) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	running.Go(func() {
		everySecond(ctx, 5*time.Millisecond, func(second time.Time) {
			conn, err := net.Dial("unixgram", path)
			if err != nil {
				return // chronyd has not started yet
			}
			_, _ = conn.Write(sockSample(second, offset, pulse))
			_ = conn.Close()
		})
	})
}

// sockSample is chrony 4's struct sock_sample (refclock_sock.c).
func sockSample(at time.Time, offset time.Duration, pulse bool) []byte {
	flag := uint32(0)
	if pulse {
		flag = 1
	}
	b := binary.NativeEndian.AppendUint64(nil, uint64(at.Unix()))
	b = binary.NativeEndian.AppendUint64(b, uint64(at.Nanosecond()/1000))
	b = binary.NativeEndian.AppendUint64(b, math.Float64bits(offset.Seconds()))
	for _, v := range []uint32{flag, 0, 0, 0x534f434b} { // pulse, leap, pad, magic
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}

func TestSentencesHaveTheirChecksum(t *testing.T) {
	got := sentences(time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC))
	if !strings.HasPrefix(got, "$GPRMC,010203.00,A,") || !strings.Contains(got, ",211126,,,A*") {
		t.Errorf("got %q", got)
	}
	// An example of the gpsd project's description of NMEA.
	if got, want := sentence("GPGLL,4916.45,N,12311.12,W,225444,A"), "$GPGLL,4916.45,N,12311.12,W,225444,A*31\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
