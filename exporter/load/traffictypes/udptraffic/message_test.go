package udptraffic

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/probe/endclock"
)

func TestEachMessageIsDecodedAsEncoded(t *testing.T) {
	for _, want := range []any{
		&Reply{Session: 1 << 63, Port: 8620, Kernel: endclock.Kernel{Salt: 1, Host: 2}},
		&Prove{Cookie: []byte{1, 2, 3}},
		&Proved{Address: "192.0.2.1:8620"},
		&Start{ID: 1, Direction: sample.Reverse, Plan: stream.Plan{Feedback: 50 * time.Millisecond, Segments: startOf(1, 0).Plan.Segments}, Idle: time.Second},
		&Started{ID: 1, Clock: endclock.State{At: 1, Bound: time.Millisecond, Reason: "ok", Steps: 1}},
		&Sent{ID: 1, Packets: 10},
		&Cancel{ID: 1},
		&Finished{ID: 1, Received: &stream.Received{Corrupt: []stream.Corrupt{{Seq: 3, Got: []byte{1}, Want: []byte{2}}}}},
		&Finished{ID: 1, Sent: &stream.Sent{Planned: 3}, Error: "cut"},
	} {
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		switch want.(type) {
		case *Reply:
			got = new(Reply)
		case *Prove:
			got = new(Prove)
		case *Proved:
			got = new(Proved)
		case *Start:
			got = new(Start)
		case *Started:
			got = new(Started)
		case *Sent:
			got = new(Sent)
		case *Cancel:
			got = new(Cancel)
		case *Finished:
			got = new(Finished)
		}
		if err := (&loadcontrol.TrafficMessage{Name: "x", Body: b}).Into(got); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%T: %v\n%s", want, err, cmp.Diff(want, got))
		}
	}
}

func TestTransferIsCheckedBeforeItIsAccepted(t *testing.T) {
	good := startOf(1, sample.Forward)
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Start){
		"udptraffic: transfer 0: want 1 to 65535":                                                      func(t *Start) { t.ID = 0 },
		"udptraffic: transfer 1: direction 2: want 0, forward, or 1, reverse":                          func(t *Start) { t.Direction = 2 },
		"udptraffic: transfer 1: idle 99ms: want 100ms to 2m0s":                                        func(t *Start) { t.Idle = 99 * time.Millisecond },
		"udptraffic: transfer 1: idle 2m0.000000001s: want 100ms to 2m0s":                              func(t *Start) { t.Idle = 2*time.Minute + 1 },
		"udptraffic: transfer 1: stream: invalid plan: 0 segments, want 1 to 4096":                     func(t *Start) { t.Plan.Segments = nil },
		"udptraffic: transfer 1: stream: invalid plan: segment 0: 31 bytes a packet, want 32 to 65507": func(t *Start) { t.Plan.Segments[0].PayloadBytes = 31 },
	} {
		bad := startOf(1, sample.Forward)
		spoil(&bad)
		if err := bad.Check(); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestGapIsTheLongestTimeBetweenTwoPackets(t *testing.T) {
	even := stream.Segment{PayloadBytes: 500, Burst: 1, Bursts: 2, Interval: time.Second}
	paused := even
	paused.Pause = 5 * time.Second
	for want, p := range map[time.Duration]stream.Plan{
		time.Second:      {Segments: []stream.Segment{even}},
		6 * time.Second:  {Segments: []stream.Segment{even, paused}},
		10 * time.Second: {Segments: []stream.Segment{even}, Feedback: 10 * time.Second}, // to which a sender without reports falls back
	} {
		if got := gap(p); got != want {
			t.Errorf("%+v: %v, want %v", p, got, want)
		}
	}
}

// A stream without intervals takes as long as the sending host needs.
func TestLengthOfAStream(t *testing.T) {
	paced, unpaced := startOf(1, sample.Forward), startOf(2, sample.Forward)
	unpaced.Plan.Segments[0].Interval = 0
	for _, c := range []struct {
		start Start
		most  time.Duration
		want  time.Duration
	}{
		{paced, 0, 100 * time.Millisecond},
		{paced, time.Second, 100 * time.Millisecond},
		{unpaced, time.Minute, time.Minute},
		{unpaced, 0, stream.MaxDuration},
	} {
		if got := c.start.length(c.most); got < c.want-time.Millisecond || got > c.want {
			t.Errorf("%+v of at most %v takes %v, want %v", c.start.Plan, c.most, got, c.want)
		}
	}
}
