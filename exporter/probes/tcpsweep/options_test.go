package tcpsweep

import (
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/probeoptions"
)

func TestOptionsOfTheProbeAndOfAllLoadTestsStandTogether(t *testing.T) {
	probeoptions.Accepted(t, NewType(), "send_buffer_bytes: [17KiB, auto]\nreceive_buffer_bytes: [64KiB]\ncongestion_control: [cubic, bbr]\ncell_duration: 5s\nrepetitions: 20\nseed: 3\nevery: 1h\ndirections: [reverse]\n", "send_buffer_byte", "send_buffer_bytes")
}

func TestWrongOptionsNameTheExpectation(t *testing.T) {
	probeoptions.Refused(t, NewType(), map[string]string{
		"send_buffer_bytes: []\n":                       "send_buffer_bytes has 0 values; it must have 1 to 48",
		"send_buffer_bytes: [64KiB, 64KiB]\n":           "send_buffer_bytes[1] is 64KiB for the second time",
		"receive_buffer_bytes: [2GiB]\n":                "receive_buffer_bytes[0] is 2GiB; it must be between auto and 1GiB",
		"congestion_control: [cubic, Cubic!]\n":         `congestion_control[1] is "Cubic!"; it must be a name of the kernel, such as cubic`,
		"congestion_control: [cubic, cubic]\n":          "congestion_control[1] is cubic for the second time",
		"cell_duration: 1ms\n":                          "cell_duration is 1ms; it must be between 1s and 10m0s",
		"cell_duration: 3s\n":                           "cell_duration is 3s; with an omit of 2s it must be at least 4s",
		"omit: 6s\n":                                    "omit is 6s; it must be between 0s and 5s",
		"repetitions: 0\n":                              "repetitions is 0; it must be between 1 and 100",
		"max_bytes: 1\n":                                "max_bytes is 1; it must be between 100000 and 35184372088832",
		"receive_buffer_bytes: [1, 2, 3, 4, 5, 6, 7]\n": "send_buffer_bytes times receive_buffer_bytes times congestion_control are 56 cells; at most 48 are allowed",
	})
}

func TestCellsCombineBuffersAndCongestionControls(t *testing.T) {
	o := DefaultOptions()
	for _, c := range o.cells(sample.Forward) {
		if c.SendBuffer != c.ReceiveBuffer || c.CongestionControl != "" {
			t.Errorf("%v: want equal buffers and the host's congestion control", c)
		}
	}
	o.SendBuffers, o.ReceiveBuffers, o.CongestionControl = []Size{1 << 16, 0}, []Size{0, 1 << 17}, []string{"reno", "cubic"}
	all := o.cells(sample.Reverse)
	if len(all) != 8 || all[1] != (Cell{sample.Reverse, 1 << 16, 1 << 17, "reno"}) || all[7] != (Cell{sample.Reverse, 0, 1 << 17, "cubic"}) {
		t.Errorf("%v", all)
	}
	p := o.plan(all[1])
	if f := p.Flows[0]; f.SendBuffer != 1<<16 || f.ReceiveBuffer != 1<<17 || f.CongestionControl != "reno" || p.Check() != nil {
		t.Errorf("%+v", p)
	}
	o.CellDuration = 10 * time.Minute
	if p := o.plan(all[0]); p.Check() != nil {
		t.Errorf("the longest measurement: %v", p.Check())
	}
}
