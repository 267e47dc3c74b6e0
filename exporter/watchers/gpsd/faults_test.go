package gpsd

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/watcher"
	"oneway.example/tests/testseed"
)

// expectAlive sends a good report, and expects it to arrive on the first connection.
func (b *testbed) expectAlive() {
	b.Helper()
	b.send(fix3D)
	b.tick()
	b.metrics("afterwards", map[*metric.Desc]string{metric.GNSSFix: "3", metric.GNSSConnections: "1"})
}

func (b *testbed) expectMalformed(want map[malformation]float64) {
	b.Helper()
	for _, m := range malformations() {
		if got := b.malformed(m); got != want[m] {
			b.Errorf("%v lines are %v, want %v", got, m, want[m])
		}
	}
}

func TestMalformedLinesAreCountedAndSkipped(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.send(
			fix3D[:40], // truncated
			`[]`, `null`, `HTTP/1.1 400 Bad Request`, "", "\x00",
			`{}`, `{"class":3}`, `{"class":"TPV","mode":"3"}`, `{"class":"TPV","device":"/dev/ttyS0"}`,
			`{"class":"TPV","device":"/dev/ttyS0","mode":4}`,
			`{"class":"SKY","device":"/dev/ttyS0","nSat":-1}`,
		)
		b.expectMalformed(map[malformation]float64{notJSON: 5, wrongType: 4, implausible: 2})
		if s := b.client.State(); s.Fix != FixUnknown || s.Seen.Known {
			t.Errorf("they became %+v", s)
		}
		b.expectAlive()
	})
}

func TestUnknownClassesAreIgnored(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.send(`{"class":"ATT","mode":"odd","device":7}`, `{"class":"","x":1}`, `{"class":"AIS","type":1}`, `{"class":"tpv","mode":9}`)
		b.expectMalformed(nil)
		b.expectAlive()
	})
}

func TestConnectionThatEndsInALineIsNotAMalformedLine(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.daemon.send(fix3D[:40])
		b.daemon.cut()
		b.tick()
		b.expectMalformed(nil)
		b.send(fix3D)
		b.tick()
		b.metrics("on the next connection", map[*metric.Desc]string{metric.GNSSFix: "3", metric.GNSSConnections: "2"})
	})
}

// pad makes a TPV of this many bytes, newline not counted.
func pad(bytes int) string {
	head, tail := `{"class":"TPV","device":"/dev/ttyS0","mode":2,"x":"`, `"}`
	return head + strings.Repeat("x", bytes-len(head)-len(tail)) + tail
}

func TestLongLineIsReadAndOneTooLongIsSkippedToItsEnd(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.daemon.send(pad(maxLine) + "\n")
		b.tick()
		b.metrics("after a long line", map[*metric.Desc]string{metric.GNSSFix: "2"})
		b.expectMalformed(nil)
		b.daemon.send(pad(maxLine+1) + "\n")
		b.daemon.send(pad(10*maxLine) + "\n")
		synctest.Wait()
		b.expectMalformed(map[malformation]float64{tooLong: 2})
		b.expectAlive()
	})
}

func TestLineThatPausesIsReadWhole(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.send(fix3D)
		b.daemon.send(noFix[:20])
		time.Sleep(timeout + time.Second) // a request is sent meanwhile: the reply comes into the line
		synctest.Wait()
		b.expectMalformed(map[malformation]float64{notJSON: 1})
		b.daemon.set(func(d *daemon) { d.reply = nil })
		b.send(fix3D)
		b.daemon.send(noFix[:20])
		time.Sleep(timeout + time.Second) // simulated time (synctest)
		b.daemon.send(noFix[20:] + "\n")
		b.tick()
		b.metrics("a line with the pause within", map[*metric.Desc]string{metric.GNSSFix: "1", metric.GNSSConnections: "1"})
		b.expectMalformed(map[malformation]float64{notJSON: 1})
	})
}

func TestRandomBytesAreCountedAsMalformed(t *testing.T) {
	seed := testseed.Of(t)
	inTestbed(t, Options{}, nil, func(b *testbed) {
		random := rand.New(rand.NewPCG(seed, 0))
		noise := make([]byte, 1<<20)
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		b.daemon.send(string(noise) + "\n")
		synctest.Wait()
		// A line a 256 bytes, and none of them begins with a brace and is JSON.
		if got := b.malformed(notJSON); got < 3000 {
			t.Errorf("%v lines are not JSON, want about 4096", got)
		}
		b.expectAlive()
	})
}

// Not gpsd: invalid lines do not count as a reply.
func TestEndlessNoiseIsDisconnected(t *testing.T) {
	inTestbed(t, Options{}, func(d *daemon) { d.silent = true }, func(b *testbed) {
		b.every(timeout+firstPause+time.Second, "220 mail ESMTP ready")
		b.metrics("later", map[*metric.Desc]string{metric.GNSSConnected: "0", metric.GNSSConnections: "2"})
		if b.client.State().Replying {
			t.Error("noise counts as a reply")
		}
	})
}

// A flood must cost neither memory nor a processor: over ten seconds the bytes
// taken are what the pace allows, and the client reports its state throughout.
func TestFloodIsReadAtALimitedRate(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		lines int // in text
	}{
		"good lines":    {strings.Repeat(fix3D+"\n", 1000), 1000},
		"empty lines":   {strings.Repeat("\n", 10_000), 10_000},
		"noise":         {strings.Repeat("{]\n", 10_000), 10_000},
		"endless line":  {strings.Repeat("x", 100_000), 0},
		"nested arrays": {strings.Repeat(strings.Repeat("[", 1000)+"\n", 100), 100},
	} {
		t.Run(name, func(t *testing.T) {
			inTestbed(t, Options{}, nil, func(b *testbed) {
				const lasts = 10 * time.Second
				b.send(fix3D)
				sent := 0
				for began := time.Now(); time.Since(began) < lasts; sent++ {
					b.daemon.send(c.text)
				}
				cost := sent * (len(c.text) + c.lines*lineCost)
				// One burst before, and one text beyond the end.
				most := int(lasts.Seconds()+2)*paceLimit + 2*(len(c.text)+c.lines*lineCost)
				if cost > most || cost < most/3 {
					t.Errorf("took %d bytes' worth in %v, want at most %d and a third of it at least", cost, lasts, most)
				}
				if s := b.client.State(); s.Fix != Fix3D {
					t.Errorf("in the flood: %+v", s)
				}
				b.metrics("in the flood", map[*metric.Desc]string{metric.GNSSFix: "3", metric.GNSSConnections: "1"})
			})
		})
	}
}

// A gpsd that reports ever new devices does not fill the memory.
func TestEndlessDevicesAreNotStored(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		for i := range 1000 {
			b.daemon.send(strings.ReplaceAll(back, "ttyS0", "ttyS"+strings.Repeat("1", i)) + "\n")
		}
		synctest.Wait()
		b.client.mu.Lock()
		defer b.client.mu.Unlock()
		if n := len(b.client.receiver.pool); n > maxPool {
			t.Errorf("%d devices are kept", n)
		}
	})
}

// A gpsd that complains of something else each time, and says again and again that it is another version,
// does not fill the log either.
func TestFloodOfErrorReportsLogsAFewLines(t *testing.T) {
	var log strings.Builder
	inTestbed(t, Options{Env: watcher.Env{Log: slog.New(slog.NewTextHandler(&log, nil))}}, nil, func(b *testbed) {
		for i := range 1000 {
			b.send(fmt.Sprintf(`{"class":"ERROR","message":"%d"}`, i), `{"class":"VERSION","release":"9","rev":"9","proto_major":9,"proto_minor":0}`, "noise")
		}
		b.expectAlive()
	})
	for part, most := range map[string]int{"Error message": maxLoggedErrors, "Unsupported protocol": 1, "Malformed line": 1} {
		if n := strings.Count(log.String(), part); n == 0 || n > most {
			t.Errorf("%d lines of %q, want 1 to %d", n, part, most)
		}
	}
}
