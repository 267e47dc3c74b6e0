package tcpsocket

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/await"
)

func TestAStampedWriteHasAllStampsAndItsArrival(t *testing.T) {
	stamping(t)
	for _, address := range []string{"127.0.0.1", "::1"} {
		from, to := pair(t, address, Options{NoDelay: true}, Options{})
		var got []Stamp
		if err := errors.Join(from.EnableStamps(func(s Stamp) { got = append(got, s) }), to.EnableStamps(nil)); err != nil {
			t.Fatal(err)
		}
		const size, writes = 1000, 50
		buf := make([]byte, 64<<10)
		for i := range writes {
			got = got[:0]
			before := instant.Now()
			if n, _, err := from.WriteStamped(buf[:size], WantScheduled|WantLeft, false); n != size || err != nil {
				t.Fatalf("wrote %d: %v", n, err)
			}
			a, err := to.ReadStamped(buf, i%2 == 1)
			if err != nil || a.N != size || a.Left != 0 || a.At < before || a.Begin > instant.Now() {
				t.Fatalf("read %+v: %v", a, err)
			}
			for until := time.Now().Add(10 * time.Second); len(got) < 3 && time.Now().Before(until); {
				_ = from.Drain()
			}
			if len(got) != 3 {
				t.Fatalf("write %d has stamps %+v, want 3", i, got)
			}
			for k, kind := range []StampKind{Scheduled, Left, Acked} {
				s := got[k]
				if s.Kind != kind || s.Offset != int64(i+1)*size || s.At < before || s.Early < 0 || s.At.Sub(before) < s.Early {
					t.Errorf("write %d: stamp %+v", i, s)
				}
			}
			if s := got[2]; !s.Known || s.Through != s.Offset {
				t.Errorf("write %d: acknowledged %d, want %d", i, s.Through, s.Offset)
			}
		}
		done := make(chan error, 1)
		go func() {
			_, err := to.ReadStamped(buf, false)
			if errors.Is(err, io.EOF) {
				err = to.Close()
			}
			done <- err
		}()
		if err := errors.Join(from.Finish(), <-done); err != nil {
			t.Error(err)
		}
	}
}

// collected are the stamps by offset.
type collected map[int64][]Stamp

func (c collected) take(s Stamp) { c[s.Offset] = append(c[s.Offset], s) }

func (c collected) of(offset int64, kind StampKind) (all []Stamp) {
	for _, s := range c[offset] {
		if s.Kind == kind {
			all = append(all, s)
		}
	}
	return all
}

// stamping waits until the kernel stamps what arrives: it begins some time after the first socket asked (a work queue,
// net_enable_timestamp), and reads have no stamp until then.
func stamping(t testing.TB) {
	t.Helper()
	from, to := pair(t, "127.0.0.1", Options{}, Options{})
	enable(t, from, to, nil)
	await.That(t, "the kernel stamps what arrives", func() bool {
		_, _, err := from.WriteStamped([]byte{1}, 0, true)
		a, err2 := to.ReadStamped(make([]byte, 1), false)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		return a.At != 0
	})
}

func enable(t testing.TB, from, to *Conn, take func(Stamp)) {
	t.Helper()
	if err := errors.Join(from.EnableStamps(take), to.EnableStamps(nil)); err != nil {
		t.Fatal(err)
	}
}

// discard reads until the end of the stream and closes.
func discard(to *Conn, reads func(Arrival)) error {
	buf := make([]byte, 64<<10)
	for {
		a, err := to.ReadStamped(buf, true)
		if errors.Is(err, io.EOF) {
			return to.Close()
		}
		if err != nil {
			return err
		}
		reads(a)
	}
}

// The write waits, as the receiver does not read: a stamp is then the only event of the socket, which a reader's poller takes
// for an error.
func TestTheEndIsAwaitedWithStampsOnAFullSocket(t *testing.T) {
	from, to := pair(t, "127.0.0.1", Options{SendBuffer: 8 << 10}, Options{ReceiveBuffer: 8 << 10})
	got := collected{}
	enable(t, from, to, got.take)
	if err := from.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	sent := 0
	b := make([]byte, 1000)
	for {
		n, waited, err := from.WriteStamped(b, WantLeft, true)
		sent += n
		if err != nil {
			if !waited || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("after %d bytes: waited %v, %v", sent, waited, err)
			}
			break
		}
	}
	if err := from.SetWriteDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	tries, finish := 0, from.stamps.finish
	from.stamps.finish = func(fd uintptr) bool { tries++; return finish(fd) }
	done, received := make(chan error, 1), 0
	go func() {
		time.Sleep(200 * time.Millisecond) // the reader begins after the sender has begun to wait in the kernel, which has no event; a slower sender still passes
		done <- discard(to, func(a Arrival) { received += a.N })
	}()
	if err := errors.Join(from.Finish(), <-done); err != nil || received != sent {
		t.Errorf("received %d of %d bytes, %v", received, sent, err)
	}
	if most := 2 + 3*len(got); tries > most { // an event of each stamp at most
		t.Errorf("%d tries, want at most %d", tries, most)
	}
	for at := int64(1000); at <= int64(sent); at += 1000 {
		if len(got.of(at, Left)) == 0 || len(got.of(at, Acked)) != 1 {
			t.Errorf("byte %d has stamps %+v", at, got[at])
		}
	}
	from, to = pair(t, "127.0.0.1", Options{}, Options{})
	enable(t, from, to, nil)
	to.Abort()
	if err := from.Finish(); err == nil {
		t.Error("a reset is an end")
	}
}

func TestAReadSaysWhenTheSocketWasEmptyAndWhatIsLeft(t *testing.T) {
	stamping(t)
	from, to := pair(t, "127.0.0.1", Options{NoDelay: true}, Options{})
	enable(t, from, to, nil)
	buf := make([]byte, 600)
	write := func() instant.Time {
		before := instant.Now()
		if _, _, err := from.WriteStamped(make([]byte, 1000), 0, true); err != nil {
			t.Fatal(err)
		}
		return before
	}
	read := func() Arrival {
		a, err := to.ReadStamped(buf, false)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := write()
	a := read()
	if a.N != 600 || a.Left != 400 || a.At < first || a.At > a.Begin {
		t.Errorf("written at %v: %+v", first, a)
	}
	b := read()
	if b.N != 400 || b.Left != 0 || b.At != a.At || b.Empty != a.Empty {
		t.Errorf("after %+v: %+v", a, b)
	}
	second := write()
	if c := read(); c.Empty != b.Begin || c.At < second || c.At == b.At {
		t.Errorf("after %+v: %+v", b, c)
	}
	begun := make(chan Arrival)
	var empty atomic.Bool
	take := to.reads.take
	to.reads.take = func(fd uintptr) bool {
		done := take(fd)
		empty.Store(!done)
		return done
	}
	go func() { // two reads, the second of which finds the socket empty
		read()
		begun <- read()
	}()
	await.That(t, "a reader has found the socket empty", func() bool { return empty.Load() })
	third := write()
	if d := <-begun; d.Empty == 0 || d.Empty >= third || d.Begin < third {
		t.Errorf("written at %v: %+v", third, d)
	}
	state, err := to.Reception()
	if err != nil || state.OutOfOrder != 0 || !state.Known {
		t.Errorf("%+v, %v", state, err)
	}
}

func TestWritesOfOtherMethodsCountToo(t *testing.T) {
	from, to := pair(t, "127.0.0.1", Options{NoDelay: true}, Options{})
	var last Stamp
	enable(t, from, to, func(s Stamp) { last = s })
	_, err := from.Write(make([]byte, 17))
	_, _, err2 := from.WriteMessage(make([]byte, 100))
	_, _, err3 := from.WriteStamped(make([]byte, 10), WantLeft, false)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	await.That(t, "it is acknowledged", func() bool { return from.Drain() == nil && last.Kind == Acked })
	if last.Offset != 127 || last.Through != 127 || from.stamps.asked != 127 || from.stamps.told != 127 {
		t.Errorf("%+v", last)
	}
}

func TestKeysAreUnwrapped(t *testing.T) {
	for _, near := range []int64{0, 1, 1<<31 - 1, 1 << 31, 1<<32 - 5, 1 << 32, 7<<32 + 12345} {
		for _, d := range []int64{0, -1, 1, -1 << 31, 1<<31 - 1} {
			if got := unwrap(near, uint32(near+d)); got != near+d {
				t.Errorf("%d%+d became %d", near, d, got)
			}
		}
	}
}

func TestAStampIsEarlyOnlyWithinACall(t *testing.T) {
	c := call{100, 200}
	for at, want := range map[instant.Time]time.Duration{99: 0, 100: 0, 150: 50, 200: 100, 201: 0} {
		if got := c.early(at); got != want {
			t.Errorf("%d: %d, want %d", at, got, want)
		}
	}
	var b busy
	b.begin.Store(100)
	if got := b.early(1000); got != 900 { // it has not returned
		t.Error(got)
	}
	b.end.Store(200)
	if b.early(150) != 50 || b.early(1000) != 0 {
		t.Error(b.early(150), b.early(1000))
	}
}

func TestStampsDoNotAllocate(t *testing.T) {
	from, to := pair(t, "127.0.0.1", Options{NoDelay: true}, Options{})
	stamps, buf := 0, make([]byte, 4096)
	enable(t, from, to, func(Stamp) { stamps++ })
	if n := testing.AllocsPerRun(200, func() {
		_, _, err := from.WriteStamped(buf, WantLeft|WantScheduled, true)
		_, err2 := to.ReadStamped(buf, true)
		_, err3 := to.Reception()
		if err != nil || err2 != nil || err3 != nil || from.Drain() != nil {
			t.Error(err, err2, err3)
		}
	}); n > 0 || stamps < 600 {
		t.Errorf("%v allocations, %d stamps", n, stamps)
	}
}

// FuzzControls: no control message makes the parser fail, nor a length beyond its own end.
func FuzzControls(f *testing.F) {
	f.Add([]byte{}, []byte{8, 0, 13, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, control, stats []byte) {
		if c := parseControls(control); len(c.stats) > len(control) {
			t.Error(len(c.stats))
		}
		c := controls{stats: stats}
		if _, _, known := c.through(true); known && len(stats) < 8+12+12+8 {
			t.Errorf("known from %d bytes", len(stats))
		}
	})
}

// What a write and a read cost with stamps of each and without.
func BenchmarkWrite(b *testing.B) {
	for _, mode := range []string{"plain", "unstamped", "stamped"} {
		b.Run(mode, func(b *testing.B) {
			from, to := pair(b, "127.0.0.1", Options{NoDelay: true}, Options{})
			buf := make([]byte, 4096)
			want := Want(0)
			if mode != "plain" {
				enable(b, from, to, nil)
			}
			if mode == "stamped" {
				want = WantLeft | WantScheduled
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				if mode == "plain" {
					_, _, _ = from.WriteMessage(buf)
					_, _ = to.Discard(buf)
				} else {
					_, _, _ = from.WriteStamped(buf, want, true)
					_, _ = to.ReadStamped(buf, true)
				}
			}
		})
	}
}
