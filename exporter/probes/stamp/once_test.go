package stamp

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/exporter/reflector"
)

// onceTo makes a prober of one measurement with these options.
func onceTo(t *testing.T, b testbed, change func(*Options)) probe.Once {
	t.Helper()
	p, err := NewType().NewOnce(b.env, probe.Target{Path: "p", Probe: "m", Peer: b.peer}, func(into ...any) error {
		o := into[0].(*Options)
		o.Interval, o.LossTimeout = 2*time.Millisecond, 200*time.Millisecond
		change(o)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// silent is a socket that counts what arrives and does not reply.
func silent(t *testing.T) (address string, packets *atomic.Int64) {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	packets = new(atomic.Int64)
	go func() {
		for b := make([]byte, 2048); ; packets.Add(1) {
			if _, _, err := c.ReadFrom(b); err != nil {
				return
			}
		}
	}()
	return c.LocalAddr().String(), packets
}

func TestOneMeasurementLeavesItsSeriesAndNothingElse(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	sink := &metrictest.Sink{}
	b.env.Sink, b.env.Scopes = sink, new(metric.Scopes)
	p := onceTo(t, b, func(*Options) {})
	out, err := p.Measure(t.Context(), 50)
	if err != nil || out != (probe.Outcome{Received: 50}) {
		t.Errorf("outcome %+v, %v", out, err)
	}
	for _, dir := range []string{"forward", "reverse"} {
		if v, ok := sink.Value(metric.PacketsReceived, "p", "m", dir); !ok || v != 50 {
			t.Errorf("%s: %v packets received (%t), want 50", dir, v, ok)
		}
		if v, ok := sink.Value(metric.LossRatio, "p", "m", dir); !ok || v != 0 {
			t.Errorf("%s: loss %v (%t), want 0", dir, v, ok)
		}
	}
	if hubs := len(p.(once).hubs.hubs); hubs != 0 {
		t.Errorf("%d sockets are open after the measurement", hubs)
	}
	if b.env.Scopes.Close(); sink.Open() != 0 {
		t.Errorf("%d series are open after their scopes were closed", sink.Open())
	}
}

// TestTargetThatRepliedIsUpAfterTheWaitForALostPacket: its outcome is known after two times the loss timeout, which is longer
// than the time after which a path is down.
func TestTargetThatRepliedIsUpAfterTheWaitForALostPacket(t *testing.T) {
	t.Parallel()
	b, sink := newTestbed(t, reflector.Options{}), &metrictest.Sink{}
	b.env.Sink = sink
	at, stop := b.reflect(t, netip.MustParseAddrPort("127.0.0.1:0"))
	b.peer = at.String()
	p := onceTo(t, b, func(o *Options) { o.Interval, o.LossTimeout = 20*time.Millisecond, 3500*time.Millisecond })
	time.AfterFunc(700*time.Millisecond, stop) // real time: some packets have a reply, others do not
	out, err := p.Measure(t.Context(), 50)
	if err != nil || out.Received == 0 || out.Lost == 0 {
		t.Fatalf("outcome %+v, %v; want received and lost packets", out, err)
	}
	if up, ok := sink.Value(metric.ProbeUp, "p", "m"); !ok || up != 1 {
		t.Errorf("probe_up is %v (%t) after %d replies, want 1", up, ok, out.Received)
	}
}

// A silent target costs no more than count test packets and the opening queries.
func TestSilentTargetIsLostWithinTheLongestTime(t *testing.T) {
	t.Parallel()
	b, sink := newTestbed(t, reflector.Options{}), &metrictest.Sink{}
	b.env.Sink = sink
	var packets *atomic.Int64
	b.peer, packets = silent(t)
	p := onceTo(t, b, func(*Options) {})
	begin := time.Now()
	out, err := p.Measure(t.Context(), 20)
	if err != nil || out.Lost != 20 || out.Received != 0 || out.Failure != lightreason.NoReply {
		t.Errorf("outcome %+v, %v", out, err)
	}
	if up, ok := sink.Value(metric.ProbeUp, "p", "m"); !ok || up != 0 {
		t.Errorf("probe_up is %v (%t), want 0", up, ok)
	}
	if took, most := time.Since(begin), p.Longest(20); took > most+time.Second { // a loaded host is late
		t.Errorf("took %v, the longest time is %v", took, most)
	}
	if n := packets.Load(); n < 20 || n > 20+ledger.OpenTries {
		t.Errorf("%d packets arrived, want 20 test packets and at most %d queries", n, ledger.OpenTries)
	}
}

func TestEndOfTheContextEndsAMeasurement(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	b.peer, _ = silent(t)
	p := onceTo(t, b, func(o *Options) { o.LossTimeout = time.Minute })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	if out, err := p.Measure(ctx, 5); err != nil || out.Received != 0 {
		t.Errorf("outcome %+v, %v", out, err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("ended %v after its context", took)
	}
}

func TestFailureOfAMeasurementHasItsReason(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("another secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keyed := newTestbed(t, reflector.Options{Keys: []*stampfmt.Key{stampfmt.NewKey([]byte("a shared secret"))}, RequireKey: true})
	closed, refuse := net.ListenPacket("udp4", "127.0.0.1:0")
	if refuse != nil {
		t.Fatal(refuse)
	}
	nobody := testbed{env: keyed.env, peer: closed.LocalAddr().String()}
	_ = closed.Close() // its port is free now
	for name, one := range map[string]struct {
		testbed
		key  string
		want lightreason.Reason
	}{
		"wrong key": {keyed, file, lightreason.Discarded}, "no key": {keyed, "", lightreason.Discarded}, "nobody": {nobody, "", lightreason.Unreachable},
	} {
		out, err := onceTo(t, one.testbed, func(o *Options) { o.KeyFile = one.key }).Measure(t.Context(), 3)
		if err != nil || out.Failure != one.want || out.Detail == "" || out.Lost != 3 {
			t.Errorf("%s: %+v, %v; want %s", name, out, err, one.want)
		}
	}
}
