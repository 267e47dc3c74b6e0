package tcp

import (
	"math"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/tests/probeoptions"
)

func TestWrongOptionsNameTheExpectation(t *testing.T) {
	probeoptions.Refused(t, NewType(), map[string]string{
		"duration: 10ms\n":                              "duration is 10ms; it must be between 1s and 24h0m0s",
		"max_bytes: 1\n":                                "max_bytes is 1; it must be between 100000 and 35184372088832",
		"omit: 6s\n":                                    "omit is 6s; it must be between 0s and 5s",
		"duration: 1s\n":                                "duration is 1s; with an omit of 1s it must be at least 2s",
		"duration: 3s\nomit: 2s\n":                      "omit is 2s; it must be between 0s and 1.5s",
		"overlap_duration: 1500ms\n":                    "overlap_duration is 1.5s; with an omit of 1s it must be at least 2s",
		"flows: 65\n":                                   "flows is 65; it must be between 1 and 64",
		"send_buffer_bytes: 2GiB\n":                     "send_buffer_bytes is 2147483648; it must be between 0 and 1073741824",
		"message_bytes: 0\n":                            "message_bytes is 0; it must be between 1 and 4194304",
		"mss_bytes: 50\n":                               "mss_bytes is 50; it must be between 88 and 32767",
		"flows: 3\ncongestion_control: [a, b]\n":        "congestion_control has 2 names for 3 flows; each must have as many flows as the others",
		"congestion_control: [\"no such name\"]\n":      "congestion_control[0] is \"no such name\"; it must be a name of the kernel, such as cubic",
		"idle_timeout: 1ms\n":                           "idle_timeout is 1ms; it must be between 100ms and 2m0s",
		"every: 1s\n":                                   "every is 1s; it must be between 10s and 168h0m0s",
		"congestion_control: [\"\"]\nflows: 1\n":        "congestion_control[0] is \"\"; it must be a name of the kernel, such as cubic",
		"duration: 10s\nbytes: 40TiB\nflows: 2\n":       "bytes is 43980465111040; it must be between 0 and 35184372088832",
		"receive_buffer_bytes: 2GiB\nflows: 2\n":        "receive_buffer_bytes is 2147483648; it must be between 0 and 1073741824",
		"overlap_start: 1m\n":                           "overlap_start is 1m0s; it needs an overlap_duration",
		"overlap_duration: 11s\n":                       "overlap_duration is 11s; it must be between 1s and 10s",
		"overlap_duration: -1s\n":                       "overlap_duration is -1s; it must be between 1s and 24h0m0s",
		"overlap_duration: 4s\noverlap_start: 7s\n":     "overlap_start is 7s; with an overlap_duration of 4s in a duration of 10s it must be at most 6s",
		"overlap_duration: 4s\ntogether: true\n":        "overlap_duration is 4s; it must be 0s with together",
		"overlap_duration: 4s\nbytes: 20MB\n":           "overlap_duration is 4s; it must be 0s with bytes, whose time is not known before",
		"overlap_duration: 2s\nomit: 1500ms\n":          "omit is 1.5s; it must be between 0s and 1s",
		"overlap_duration: 2s\nflows: 33\n":             "flows is 33; it must be between 1 and 32",
		"together: true\nflows: 33\n":                   "flows is 33; it must be between 1 and 32",
		"overlap_duration: 4s\ndirections: [forward]\n": "overlap_duration is 4s; it needs both directions",
		"flows: 2\ncongestion_control: [x, y, z]\n":     "congestion_control has 3 names for 2 flows; each must have as many flows as the others",
	})
}

// Any accepted options give a valid plan.
func TestPlansOfTheOptionsAreWithinTheLimits(t *testing.T) {
	for _, flows := range []int{1, 4, tcptraffic.MaxFlows} {
		for _, lasts := range []time.Duration{2 * time.Second, time.Hour, tcptraffic.MaxDuration} {
			o := DefaultOptions()
			o.Flows, o.Duration, o.CongestionControl = flows, lasts, []string{"cubic"}
			if err := o.check(2); err != nil {
				t.Fatal(err)
			}
			p := o.plan(sample.Reverse, o.most())
			if err := p.Check(); err != nil {
				t.Errorf("%d flows for %v: %v", flows, lasts, err)
			}
			if p.Interval < minInterval || lasts == 2*time.Second && p.Interval != minInterval || p.Flows[flows-1].CongestionControl != "cubic" {
				t.Errorf("%d flows for %v: interval %v", flows, lasts, p.Interval)
			}
		}
	}
}

// The flows have the names in turn.
func TestMixedFlowsHaveEachCongestionControl(t *testing.T) {
	for _, flows := range []int{4, 10} {
		o := DefaultOptions()
		o.Flows, o.CongestionControl = flows, []string{"cubic", "reno"}
		if err := o.check(2); err != nil {
			t.Fatal(err)
		}
		for i, f := range o.plan(sample.Forward, o.most()).Flows {
			if f.CongestionControl != o.CongestionControl[i%2] {
				t.Errorf("flow %d: %s", i, f.CongestionControl)
			}
		}
	}
}

// Only a run of one direction after the other takes the time of both, and its bytes are those of both in any case.
func TestDurationAndBytesOfARunAreThoseOfItsDirections(t *testing.T) {
	shared := loadsession.DefaultOptions()
	for _, c := range []struct {
		set  func(*Options)
		want time.Duration
	}{
		{func(*Options) {}, 20*time.Second + udpTime},
		{func(o *Options) { o.Stamps = false }, 20 * time.Second},
		{func(o *Options) { o.Together = true }, 10*time.Second + udpTime},
		{func(o *Options) { o.OverlapStart, o.OverlapDuration = 3*time.Second, 4*time.Second }, 10*time.Second + udpTime},
	} {
		o := DefaultOptions()
		c.set(&o)
		k, err := NewKind(shared, o)
		if err != nil {
			t.Fatal(err)
		}
		if k.Duration() != c.want || k.Bytes(math.MaxInt64) != 4_000_000_000 {
			t.Errorf("%+v: %v, %d bytes", o, k.Duration(), k.Bytes(math.MaxInt64))
		}
	}
}

func TestLimitOfIPBytesFollowsThePayload(t *testing.T) {
	o := DefaultOptions()
	if o.most() != 2_000_000_000 {
		t.Error(o.most())
	}
	if o.Bytes = 20_000_000; o.most() != 60_000_000+1<<20 {
		t.Error(o.most())
	}
}
