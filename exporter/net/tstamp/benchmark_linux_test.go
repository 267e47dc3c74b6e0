package tstamp

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/sample"
)

// BenchmarkSendReceiveStamped sends 64-byte packets over a veth pair, with the kernel's timestamps on both sides, at
// the maximum rate and at set rates.
func BenchmarkSendReceiveStamped(b *testing.B) {
	for _, c := range []struct {
		name string
		rate int
	}{{"flat-out", 0}, {"150k", 150_000}, {"180k", 180_000}, {"200k", 200_000}} {
		b.Run(c.name, func(b *testing.B) {
			l := newLink(b)
			local := l.open(b, l.Local, l.LocalAddr, Options{})
			remote := l.open(b, l.Remote, l.RemoteAddr, Options{})
			stream(b, local, remote, c.rate)
		})
	}
}

// BenchmarkSendReceiveLoopback is the same over loopback.
func BenchmarkSendReceiveLoopback(b *testing.B) {
	local := open(b, netip.MustParseAddrPort("127.0.0.1:0"), Options{})
	remote := open(b, netip.MustParseAddrPort("127.0.0.1:0"), Options{})
	stream(b, local, remote, 0)
}

func stream(b *testing.B, local, remote *Conn, rate int) {
	warm(b, local, remote) // resolves the neighbor: packets sent before an ARP reply are dropped
	localBefore, remoteBefore := local.Stats(), remote.Stats()
	var done sync.WaitGroup
	serve := func(c *Conn) {
		defer done.Done()
		batch := NewBatch(64, 128)
		for {
			if err := c.Receive(batch); err != nil {
				if !errors.Is(err, net.ErrClosed) {
					b.Error(err)
				}
				return
			}
		}
	}
	done.Add(2)
	go serve(local)
	go serve(remote)
	payload := make([]byte, 64)
	out := make([]Out, 64)
	for i := range out {
		out[i] = Out{Payload: payload, Peer: remote.LocalAddr(), TTL: 255}
	}
	b.ReportAllocs()
	b.ResetTimer()
	cpu, start := cpuTime(), time.Now()
	for sent := 0; sent < b.N; {
		if rate > 0 {
			if ahead := time.Duration(sent)*time.Second/time.Duration(rate) - time.Since(start); ahead > 0 {
				time.Sleep(ahead) // keeps the rate under measurement
			}
		}
		n, err := local.Send(out[:min(len(out), b.N-sent)])
		if err != nil && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.ENOBUFS) {
			b.Fatal(err)
		}
		sent += n
	}
	took := time.Since(start)
	for wait := time.Now(); remote.Stats().Received+remote.Stats().Dropped-remoteBefore.Received < uint64(b.N) && time.Since(wait) < time.Second; {
		time.Sleep(time.Millisecond) // waits for packets still in the socket, which are not reported
	}
	b.StopTimer()
	used := cpuTime() - cpu
	check(b, local.Close())
	check(b, remote.Close())
	done.Wait()
	s, r := local.Stats(), remote.Stats()
	n := float64(b.N)
	b.ReportMetric(n/took.Seconds(), "packets/s")
	b.ReportMetric((n-float64(r.Received-remoteBefore.Received))/n, "loss_ratio")
	b.ReportMetric(float64(r.Dropped)/n, "socket_drop_ratio") // the rest of the loss is in the kernel's backlog
	b.ReportMetric(float64(s.TxStamps[sample.Kernel]-localBefore.TxStamps[sample.Kernel])/n, "tx_stamped_ratio")
	b.ReportMetric(float64(r.RxStamps[sample.Kernel]-remoteBefore.RxStamps[sample.Kernel])/n, "rx_stamped_ratio")
	b.ReportMetric(used.Seconds()/n*1e6, "cpu_s/Mpacket")
}

// cpuTime is the CPU time of this process so far, in user space and kernel.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStampError sends a packet every millisecond over a veth pair, whose own delay is below a microsecond, and
// reports the delay by kernel timestamps and the delay by user-space ones.
func BenchmarkStampError(b *testing.B) {
	l := newLink(b)
	local, remote := l.open(b, l.Local, l.LocalAddr, Options{}), l.open(b, l.Remote, l.RemoteAddr, Options{})
	warm(b, local, remote)
	batch := NewBatch(64, 128)
	var kernel, user []time.Duration
	var done sync.WaitGroup
	arrived := make([]In, 0, b.N)
	done.Go(func() {
		for len(arrived) < b.N {
			if remote.Receive(batch) != nil {
				return
			}
			arrived = append(arrived, batch.In...)
		}
	})
	left := make(map[uint64]TxStamp, b.N)
	done.Go(func() {
		mine := NewBatch(64, 128)
		for len(left) < b.N {
			if local.Receive(mine) != nil {
				return
			}
			for _, s := range mine.Tx {
				left[s.Cookie] = s
			}
		}
	})
	out := []Out{{Payload: make([]byte, 64), Peer: remote.LocalAddr()}}
	b.ResetTimer()
	for i := range b.N {
		out[0].Cookie = uint64(i)
		_, err := local.Send(out)
		check(b, err)
		time.Sleep(time.Millisecond) // keeps one packet outstanding at a time
	}
	guard := time.AfterFunc(limit, func() { _, _ = local.Close(), remote.Close() })
	done.Wait()
	guard.Stop()
	for i, r := range arrived {
		s := left[uint64(i)]
		if s.Stamp.Origin == sample.Kernel && r.Stamp.Origin == sample.Kernel {
			kernel = append(kernel, r.Stamp.At.Sub(s.Stamp.At))
		}
		user = append(user, r.At.Sub(s.At))
	}
	if len(kernel) == 0 {
		b.Fatal("got no timestamps")
	}
	slices.Sort(kernel)
	slices.Sort(user)
	microseconds := func(d []time.Duration, q int) float64 { return float64(d[len(d)*q/1000]) / 1e3 }
	b.ReportMetric(float64(len(kernel))/float64(b.N), "stamped_ratio")
	b.ReportMetric(microseconds(kernel, 500), "kernel_p50_us")
	b.ReportMetric(microseconds(kernel, 990), "kernel_p99_us")
	b.ReportMetric(microseconds(user, 500), "user_p50_us")
	b.ReportMetric(microseconds(user, 990), "user_p99_us")
}
