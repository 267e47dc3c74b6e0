package message

import (
	"math"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/tests/probeoptions"
)

func TestOptionsOfTheProbeAndOfAllLoadTestsStandTogether(t *testing.T) {
	probeoptions.Accepted(t, NewType(), "message_bytes: 64\nmessage_rate: 1000\nduration: 1m\ncongestion_control: bbr\nevery: 1h\ndirections: [forward]\n", "message_byte", "message_bytes")
}

func TestWrongOptionsNameTheExpectation(t *testing.T) {
	probeoptions.Refused(t, NewType(), map[string]string{
		"message_bytes: 31\n":                      "message_bytes is 31; it must be between 32 and 1452",
		"message_bytes: 1453\n":                    "message_bytes is 1453; it must be between 32 and 1452",
		"message_rate: 0\n":                        "message_rate is 0; it must be between 1 and 10000",
		"duration: 1ms\n":                          "duration is 1ms; it must be between 1s and 10m0s",
		"message_rate: 10000\nduration: 101s\n":    "message_rate times duration is 1010000 messages; at most 1000000 are allowed",
		"congestion_control: Cubic!\n":             `congestion_control is "Cubic!"; it must be a name of the kernel, such as cubic`,
		"message_rate: 100\nmessage_bytes: 10kB\n": "message_bytes is 10000; it must be between 32 and 1452",
	})
}

func TestPlansOfAllTransportsHaveTheSameMessages(t *testing.T) {
	k, err := NewKind(loadsession.DefaultOptions(), DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if k.Duration() != time.Minute || k.Bytes(math.MaxInt64) < 6*512_000 || k.Bytes(math.MaxInt64) > 6*2*1_000_000 {
		t.Errorf("%v, %d bytes", k.Duration(), k.Bytes(math.MaxInt64))
	}
	for _, o := range []Options{DefaultOptions(), {maxBytes, 7, 10 * time.Minute, ""}, {32, 10_000, 100 * time.Second, "reno"}} {
		if err := o.check(); err != nil {
			t.Fatal(err)
		}
		s, p := o.segment(), o.plan(sample.Reverse, true)
		if err := p.Check(); err != nil {
			t.Error(err)
		}
		if f := p.Flows[0]; p.Duration/f.MessageInterval != time.Duration(s.Bursts) || f.MessageInterval != s.Interval || f.MessageBytes != s.PayloadBytes || !f.NoDelay {
			t.Errorf("%+v and %+v", p, s)
		}
	}
}
