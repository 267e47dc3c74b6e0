package stamp

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/exporter/reflector"
)

// TestStampsAreReadInTheFormatOfTheReply: the Z bit of each end's Error Estimate applies to that end's timestamps
// only.
func TestStampsAreReadInTheFormatOfTheReply(t *testing.T) {
	const tai = 37 * time.Second
	peer := fakePeer(t, func(q []byte) [][]byte {
		s, _ := stampfmt.ParseSender(q)
		a := replyTo(q, s.Seq)
		now := timefmt.PTP.Encode(instant.Now(), tai)
		binary.BigEndian.PutUint64(a[4:], now)
		binary.BigEndian.PutUint16(a[12:], uint16(timefmt.MakeErrorEstimate(time.Microsecond, true, timefmt.PTP)))
		binary.BigEndian.PutUint64(a[16:], now)
		return [][]byte{a}
	})
	r := newTestbed(t, reflector.Options{}).to(peer).measure(t, quick(), 20)
	for _, d := range []DirectionReport{r.Forward, r.Reverse} {
		if d.Delay == nil || *d.Delay.Min < -0.001 || *d.Delay.Min > 10 {
			t.Errorf("NTP request, PTP reply: %s", asJSON(t, d))
		}
	}
}

func TestPacketsOfEverySizeAreWrittenIntoNoSpace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("a shared secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, keyFile := range []string{"", file} {
		for size := 44; size < 700; size++ {
			o := DefaultOptions()
			o.Size, o.KeyFile = size, keyFile
			if o.check() != nil {
				continue // TestEveryPossibleSizeHasALayoutThatFillsIt
			}
			plan, err := planLayout(size, keyFile != "")
			if err != nil {
				t.Fatal(err)
			}
			s := &session{opts: &o, layout: plan, account: ledger.New(o.ledger(plan), 0, nil, nil)}
			if keyFile != "" {
				s.keys = o.keys
			}
			fresh := s.writeTest(nil, 7, 1, clockQuality())
			if len(fresh) != size {
				t.Fatalf("size %d, key %q: %d bytes", size, keyFile, len(fresh))
			}
			again := s.writeTest(make([]byte, 3, 8), 7, 1, clockQuality())
			if string(again) != string(fresh) {
				t.Fatalf("size %d, key %q: the packet depends on the capacity of the buffer", size, keyFile)
			}
		}
	}
}

func clockQuality() clock.Quality {
	return clock.Quality{State: clock.Synchronized, Bound: sample.Bound{Error: time.Microsecond, Reason: sample.OK}}
}
