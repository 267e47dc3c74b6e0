package reflector

import (
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks/none"
	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
)

// unknown is an Error Estimate without information: S clear, and the largest error of the field, 255 x 2^(63-32) s (RFC
// 4656 section 4.1.2).
const unknown = 0x3fff

// estimatesOf sends one request in each format, with a key or without, and returns the Error Estimates of the replies.
func estimatesOf(t *testing.T, r *Reflector, key *stampfmt.Key) map[timefmt.Format]timefmt.ErrorEstimate {
	t.Helper()
	k := newLab(t, nil).poller("192.0.2.1:1", 5)
	k.key = key
	c := dial(t, r.Addrs()[0])
	got := map[timefmt.Format]timefmt.ErrorEstimate{}
	for seq, f := range []timefmt.Format{timefmt.NTP, timefmt.PTP} {
		q := k.request(uint32(seq), nil)
		at := 12
		if key != nil {
			at = 24
		}
		if f == timefmt.PTP {
			q[at] |= 0x40
			q = k.finish(q[:len(q)-trailer(key)])
		}
		got[f] = k.exchange(c, q).base.Error
	}
	return got
}

// trailer is the length of what finish appends: the HMAC TLV.
func trailer(key *stampfmt.Key) int {
	if key == nil {
		return 0
	}
	return hmacTLVBytes
}

// A reflector of an unknown clock reports the largest error and S clear: 0x0001, the encoding of a bound of zero, would
// mean 0.23 ns.
func TestReflectorOfAnUnknownClockReportsTheLargestError(t *testing.T) {
	var shift atomic.Int64
	read := clock.SystemReader()
	stepping := clock.StepOptions{Read: func() clock.Reading {
		r := read()
		r.Wall = r.Wall.Add(time.Duration(shift.Load()))
		return r
	}}
	stepped := static.NewWith(static.Options{Bound: time.Microsecond, Steps: stepping})
	if q := stepped.Quality(0); !q.Synchronized() {
		t.Fatalf("before the step: quality %+v", q)
	}
	for name, m := range map[string]clock.Monitor{
		"none": none.New(metric.Discard{}), "stepped": stepped, "no data yet": fixedClock{},
	} {
		key := newKey(t, "k")
		r := runningWith(t, Options{}, Env{Sink: metric.Discard{}, Clock: m})
		sealed := runningWith(t, Options{Keys: []*stampfmt.Key{key}, RequireKey: true}, Env{Sink: metric.Discard{}, Clock: m})
		shift.Add(int64(time.Second))
		for kind, got := range map[string]map[timefmt.Format]timefmt.ErrorEstimate{
			"open": estimatesOf(t, r, nil), "authenticated": estimatesOf(t, sealed, key),
		} {
			if got[timefmt.NTP] != unknown || got[timefmt.PTP] != unknown|1<<14 {
				t.Errorf("%s, %s: got %#04x and %#04x, want %#04x and, in PTP format, %#04x",
					name, kind, uint16(got[timefmt.NTP]), uint16(got[timefmt.PTP]), unknown, unknown|1<<14)
			}
		}
	}
}
