package gpsd

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
)

// realLines are what gpsd has said: 3.22 with a receiver on a serial line, and
// the last lines after its manual and its source (3.22, 3.27).
func realLines(t testing.TB) [][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/gpsd-3.22.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(text), []byte("\n"))
}

func TestOutputOfARealGpsdIsParsed(t *testing.T) {
	kinds := map[string]int{}
	for _, line := range realLines(t) {
		report, err := parse(line)
		if err != nil || report == nil {
			t.Errorf("%s: %v, %v", line, report, err)
		}
		kinds[fmt.Sprintf("%T", report)]++
	}
	if len(kinds) != 8 {
		t.Errorf("%d kinds of report: %v, want 8", len(kinds), kinds)
	}
}

func TestEachMalformationHasItsReason(t *testing.T) {
	moment := `{"class":"%s","device":"d","real_sec":%s,"real_nsec":%s,"clock_sec":%s,"clock_nsec":%s%s}`
	pps := func(a ...any) string { return fmt.Sprintf(moment, append([]any{"PPS"}, a...)...) }
	for _, c := range []struct {
		line string
		want string
	}{
		{``, "gpsd: not_json: not an object"},
		{`"class"`, "gpsd: not_json: not an object"},
		{`{"class":"TPV","mode":3`, "gpsd: not_json: unexpected end of JSON input"},
		{`{"class":"TPV","mode":3,"ept":nan}`, "gpsd: not_json: invalid character 'a' in literal null (expecting 'u')"},
		{`{"class":"TPV","mode":3}{}`, "gpsd: not_json: invalid character '{' after top-level value"},
		{`{"mode":3}`, "gpsd: wrong_type: no class"},
		{`{"class":null}`, "gpsd: wrong_type: no class"},
		{`{"class":"TPV"}`, "gpsd: wrong_type: no mode"},
		{`{"class":"TPV","mode":2.5}`, "gpsd: wrong_type: mode: got the number 2.5, want a whole number"},
		{`{"class":"TPV","mode":4}`, "gpsd: implausible: mode is 4, not within 0..3"},
		{`{"class":"SKY","nSat":5,"uSat":6}`, "gpsd: implausible: 6 satellites used of 5 seen"},
		{`{"class":"SKY","nSat":1001}`, "gpsd: implausible: nSat is 1001, not within 0..1000"},
		{`{"class":"SKY","uSat":-1}`, "gpsd: implausible: uSat is -1, not within 0..1000"},
		{`{"class":"SKY","satellites":{}}`, "gpsd: wrong_type: satellites: got an object, want an array"},
		{`{"class":"DEVICES"}`, "gpsd: wrong_type: no devices"},
		{`{"class":"DEVICE","activated":0}`, "gpsd: wrong_type: no path"},
		{`{"class":"PPS","real_sec":1795272300}`, "gpsd: wrong_type: no real_nsec"},
		{pps("315964799", "0", "1", "0", ""), "gpsd: implausible: real_sec is 315964799, not within 315964800..8589934592"},
		{pps("1795272300", "1000000000", "1", "0", ""), "gpsd: implausible: real_nsec is 1000000000, not within 0..999999999"},
		{pps("1795272300", "0", "-1", "0", ""), "gpsd: implausible: clock_sec is -1, not within 0..8589934592"},
		{pps("1795272300", "0", "1", "-1", ""), "gpsd: implausible: clock_nsec is -1, not within 0..999999999"},
		{pps("9223372036854775807", "0", "1", "0", ""), "gpsd: implausible: real_sec is 9223372036854775807, not within 315964800..8589934592"},
		{pps("1795272300", "0", "-9223372036854775808", "0", ""), "gpsd: implausible: clock_sec is -9223372036854775808, not within 0..8589934592"},
		{pps("1e308", "0", "1", "0", ""), "gpsd: wrong_type: real_sec: got the number 1e308, want a whole number"},
		{pps("1795272300", "0", "1", "0", `,"precision":-1e308`), "gpsd: wrong_type: precision: got the number -1e308, want a whole number"},
		{pps("1795272300", "0", "1", "0", `,"qErr":1e308`), "gpsd: wrong_type: qErr: got the number 1e308, want a whole number"},
		{pps("1795272300", "0", "1", "0", `,"qErr":-1000001`), "gpsd: implausible: qErr is -1000001, not within -1000000..1000000"},
		{pps("1795272300", "0", "1", "0", `,"precision":-129`), "gpsd: implausible: precision is -129, not within -128..127"},
	} {
		if report, err := parse([]byte(c.line)); err == nil || err.Error() != c.want || report != nil {
			t.Errorf("%s: %v, %v\nwant %s", c.line, report, err, c.want)
		}
	}
}

func TestOffsetIsClockMinusReceiver(t *testing.T) {
	for _, c := range []struct {
		real, clock instant.Time
	}{
		{instant.FromUnix(1795272300, 0), instant.FromUnix(1795272300, 5)},
		{instant.FromUnix(1795272300, 0), instant.FromUnix(1795272299, 999_999_995)},
		{instant.FromUnix(1795272300, 999_999_999), instant.FromUnix(1795272302, 1)},
		{instant.FromUnix(minReal, 0), instant.FromUnix(maxSeconds, 999_999_999)}, // no battery, or a lie
		{instant.FromUnix(maxSeconds, 999_999_999), 0},
	} {
		line := fmt.Sprintf(`{"class":"TOFF","device":"d","real_sec":%d,"real_nsec":%d,"clock_sec":%d,"clock_nsec":%d}`,
			c.real/1e9, c.real%1e9, c.clock/1e9, c.clock%1e9)
		report, err := parse([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got, want := report.(*timeEvent).reading(), (Reading{At: c.real, Offset: c.clock.Sub(c.real)}); got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

func TestDeviceIsActiveWhileItHasADate(t *testing.T) {
	for activated, want := range map[string]bool{
		``: false, `,"activated":0`: false, `,"activated":""`: false, `,"activated":null`: false,
		`,"activated":"2026-11-21T14:44:51.630Z"`: true, `,"activated":1795272300.5`: true, // before 3.0
	} {
		report, err := parse([]byte(`{"class":"DEVICE","path":"/dev/ttyS0"` + activated + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := report.(*device).active(); got != want {
			t.Errorf("%q: %v, want %v", activated, got, want)
		}
	}
}

// Whatever a line is, it is understood, ignored, or counted for one of the reasons;
// what is understood can be applied, and gives a state that can be.
func FuzzParse(f *testing.F) {
	for _, line := range realLines(f) {
		f.Add(line)
		f.Add(line[:len(line)*2/3])
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		report, err := parse(line)
		if err != nil {
			if bad, ok := errors.AsType[*lineError](err); !ok || bad.reason == tooLong || report != nil {
				t.Fatalf("%q: %v, %v", line, report, err)
			}
			return
		}
		now := time.Unix(1_795_272_300, 0)
		if p, ok := point(line, now); ok {
			off := p.Begin.Time().Sub(now).Abs()
			latitude, longitude := record.OfReal(p.Rows[0][record.TrackLatitude]), record.OfReal(p.Rows[0][record.TrackLongitude])
			if off > maxApart || math.IsNaN(latitude) || math.Abs(latitude) > 90 || math.IsNaN(longitude) || math.Abs(longitude) > 180 ||
				record.OfReal(p.Rows[0][record.TrackSpeed]) < 0 {
				t.Errorf("%q became %+v", line, p)
			}
		}
		r := receiver{}
		r.apply(report, now)
		s := r.state(now)
		if s.Fix > Fix3D || s.Seen.N < 0 || s.Used.N < 0 || s.Seen.Known && s.Used.Known && s.Used.N > s.Seen.N {
			t.Errorf("%q became %+v", line, s)
		}
		for _, reading := range []Reading{s.Pulse, s.Sentence} {
			if at := reading.At; at < 0 || !at.IsZero() && at.Add(reading.Offset) < 0 {
				t.Errorf("%q became %+v", line, reading)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, line := range realLines(b) {
		name, _, _ := strings.Cut(strings.TrimPrefix(string(line), `{"class":"`), `"`)
		b.Run(fmt.Sprintf("%s-%d", name, len(line)), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				if _, err := parse(line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
