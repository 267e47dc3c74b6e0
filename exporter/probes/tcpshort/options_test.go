package tcpshort

import (
	"math"
	"testing"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/tests/probeoptions"
)

func TestOptionsOfTheProbeAndOfAllLoadTestsStandTogether(t *testing.T) {
	probeoptions.Accepted(t, NewType(), "flow_bytes: [10kB, 5MB]\nrepetitions: 50\nflow_timeout: 10s\ncongestion_control: cubic\nsend_buffer_bytes: 64KiB\nseed: 3\nevery: 1h\ndirections: [reverse]\n", "flow_byte", "flow_bytes")
}

func TestWrongOptionsNameTheExpectation(t *testing.T) {
	probeoptions.Refused(t, NewType(), map[string]string{
		"flow_bytes: []\n": "flow_bytes has 0 values; it must have 1 to 10",
		"flow_bytes: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n": "flow_bytes has 11 values; it must have 1 to 10",
		"flow_bytes: [10kB, 10000]\n":                       "flow_bytes[1] is 10000 for the second time",
		"flow_bytes: [1GB]\n":                               "flow_bytes[0] is 1000000000; it must be between 1 and 100000000",
		"repetitions: 7\n":                                  "repetitions is 7; it must be between 8 and 1000",
		"flow_timeout: 3m\n":                                "flow_timeout is 3m0s; it must be between 1s and 2m0s",
		"congestion_control: Cubic!\n":                      `congestion_control is "Cubic!"; it must be a name of the kernel, such as cubic`,
		"receive_buffer_bytes: 2GiB\n":                      "receive_buffer_bytes is 2147483648; it must be between 0 and 1073741824",
	})
}

func TestLimitsOfARunAreThoseOfAllFlows(t *testing.T) {
	shared := loadsession.DefaultOptions()
	k, err := NewKind(shared, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(2 * 20 * (2*1_110_000 + 3*(64<<10))); k.Bytes(math.MaxInt64) != want {
		t.Errorf("%d bytes, want %d", k.Bytes(math.MaxInt64), want)
	}
	if want := 2 * 20 * 3 * 30 * time.Second; 2*k.Duration() != want {
		t.Errorf("%v, want half of %v", k.Duration(), want)
	}
	o := DefaultOptions()
	o.FlowBytes, o.FlowTimeout = []option.Bytes{1, maxFlow}, 2*time.Minute
	for _, g := range o.groups(sample.Directions()) {
		if p := o.plan(g); p.Check() != nil || p.Bytes != g.bytes || p.Most < g.bytes {
			t.Errorf("%+v: %v", p, p.Check())
		}
	}
}

func TestFewestRepetitionsHaveAMedianWithItsInterval(t *testing.T) {
	k := &Kind{opts: DefaultOptions()}
	for n, want := range map[int]bool{minRepetitions - 1: false, minRepetitions: true} {
		var flows []Flow
		for range n {
			flows = append(flows, k.evaluate(transfer(100*ms)))
		}
		if z := k.summarize(group{sample.Forward, 10_000}, flows); (z.Completion.Median != nil) != want {
			t.Errorf("%d flows: %+v", n, z.Completion.Median)
		}
	}
}
