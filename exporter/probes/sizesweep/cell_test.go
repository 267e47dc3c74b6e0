package sizesweep

import (
	"math"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadsession"
)

// noQuota has the overhead of IPv4 and no limit.
func noQuota() space { return space{quota: math.MaxInt64, overhead: 28} }

func defaultCells(t *testing.T) []Cell {
	t.Helper()
	k := kindOf(t, DefaultOptions())
	return k.cells([]sample.Direction{sample.Forward})
}

func TestDefaultsAreTheCellsOfTheReport(t *testing.T) {
	if n := len(defaultCells(t)); n != 18 {
		t.Errorf("%d cells in a direction, want 6 sizes x 3 rates", n)
	}
	k := kindOf(t, DefaultOptions())
	if got, want := k.Bytes(math.MaxInt64), int64(2*3484*11_100*10); got != want {
		t.Errorf("a run moves %d bytes, want %d", got, want)
	}
	if k.Duration() != 6*time.Minute {
		t.Errorf("a run takes %v, want 6 min", k.Duration())
	}
}

func TestWithoutLimitsEveryCellIsMeasured(t *testing.T) {
	cells := defaultCells(t)
	fits, out := noQuota().fit(cells, 10*time.Second, 1)
	if len(fits) != len(cells) || len(out) != 0 {
		t.Errorf("%d of %d cells fit, %v", len(fits), len(cells), out)
	}
}

func TestCellsFasterThanTheTokenAreOmittedAndReported(t *testing.T) {
	m := noQuota()
	m.limits.BytesPerSecond = 20e6 / 8
	fits, out := m.fit(defaultCells(t), 10*time.Second, 1)
	for _, c := range fits {
		if (c.PacketBytes-28)*c.PacketRate*8 > 20e6 {
			t.Errorf("%v fits a token of 20 Mb/s", c)
		}
	}
	if len(fits) != 15 || len(out) != 3 {
		t.Errorf("%d cells fit, omitted %v; want omitted those of 512, 1024 and 1500 B x 10000/s", len(fits), out)
	}
	for _, o := range out {
		if !strings.Contains(o.Why, "20 Mb/s") {
			t.Errorf("%v is omitted because %q", o.Cell, o.Why)
		}
	}
}

func TestCellsLongerThanTheTokenAllowsAreOmitted(t *testing.T) {
	m := noQuota()
	m.limits.Duration = 5 * time.Second
	if fits, out := m.fit(defaultCells(t), 10*time.Second, 1); len(fits) != 0 || !strings.Contains(out[0].Why, "5s") {
		t.Errorf("%d cells fit, %v", len(fits), out[0])
	}
}

func TestSmallQuotaKeepsTheLargestNumberOfCells(t *testing.T) {
	const quota = 100e6
	for what, m := range map[string]space{
		"quota": {quota: quota, overhead: 28},
		"token": {quota: math.MaxInt64, overhead: 28, limits: loadcontrol.Limits{BytesPerDay: 1e9, LeftToday: quota}},
	} {
		fits, out := m.fit(defaultCells(t), 10*time.Second, 1)
		var bytes int64
		for _, c := range fits {
			bytes += c.bytes(10 * time.Second)
		}
		if bytes > quota*1.1 || len(fits) < 14 || len(fits)+len(out) != 18 {
			t.Errorf("%s: %d cells of %d bytes measured, %d left out", what, len(fits), bytes, len(out))
		}
		if !strings.Contains(out[0].Why, "100 MB") {
			t.Errorf("%s: omitted because %q", what, out[0].Why)
		}
	}
}

func TestRepetitionsCountAgainstTheQuota(t *testing.T) {
	m := noQuota()
	m.quota = 100e6
	once, _ := m.fit(defaultCells(t), 10*time.Second, 1)
	often, _ := m.fit(defaultCells(t), 10*time.Second, 20)
	if len(often) >= len(once) || len(often) == 0 {
		t.Errorf("%d cells measured 20 times and %d measured once in the same quota", len(often), len(once))
	}
}

func TestCellsTooSmallForIPv6AreOmitted(t *testing.T) {
	m := noQuota()
	m.overhead = 48
	_, out := m.fit(defaultCells(t), 10*time.Second, 1)
	if len(out) != 3 || out[0].PacketBytes != 64 || !strings.Contains(out[0].Why, "80 bytes") {
		t.Errorf("omitted %v, want the cells of 64 B", out)
	}
}

func TestSmallQuotaOmitsCellsAndNotTheRun(t *testing.T) {
	k := kindOf(t, DefaultOptions())
	if got := k.Bytes(50e6); got > 50e6 || got < 20e6 {
		t.Errorf("%d bytes announced with 50 MB left", got)
	}
	if got := k.Bytes(10); got != 64_000 {
		t.Errorf("%d bytes announced with no cell that fits, want those of the smallest cell", got)
	}
}

func TestSegmentIsTheCell(t *testing.T) {
	s := Cell{PacketBytes: 1500, PacketRate: 10_000}.segment(2*time.Second, 28)
	if s.PayloadBytes != 1472 || s.Interval != 100*time.Microsecond || s.Burst != 1 || s.Bursts != 20_000 {
		t.Errorf("%+v", s)
	}
}

func kindOf(t *testing.T, o Options) *Kind {
	t.Helper()
	shared := loadsession.DefaultOptions()
	k, err := NewKind(shared, o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestFastestCellIsFasterThanTheToken(t *testing.T) {
	m := noQuota()
	m.limits.BytesPerSecond = 1e9
	if reason, _ := m.forbids(Cell{PacketBytes: 65_000, PacketRate: 100_000}, time.Second); reason != runreason.RateLimit {
		t.Errorf("52 Gb/s with a token of 8 Gb/s: %q", reason)
	}
}
