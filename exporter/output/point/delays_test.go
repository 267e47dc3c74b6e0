package point

import (
	"testing"

	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
)

func TestSampledBytesOfTCPArePointsAtTheirTimeOfSending(t *testing.T) {
	from := &record.Delays{Path: "a", Probe: "tcp", Run: "r", Direction: sample.Reverse, Begin: 1000, Rows: []record.DelayRow{{0, 4096, 0, 20e6, 1e6, 0}, {1, 4096, 5, 3e9, 2e6, 1}, {0, 8192, 5, 7, 8, 0}}}
	var times []int64
	again := int64(0)
	NewRaw().Delays(from, func(p *Point) {
		if p.Measurement != TCPByte || len(p.Tags) != 3 || len(p.Fields) != 1+len(record.DelayRow{}) {
			t.Errorf("%+v", p)
		}
		for _, f := range p.Fields {
			switch v := f.Value.Interface().(type) {
			case float64:
				if f.Key == "delay_seconds" && len(times) == 1 && v != 3 {
					t.Errorf("delay %v s, want 3", v)
				}
			case int64:
				if f.Key == "retransmitted" {
					again += v
				}
			}
		}
		times = append(times, int64(p.At))
	})
	if len(times) != 3 || times[0] != 1000 || times[1] != 1005 || times[2] != 1006 || again != 1 {
		t.Errorf("times %v, %d retransmitted", times, again)
	}
	for i, c := range columnsOf(record.DelayColumns()) {
		if c.Key == "sent_seconds" && i != sentColumn {
			t.Errorf("sent is column %d, want %d", i, sentColumn)
		}
	}
}
