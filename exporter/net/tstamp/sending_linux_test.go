package tstamp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
)

// BenchmarkStampedSending compares the CPU time of Send with that of the smallest C program that does the same,
// testdata/send.c: both send 64 packets of 64 bytes per call over loopback, to a socket that nobody reads, and read all
// transmit timestamps. They alternate, and the minimum of each counts: other load on the machine only adds to it.
func BenchmarkStampedSending(b *testing.B) {
	c := compile(b, "testdata/send.c")
	sink, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check(b, err)
	defer sink.Close()
	check(b, sink.SetReadBuffer(1)) // full at once: later packets are dropped
	peer := sink.LocalAddr().(*net.UDPAddr).AddrPort()
	const packets, rounds = 200_000, 5
	for b.Loop() {
		ours, theirs := time.Duration(1<<62), time.Duration(1<<62)
		for range rounds {
			theirs = min(theirs, sendInC(b, c, peer.Port(), packets))
			ours = min(ours, sendStamped(b, peer, packets))
		}
		b.ReportMetric(ours.Seconds()/packets*1e6, "cpu_s/Mpacket")
		b.ReportMetric(theirs.Seconds()/packets*1e6, "C:cpu_s/Mpacket")
		b.ReportMetric(ours.Seconds()/theirs.Seconds(), "ratio_to_C")
	}
}

// compile builds a program from a C file.
func compile(b *testing.B, source string) (program string) {
	b.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		b.Skipf("no C compiler to compare with: %v", err)
	}
	program = filepath.Join(b.TempDir(), "send")
	if out, err := exec.Command(cc, "-O2", "-o", program, source).CombinedOutput(); err != nil {
		b.Fatalf("%v: %v\n%s", cc, err, out)
	}
	return program
}

// sendInC is the CPU time of the C program.
func sendInC(b *testing.B, program string, port uint16, packets int) (used time.Duration) {
	b.Helper()
	out, err := exec.Command(program, strconv.Itoa(int(port)), strconv.Itoa(packets)).CombinedOutput()
	var stamps int
	if _, scan := fmt.Sscan(string(out), (*int64)(&used), &stamps); err != nil || scan != nil || stamps != packets {
		b.Fatalf("send.c: %v, %v, %d of %d timestamps\n%s", err, scan, stamps, packets, out)
	}
	return used
}

// sendStamped is the CPU time of this process for the same.
func sendStamped(b *testing.B, peer netip.AddrPort, packets int) (used time.Duration) {
	b.Helper()
	conn := open(b, netip.MustParseAddrPort("127.0.0.1:0"), Options{})
	var receiving sync.WaitGroup
	stamped := make(chan struct{})
	receiving.Go(func() {
		batch := NewBatch(64, 128)
		for got := 0; got < packets; {
			if err := conn.Receive(batch); err != nil {
				if !errors.Is(err, net.ErrClosed) {
					b.Error(err)
				}
				return
			}
			for i := range batch.Tx {
				if batch.Tx[i].Stamp.Origin == sample.Kernel {
					got++
				}
			}
		}
		close(stamped)
	})
	out := make([]Out, 64)
	payload := make([]byte, 64)
	for i := range out {
		out[i] = Out{Payload: payload, Peer: peer}
	}
	before := cpuTime()
	for sent := 0; sent < packets; {
		n, err := conn.Send(out[:min(len(out), packets-sent)])
		check(b, err)
		sent += n
	}
	select {
	case <-stamped:
	case <-time.After(limit):
		b.Errorf("timestamps are missing: %+v", conn.Stats())
	}
	used = cpuTime() - before
	check(b, conn.Close())
	receiving.Wait()
	return used
}
