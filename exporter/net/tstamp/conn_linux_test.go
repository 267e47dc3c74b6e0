package tstamp

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
)

// limit is the timeout of a test for events that occur at once.
const limit = 10 * time.Second

// collect receives on c until enough returns true, and fails the test on an error.
func collect(tb testing.TB, c *Conn, enough func(in []In, tx []TxStamp, errs []ICMPError) bool) (in []In, tx []TxStamp, errs []ICMPError) {
	tb.Helper()
	guard := time.AfterFunc(limit, func() { _ = c.Close() })
	defer guard.Stop()
	b := NewBatch(16, 2048)
	for !enough(in, tx, errs) {
		if err := c.Receive(b); err != nil {
			tb.Fatalf("receive: %v after %d packets, %d timestamps, errors %v", err, len(in), len(tx), errs)
		}
		for _, i := range b.In {
			i.Payload = bytes.Clone(i.Payload)
			in = append(in, i)
		}
		tx = append(tx, b.Tx...)
		errs = append(errs, b.Errors...)
	}
	return in, tx, errs
}

func packets(n int) func([]In, []TxStamp, []ICMPError) bool {
	return func(in []In, _ []TxStamp, _ []ICMPError) bool { return len(in) >= n }
}

func stamps(n int) func([]In, []TxStamp, []ICMPError) bool {
	return func(_ []In, tx []TxStamp, _ []ICMPError) bool { return len(tx) >= n }
}

func loopback(v6 bool) netip.AddrPort {
	if v6 {
		return netip.MustParseAddrPort("[::1]:0")
	}
	return netip.MustParseAddrPort("127.0.0.1:0")
}

func families(t *testing.T, f func(t *testing.T, v6 bool)) {
	t.Run("ipv4", func(t *testing.T) { f(t, false) })
	t.Run("ipv6", func(t *testing.T) { f(t, true) })
}

// warm sends packets until the kernel timestamps received packets: it enables that asynchronously after the first
// socket on the machine has requested it.
func warm(tb testing.TB, local, remote *Conn) {
	tb.Helper()
	for range 100 {
		_, err := local.Send([]Out{{Payload: []byte("warm"), Peer: remote.LocalAddr()}})
		check(tb, err)
		in, _, _ := collect(tb, remote, packets(1))
		collect(tb, local, stamps(1))
		if in[0].Stamp.Origin == sample.Kernel {
			return
		}
		time.Sleep(10 * time.Millisecond) // the kernel enables timestamps asynchronously
	}
	tb.Fatal("the kernel does not timestamp received packets")
}

func TestPacketArrivesWithItsHeaderAndStamps(t *testing.T) {
	families(t, func(t *testing.T, v6 bool) {
		local, remote := open(t, loopback(v6), Options{}), open(t, loopback(v6), Options{})
		warm(t, local, remote)
		out := []Out{
			{Payload: []byte("one"), Peer: remote.LocalAddr(), Source: local.LocalAddr().Addr(), DSCP: 46, TTL: 200, Cookie: 1},
			{Payload: nil, Peer: remote.LocalAddr(), Cookie: 2},
		}
		if n, err := local.Send(out); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		in, _, _ := collect(t, remote, packets(2))
		_, tx, _ := collect(t, local, stamps(2))
		if i := in[0]; string(i.Payload) != "one" || i.Peer != local.LocalAddr() || i.Local != remote.LocalAddr().Addr() || i.TTL != 200 || i.DSCP != 46 || i.Truncated {
			t.Errorf("received %+v", i)
		}
		if i := in[1]; len(i.Payload) != 0 || i.TTL == 0 || i.DSCP != 0 {
			t.Errorf("received the empty packet as %+v", i)
		}
		for i := range 2 {
			if tx[i].Cookie != out[i].Cookie || tx[i].At != out[i].At || tx[i].Stamp.Origin != sample.Kernel {
				t.Errorf("transmit timestamp %+v for %+v", tx[i], out[i])
			}
			if r := in[i]; r.Stamp.Origin != sample.Kernel || tx[i].Stamp.At < out[i].At || r.Stamp.At < tx[i].Stamp.At || r.At < r.Stamp.At {
				t.Errorf("times out of order: sent %v, TX timestamp %v, RX timestamp %v (%v), read %v", out[i].At, tx[i].Stamp.At, r.Stamp.At, r.Stamp.Origin, r.At)
			}
		}
	})
}

func TestOtherFamilyIsRefused(t *testing.T) {
	families(t, func(t *testing.T, v6 bool) {
		c := open(t, loopback(v6), Options{})
		good := Out{Peer: netip.AddrPortFrom(c.LocalAddr().Addr(), 9)}
		bad := Out{Peer: netip.AddrPortFrom(loopback(!v6).Addr(), 9)}
		source := good
		source.Source = loopback(!v6).Addr()
		for _, b := range []Out{bad, source} {
			if n, err := c.Send([]Out{good, b, good}); n != 1 || !errors.Is(err, syscall.EAFNOSUPPORT) {
				t.Errorf("sent %d, %v; want 1, EAFNOSUPPORT", n, err)
			}
		}
	})
}

func TestLongPacketIsMarkedTruncated(t *testing.T) {
	local, remote := open(t, loopback(false), Options{}), open(t, loopback(false), Options{})
	_, err := local.Send([]Out{{Payload: []byte("abcdef"), Peer: remote.LocalAddr()}, {Payload: []byte("abcd"), Peer: remote.LocalAddr()}})
	check(t, err)
	b := NewBatch(1, 4) // one packet per call
	for _, truncated := range []bool{true, false} {
		check(t, remote.Receive(b))
		if got := b.In[0]; got.Truncated != truncated || string(got.Payload) != "abcd" {
			t.Errorf("got %q, truncated %v, want %v", got.Payload, got.Truncated, truncated)
		}
	}
	if s := remote.Stats(); s.Received != 2 || s.Truncated != 1 {
		t.Errorf("received %d, truncated %d, want 2, 1", s.Received, s.Truncated)
	}
}

func TestDropsAtTheSocketAreCounted(t *testing.T) {
	local, remote := open(t, loopback(false), Options{}), open(t, loopback(false), Options{ReceiveBufferBytes: 4096})
	const sent = 200
	for range sent {
		_, err := local.Send([]Out{{Payload: make([]byte, 1000), Peer: remote.LocalAddr()}})
		check(t, err)
	}
	dropped := remote.Stats().Dropped // before any packet is read: no packet carries the counter
	if dropped == 0 || dropped >= sent {
		t.Fatalf("dropped %d of %d packets with a buffer of %d bytes", dropped, sent, remote.Stats().ReceiveBufferBytes)
	}
	collect(t, remote, packets(sent-int(dropped)))
	check(t, remote.Close())
	if s := remote.Stats(); s.Received+s.Dropped != sent {
		t.Errorf("received %d and dropped %d, want a sum of %d", s.Received, s.Dropped, sent)
	}
}

// Packets are dropped while the socket's counter and the host's, which limits it, are read one after the other.
func TestDropsBesideReadingsAreCounted(t *testing.T) {
	local, remote := open(t, loopback(false), Options{}), open(t, loopback(false), Options{ReceiveBufferBytes: 4096})
	const sent, each = 100_000, 50
	var done atomic.Bool
	var sender sync.WaitGroup
	sender.Go(func() {
		defer done.Store(true)
		out := slices.Repeat([]Out{{Payload: make([]byte, 1000), Peer: remote.LocalAddr()}}, each)
		for range sent / each {
			if n, err := local.Send(out); n != each || err != nil {
				t.Errorf("sent %d: %v", n, err)
				return
			}
		}
	})
	for !done.Load() {
		remote.Stats()
	}
	sender.Wait()
	check(t, remote.Close())
	if s := remote.Stats(); s.Dropped > sent || s.Dropped < sent-10 {
		t.Errorf("%d packets dropped, want %d less some in the buffer", s.Dropped, sent)
	}
}

func TestICMPErrorIsReportedForItsPeerOnly(t *testing.T) {
	families(t, func(t *testing.T, v6 bool) {
		gone := open(t, loopback(v6), Options{})
		closed := gone.LocalAddr()
		check(t, gone.Close())
		local, remote := open(t, loopback(v6), Options{}), open(t, loopback(v6), Options{})
		const rounds = 50
		for range rounds {
			// Each packet to the closed port stores an error with the socket, which must not fail the next packet, to
			// another peer.
			if n, err := local.Send([]Out{{Peer: closed}, {Peer: remote.LocalAddr()}, {Peer: closed}}); n != 3 || err != nil {
				t.Fatalf("sent %d: %v", n, err)
			}
		}
		collect(t, remote, packets(rounds))
		_, _, errs := collect(t, local, func(_ []In, tx []TxStamp, errs []ICMPError) bool { return len(errs) > 0 && len(tx) >= 3*rounds })
		if e := errs[0]; e.Peer != closed || e.Err != syscall.ECONNREFUSED || e.Matched { // all packets are empty
			t.Errorf("error %+v, want ECONNREFUSED of %v", e, closed)
		}
	})
}

func TestWithoutKernelTimestampsUserSpaceOnesAreReported(t *testing.T) {
	local, remote := open(t, loopback(false), Options{UserTimestamps: true}), open(t, loopback(false), Options{UserTimestamps: true})
	var tx []TxStamp
	var done sync.WaitGroup
	done.Go(func() { _, tx, _ = collect(t, local, stamps(3)) }) // waits before anything is sent
	out := []Out{{Peer: remote.LocalAddr(), Cookie: 1}, {Peer: remote.LocalAddr(), Cookie: 2}, {Peer: remote.LocalAddr(), Cookie: 3}}
	_, err := local.Send(out)
	check(t, err)
	in, _, _ := collect(t, remote, packets(3))
	done.Wait()
	for i := range out {
		if want := (TxStamp{out[i].Cookie, sample.Stamp{At: out[i].At, Origin: sample.User}, out[i].At}); tx[i] != want {
			t.Errorf("timestamp %+v, want %+v", tx[i], want)
		}
		if in[i].Stamp != (sample.Stamp{At: in[i].At, Origin: sample.User}) {
			t.Errorf("received timestamp %+v, want origin User", in[i].Stamp)
		}
	}
	if s := local.Stats(); s.TxStamps[sample.User] != 3 || s.TxMissing != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestCloseEndsReceive(t *testing.T) {
	c := open(t, loopback(false), Options{})
	got := make(chan error)
	go func() { got <- c.Receive(NewBatch(1, 1)) }()
	check(t, c.Close())
	if err := <-got; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Receive during Close: %v, want net.ErrClosed", err)
	}
	if err := c.Receive(NewBatch(1, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Receive after Close: %v, want net.ErrClosed", err)
	}
	if _, err := c.Send([]Out{{Peer: c.LocalAddr()}}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Send after Close: %v, want net.ErrClosed", err)
	}
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close: %v, want net.ErrClosed", err)
	}
}

func TestBadLocalAddressIsAnError(t *testing.T) {
	for _, a := range []netip.AddrPort{{}, netip.MustParseAddrPort("192.0.2.1:0"), netip.MustParseAddrPort("[2001:db8::1]:0")} {
		if c, err := Open(a, Options{}); err == nil {
			t.Errorf("Open(%v) succeeded, want an error", a)
			_ = c.Close()
		}
	}
}

func TestConcurrentSendsAndReceives(t *testing.T) {
	local, remote := open(t, loopback(false), Options{}), open(t, loopback(false), Options{})
	const senders, each = 4, 500
	var done sync.WaitGroup
	for s := range senders {
		done.Go(func() {
			for i := range each {
				if _, err := local.Send([]Out{{Peer: remote.LocalAddr(), Cookie: uint64(s*each + i)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Go(func() { collect(t, remote, packets(senders*each)) })
	_, tx, _ := collect(t, local, stamps(senders*each))
	done.Wait()
	seen := map[uint64]bool{}
	for _, s := range tx {
		if seen[s.Cookie] || s.Stamp.Origin != sample.Kernel {
			t.Fatalf("timestamp %+v, seen before: %v", s, seen[s.Cookie])
		}
		seen[s.Cookie] = true
	}
}

func TestSendAndReceiveDoNotAllocate(t *testing.T) {
	families(t, func(t *testing.T, v6 bool) {
		local, remote := open(t, loopback(v6), Options{}), open(t, loopback(v6), Options{})
		out := make([]Out, 16)
		for i := range out {
			out[i] = Out{Payload: make([]byte, 64), Peer: remote.LocalAddr(), Source: local.LocalAddr().Addr(), DSCP: 46, TTL: 255}
		}
		b := NewBatch(16, 64)
		allocs := testing.AllocsPerRun(100, func() {
			if n, err := local.Send(out); n != len(out) || err != nil {
				t.Fatal(n, err)
			}
			for got := 0; got < len(out); got += len(b.In) {
				check(t, remote.Receive(b))
			}
			for got := 0; got < len(out); got += len(b.Tx) {
				check(t, local.Receive(b))
			}
		})
		if allocs != 0 {
			t.Errorf("%v allocations for %d packets, want 0", allocs, len(out))
		}
	})
}

// What a socket has from its start is for a steady sender; see TestBurstHasSpaceUpToTheLimits.
func TestSocketStartsSmall(t *testing.T) {
	const most = 320 << 10
	sizes := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c, err := Open(netip.MustParseAddrPort("127.0.0.1:0"), Options{})
			if err != nil {
				b.Fatal(err)
			}
			if err := c.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	if n := sizes.AllocedBytesPerOp(); n == 0 || n > most {
		t.Errorf("a socket takes %d bytes, want at most %d", n, most)
	}
}
