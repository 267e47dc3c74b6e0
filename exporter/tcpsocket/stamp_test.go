package tcpsocket

import (
	"errors"
	"io"
	"testing"
	"time"

	"oneway.example/exporter/instant"
)

func TestAStampedWriteHasAllStampsAndItsArrival(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "::1"} {
		from, to := pair(t, address, Options{NoDelay: true}, Options{})
		var got []Stamp
		if err := errors.Join(from.EnableStamps(func(s Stamp) { got = append(got, s) }), to.EnableStamps(nil)); err != nil {
			t.Fatal(err)
		}
		const size, writes = 1000, 50
		buf := make([]byte, 64<<10)
		for i := range writes {
			got = got[:0]
			before := instant.Now()
			if n, _, err := from.WriteStamped(buf[:size], WantScheduled|WantLeft|WantAcked, false); n != size || err != nil {
				t.Fatalf("wrote %d: %v", n, err)
			}
			a, err := to.ReadStamped(buf, i%2 == 1)
			if err != nil || a.N != size || a.Left != 0 || a.At < before || a.Begin > instant.Now() {
				t.Fatalf("read %+v: %v", a, err)
			}
			for until := time.Now().Add(10 * time.Second); len(got) < 3 && time.Now().Before(until); {
				_ = from.Drain()
			}
			if len(got) != 3 {
				t.Fatalf("write %d has stamps %+v, want 3", i, got)
			}
			for k, kind := range []StampKind{Scheduled, Left, Acked} {
				s := got[k]
				if s.Kind != kind || s.Offset != int64(i+1)*size || s.At < before || s.Early < 0 || s.At.Sub(before) < s.Early {
					t.Errorf("write %d: stamp %+v", i, s)
				}
			}
			if s := got[2]; !s.Known || s.Through != s.Offset {
				t.Errorf("write %d: acknowledged %d, want %d", i, s.Through, s.Offset)
			}
		}
		done := make(chan error, 1)
		go func() {
			_, err := to.ReadStamped(buf, false)
			if errors.Is(err, io.EOF) {
				err = to.Close()
			}
			done <- err
		}()
		if err := errors.Join(from.Finish(), <-done); err != nil {
			t.Error(err)
		}
	}
}

func TestBothEndsAgreeAboutTheHandshake(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "::1"} {
		from, to := pair(t, address, Options{}, Options{})
		near, err := from.Handshake()
		if err != nil {
			t.Fatal(err)
		}
		far, err := to.Handshake()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v\n%+v", near, far)
		if d := int32(near.TSval - far.TSval); !far.SYN || max(d, -d) > int32(near.TSvalError) || near.TSvalError > 10_000 {
			t.Errorf("timestamps %d +- %d and %d", near.TSval, near.TSvalError, far.TSval)
		}
		if near.OwnScale != far.PeerScale || near.PeerScale != far.OwnScale || near.MSS != far.MSS || near.TTL != far.TTL || !near.Timestamps || !far.SACK {
			t.Errorf("%+v\n%+v", near, far)
		}
	}
}
