package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
)

// play runs a role and prints its report.
func play(role string, args []string) (status int) {
	roles := map[string]func(args []string) (any, error){
		"receive": receive, "send": send, "ask": runRequests, "reflect": reflect, "sessions": sessions, "spin": spin,
		"stream-in": streamIn, "stream-out": streamOut,
	}
	f := roles[role]
	if f == nil {
		fmt.Fprintf(os.Stderr, "unknown role %q\n", role)
		return 2
	}
	report, err := f(args)
	if err == nil && report != nil {
		err = json.NewEncoder(os.Stdout).Encode(report)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// untilStdinEnds prints that the role is ready and waits for the end of its input.
func untilStdinEnds() {
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

type received struct{ Received, Dropped, Stamped uint64 }

// receive ADDRESS counts received packets.
func receive(args []string) (any, error) {
	c, err := tstamp.Open(netip.MustParseAddrPort(args[0]), tstamp.Options{})
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- drain(c, 64) }()
	untilStdinEnds()
	stats := c.Stats()
	if err := errors.Join(c.Close(), <-done); err != nil {
		return nil, err
	}
	return received{stats.Received, stats.Dropped, stats.RxStamps[sample.Kernel]}, nil
}

// drain receives until the socket is closed.
func drain(c *tstamp.Conn, packets int) error {
	batch := tstamp.NewBatch(packets, 256)
	for {
		if err := c.Receive(batch); err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
	}
}

type sent struct {
	Sent, Stamped, Answered uint64
	Seconds                 float64
}

// send ADDRESS RATE SECONDS sends 64-byte packets, with timestamps.
func send(args []string) (any, error) { return load(args, false, blank) }

// runRequests ADDRESS RATE SECONDS sends STAMP requests of 64 bytes of 100 sessions and counts the replies. It has timestamps
// off, to leave the CPU to the reflector.
func runRequests(args []string) (any, error) { return load(args, true, request) }

const packetBytes = 64

func blank(b []byte, _ uint32) []byte { return append(b, make([]byte, packetBytes)...) }

func request(b []byte, n uint32) []byte {
	const sessions = 100
	now := instant.Now()
	p := stampfmt.SenderPacket{
		Seq: n / sessions, T1: timefmt.NTP.Encode(now, 0), SSID: uint16(1 + n%sessions),
		Error: timefmt.MakeErrorEstimate(time.Millisecond, true, timefmt.NTP),
	}
	return stampfmt.AppendPadding(p.AppendTo(b), packetBytes-stampfmt.UnauthenticatedBytes-stampfmt.TLVHeaderBytes, n)
}

func load(args []string, userTimestamps bool, write func([]byte, uint32) []byte) (any, error) {
	peer := netip.MustParseAddrPort(args[0])
	rate, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.Atoi(args[2])
	if err != nil {
		return nil, err
	}
	c, err := tstamp.Open(netip.AddrPortFrom(netip.IPv4Unspecified(), 0), tstamp.Options{UserTimestamps: userTimestamps})
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- drain(c, 64) }()
	took, err := pace(c, peer, rate, rate*seconds, write)
	if err != nil {
		return nil, err
	}
	settle(c)
	stats := c.Stats()
	if err := errors.Join(c.Close(), <-done); err != nil {
		return nil, err
	}
	return sent{stats.Sent, stats.TxStamps[sample.Kernel], stats.Received, took.Seconds()}, nil
}

// pace sends count packets at a rate, in batches, and catches up when late.
func pace(c *tstamp.Conn, peer netip.AddrPort, rate, count int, write func([]byte, uint32) []byte) (time.Duration, error) {
	out := make([]tstamp.Out, min(64, max(1, rate/1000)))
	for i := range out {
		out[i] = tstamp.Out{Peer: peer, TTL: 255}
	}
	start := time.Now()
	for n := 0; n < count; {
		if ahead := time.Duration(n)*time.Second/time.Duration(rate) - time.Since(start); ahead > 0 {
			time.Sleep(ahead) // keeps the rate under measurement
		}
		for i := range out {
			out[i].Payload = write(out[i].Payload[:0], uint32(n+i))
		}
		sent, err := c.Send(out[:min(len(out), count-n)])
		if err != nil && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.ENOBUFS) {
			return 0, err
		}
		n += sent
	}
	return time.Since(start), nil
}

// settle waits until no packet has arrived for a while.
func settle(c *tstamp.Conn) {
	for last, still := uint64(0), 0; still < 5; {
		time.Sleep(20 * time.Millisecond) // no event reports that the last packet has arrived
		s := c.Stats()
		now := s.Received + s.TxStamps[sample.Kernel]
		still++
		if now != last {
			last, still = now, 0
		}
	}
}
