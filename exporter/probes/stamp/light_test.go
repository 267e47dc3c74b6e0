package stamp

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
	"oneway.example/tests/remoteend"
)

func lightOptions(peer string, key string) probe.LightOptions {
	return probe.LightOptions{
		Target: probe.Target{Path: "p", Probe: "tcp"}, Peer: netip.MustParseAddrPort(peer), Key: []byte(key),
		Interval: 5 * time.Millisecond, LossTimeout: 300 * time.Millisecond, MaxBytes: 3*260 + (200*152+260)/4 + 1, // 50 packets in 250 ms
	}
}

// beside runs a stream until all of its packets are sent, and returns its records.
func beside(t *testing.T, env probe.Env, o probe.LightOptions) (sent, bytes int64, all []record.Packet) {
	t.Helper()
	sink := &metrictest.Sink{}
	env.Recorder, env.Sink = &record.Recorder{}, sink
	l := env.Recorder.Packets().Listen(1000)
	s, err := Light(t.Context(), env, o)
	if err != nil {
		t.Fatal(err)
	}
	await.Within(10*time.Second, func() bool {
		select {
		case <-s.(*lightStream).session.full:
			return true
		default:
			return false
		}
	})
	sent, bytes = s.Stop(t.Context())
	all = make([]record.Packet, 1000)
	n, missed := l.Take(all)
	if missed > 0 || sink.Open() > 0 {
		t.Errorf("%d records missed; %d open series", missed, sink.Open())
	}
	return sent, bytes, all[:n]
}

func TestStreamBesideALoadTestRecordsTheOutcomeOfEachPacket(t *testing.T) {
	remoteend.NothingLeft(t)
	b := newTestbed(t, reflector.Options{Keys: []*stampfmt.Key{stampfmt.NewKey([]byte("a secret of this session"))}, RequireKey: true})
	n := 0
	path := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, _ []byte) (time.Duration, bool) {
		if d == sample.Forward {
			n++
		}
		return 0, d == sample.Forward && n%10 == 5
	})
	sent, bytes, all := beside(t, b.env, lightOptions(path.addr, "a secret of this session"))
	if sent < 51 || sent > 54 || len(all) != 50 || bytes != 50*152+260*(sent-50) {
		t.Fatalf("%d packets of %d bytes sent, queries included, %d records; want 50 records", sent, bytes, len(all))
	}
	lost := 0
	for _, p := range all {
		switch {
		case p.Outcome == record.Lost:
			lost++
		case p.Path != "p" || p.Probe != "tcp" || !p.Forward.OK() || p.Forward.Bound <= 0 || p.T3.Origin != sample.FollowUp && p.T3.Origin != sample.InPacket:
			t.Errorf("%+v", p)
		}
	}
	if lost < 4 || lost > 6 {
		t.Errorf("%d of 50 packets lost, want about 5", lost)
	}
}

// A reflector without this key, or none at all, gives packets that are lost, and the end is not late.
func TestStreamWithoutRepliesEndsInTime(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, reflector.Options{Keys: []*stampfmt.Key{stampfmt.NewKey([]byte("another secret"))}, RequireKey: true})
	_, _, all := beside(t, b.env, lightOptions(b.peer, "a secret of this session"))
	for _, p := range all {
		if p.Outcome != record.Lost {
			t.Errorf("%+v", p)
		}
	}
	if len(all) != 50 {
		t.Errorf("%d records, want 50 of lost packets", len(all))
	}
	o := lightOptions(b.peer, "a secret of this session")
	o.LossTimeout = time.Minute
	s, err := Light(t.Context(), b.env, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begin := time.Now()
	s.Stop(ctx)
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("Stop took %v after the end of its context", took)
	}
}

// A link that sends in slots delays a packet by the time to the next one. Packets at even times meet one place of the slots, which then
// decides the working delay of a run.
func TestStreamMeetsAllPlacesOfALinksSlots(t *testing.T) {
	b := newTestbed(t, reflector.Options{Keys: []*stampfmt.Key{stampfmt.NewKey([]byte("a secret of this session"))}, RequireKey: true})
	o := lightOptions(b.peer, "a secret of this session")
	o.Interval = 100 * time.Millisecond
	s, err := Light(t.Context(), b.env, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(t.Context())
	const slot = 10 * time.Millisecond
	var waits []time.Duration
	for at := time.Duration(0); len(waits) < 200; {
		at = s.(*lightStream).session.plan.Next(at)
		waits = append(waits, slot-at%slot)
	}
	slices.Sort(waits)
	if median := waits[len(waits)/2]; (median-slot/2).Abs() > slot/5 || waits[0] > slot/10 || waits[len(waits)-1] < slot*9/10 {
		t.Errorf("packets wait for slots of %v from %v to %v, the median is %v", slot, waits[0], waits[len(waits)-1], median)
	}
}
