package tcpdelay

import (
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/tcpstamp"
)

// Retransmitted bytes that had not arrived at the end, of a link that stalls, are later than all that had.
func TestRecoveryCountsWhatDidNotArrive(t *testing.T) {
	for arrived, want := range map[int]bool{440: true, 420: true, 400: false} {
		var f Flow
		for i := range 440 {
			at, offset := instant.Time(1e15).Add(time.Duration(i)*10*time.Millisecond), int64(i+1)*4096
			f.Sent = append(f.Sent, tcpstamp.Sent{Offset: offset, First: at, Last: at.Add(60 * time.Millisecond), Transmissions: 2})
			if i < arrived {
				in := at.Add(100 * time.Millisecond)
				f.Received = append(f.Received, tcpstamp.Received{Offset: offset, At: in, Read: in})
			}
		}
		r := Evaluate([]Flow{f}, Errors{Clocks: sample.Bound{Reason: sample.OK, Error: time.Microsecond}, Stamps: time.Microsecond})
		if v, ok := Quantile(r.Recovery, 0.5); !ok || v != 100*time.Millisecond {
			t.Errorf("%d of 440 arrived: median %v, %v", arrived, v, ok)
		}
		if v, ok := Quantile(r.Recovery, 0.95); ok != want || ok && v != 100*time.Millisecond {
			t.Errorf("%d of 440 arrived: p95 %v, %v; want known: %v", arrived, v, ok, want)
		}
	}
}
