package gpsd

import (
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/watcher"
)

// fixed is output of gpsd 3.22 for a receiver with a fix.
func fixed(t *testing.T) string {
	t.Helper()
	for _, line := range realLines(t) {
		if strings.Contains(string(line), `"time":"2026-11-21T14:44:59.000Z"`) && strings.Contains(string(line), `"lat"`) {
			return string(line)
		}
	}
	t.Fatal("there is no TPV with a location among the real lines")
	return ""
}

func TestPointIsThatOfTheTPV(t *testing.T) {
	tpv := fixed(t)
	at := time.Date(2026, 11, 21, 14, 44, 59, 0, time.UTC)
	soon := at.Add(120 * time.Millisecond)
	without := func(name, value string) string { return strings.Replace(tpv, `"`+name+`":`+value+`,`, "", 1) }
	instead := func(old, now string) string { return strings.Replace(tpv, old, now, 1) }
	for name, c := range map[string]struct {
		line  string
		now   time.Time
		at    time.Time // zero: there is no point
		speed float64
	}{
		"as gpsd says it":                 {tpv, soon, at, 0.067},
		"the clock is late":               {tpv, at.Add(-maxApart), at, 0.067},
		"no speed":                        {without("speed", "0.067"), soon, at, math.NaN()},
		"no time":                         {without("time", `"2026-11-21T14:44:59.000Z"`), soon, soon, 0.067},
		"a leap second, which Go has not": {instead("14:44:59.000Z", "23:59:60.000Z"), soon, soon, 0.067},
		"1024 weeks ago":                  {instead("2026-11-21", "2007-04-07"), soon, soon, 0.067},
		"a year that no instant has":      {instead("2026-11-21", "9999-11-21"), soon, soon, 0.067},
		"no latitude":                     {without("lat", "37.387458333"), soon, time.Time{}, 0},
		"no longitude":                    {without("lon", "-121.972360000"), soon, time.Time{}, 0},
		"latitude of null":                {instead(`"lat":37.387458333`, `"lat":null`), soon, time.Time{}, 0},
		"latitude of a word":              {instead(`"lat":37.387458333`, `"lat":"north"`), soon, time.Time{}, 0},
		"latitude beyond the pole":        {instead(`"lat":37.387458333`, `"lat":90.1`), soon, time.Time{}, 0},
		"longitude beyond half a turn":    {instead(`"lon":-121.97`, `"lon":-181.97`), soon, time.Time{}, 0},
		"negative speed":                  {instead(`"speed":0.067`, `"speed":-0.067`), soon, time.Time{}, 0},
	} {
		if name != "as gpsd says it" && name != "the clock is late" && c.line == tpv {
			t.Fatalf("%s: the line is what gpsd has said", name)
		}
		got, ok := point([]byte(c.line), c.now)
		if ok != !c.at.IsZero() {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
		if !ok {
			continue
		}
		if want := []int64{0, record.Real(37.387458333), record.Real(-121.97236), record.Real(c.speed)}; got.Begin != instant.FromTime(c.at) || !slices.Equal(got.Rows[0], want) {
			t.Errorf("%s: %+v of %v, want that of %v and speed %v", name, got, got.Begin, c.at, c.speed)
		}
	}
}

func TestTrackIsThatOfTheReceiverWhileThereIsAListener(t *testing.T) {
	tpv := fixed(t)
	recorder, log := &record.Recorder{}, &clocktest.Log{}
	inTestbed(t, Options{Env: watcher.Env{Recorder: recorder, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}}, nil, func(b *testbed) {
		b.send(tpv) // without a listener
		l := recorder.Tables().Listen(10)
		defer l.Close()
		later := time.Now().Add(-time.Second).UTC().Format("2006-01-02T15:04:05.000Z")
		b.send(noFix, fix3D, skyView, pulse,
			strings.Replace(tpv, `"mode":3`, `"mode":1`, 1),
			from("/dev/ttyS1", tpv), // of another receiver
			strings.Replace(tpv, "37.387458333", "north", 1), strings.Replace(tpv, "37.387458333", `"37.387458333"`, 1),
			strings.Replace(tpv, `"mode":3`, `"mode":2`, 1), // of 2026, where it is 2000
			strings.Replace(tpv, "2026-11-21T14:44:59.000Z", later, 1))
		now := instant.Now()
		b.tick()
		got := make([]record.Table, 10)
		n, missed := l.Take(got)
		if n != 2 || missed != 0 {
			t.Fatalf("%d points and %d missed, want 2: %+v", n, missed, got[:n])
		}
		for i, at := range []instant.Time{now, now.Add(-time.Second)} {
			want := record.Table{Schema: record.Track, Begin: at, Rows: [][]int64{{0, record.Real(37.387458333), record.Real(-121.97236), record.Real(0.067)}}}
			if !reflect.DeepEqual(got[i], want) {
				t.Errorf("point %d is %+v, want %+v", i, got[i], want)
			}
		}
		told := log.Take()
		for series, v := range b.sink.Present("") {
			told += series + " " + strconv.FormatFloat(v, 'g', -1, 64) + "\n"
		}
		if !strings.Contains(told, "Malformed line") || !strings.Contains(told, "oneway_gnss_fix") || strings.Contains(told, "37.38") || strings.Contains(told, "121.97") {
			t.Errorf("want the malformed line and the fix, but no position, in log and metrics:\n%s", told)
		}
	})
}

func TestTrackDoesNotAllocateWithoutAListener(t *testing.T) {
	line := []byte(fixed(t))
	report, err := parse(line)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{Client: &Client{options: Options{Env: watcher.Env{Recorder: &record.Recorder{}}}}}
	if n := testing.AllocsPerRun(100, func() { s.track(report, line, time.Time{}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
