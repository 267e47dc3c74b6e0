package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/probes/tcp"
	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/tests/flaky"
	"oneway.example/tests/lab"
)

// A part of what iproute2 6.1 prints.
const shown = `[{"kind":"netem","handle":"1:","root":true,"options":{"limit":10000},"bytes":90,"packets":1,"drops":7,"backlog":0},
{"kind":"tbf","handle":"2:","parent":"1:1","options":{"rate":189250},"bytes":1567000,"packets":1040,"drops":20,"overlimits":2012},
{"kind":"ingress","handle":"ffff:","bytes":5,"packets":5,"drops":0}]`

const snmp = `Ip: Forwarding DefaultTTL
Ip: 2 64
Tcp: RtoAlgorithm InSegs OutSegs RetransSegs
Tcp: 1 500 1014 20
`

func TestCountersAreThoseOfTheQueueAndOfTCP(t *testing.T) {
	var c counters
	if err := c.queue([]byte(shown)); err != nil {
		t.Fatal(err)
	}
	if err := c.tcp(snmp); err != nil {
		t.Fatal(err)
	}
	if want := (counters{sent: 1040, bytes: 1567000, dropped: 20, segments: 1014, retransmitted: 20}); c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
	if share := c.share(); share != 20.0/1034 {
		t.Errorf("share %v", share)
	}
	for _, text := range []string{"", "[]", `[{"kind":"netem"}]`} {
		if err := c.queue([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	for _, text := range []string{"", "Tcp: OutSegs\nTcp: 1\n", "Tcp: OutSegs RetransSegs\nTcp: 1\n", strings.Replace(snmp, "1014", "x", 1)} {
		if err := c.tcp(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestCellsAreThoseOfThePaper(t *testing.T) {
	all := allCells()
	if len(all) != 40 || all[0] != (cell{sample.Reverse, "reno", 8 << 10}) || all[39] != (cell{sample.Forward, "veno", 0}) {
		t.Errorf("%d cells: %+v", len(all), all)
	}
	for _, v := range variants() {
		if !slices.Contains(smokeCells(), cell{sample.Reverse, v, 64 << 10}) {
			t.Errorf("the smoke test has no %s", v)
		}
	}
}

// lossy is a cell of 64 KB that used the whole downlink and lost 20 segments of 1034; its values agree.
func lossy(variant string) *measured {
	rate, again := 178_000.0, 20.0/1000
	return &measured{
		cell: cell{sample.Reverse, variant, 64 << 10}, link: lab.Link{Rate: 1.5e6, Queue: 40_000},
		truth: counters{dropped: 20, segments: 1014, retransmitted: 20},
		result: tcpsweep.MeasuredCell{
			Used: variant, Throughput: &[3]float64{rate, rate, rate}, RTT: &[3]float64{0.2, 0.25, 0.3}, RTTMin: new(0.12), Retransmitted: &again,
			Repetitions: []tcpsweep.Repetition{{Models: &tcp.Models{Throughput: map[string]float64{"window": 1.5 * rate}, Conditions: tcpstate.Conditions{}}}},
		},
	}
}

func TestEachFaultOfACellIsFound(t *testing.T) {
	const length = 9 * time.Second
	if m := lossy("reno"); len(m.faults(length))+len(m.late()) > 0 {
		t.Fatalf("%q, %q", m.faults(length), m.late())
	}
	for want, c := range map[string]func(m *measured){
		`the congestion control "cubic"`: func(m *measured) { m.result.Used = "cubic" },
		"want all":                       func(m *measured) { m.result.RTTMin = nil },
		"the link's rate allows 191287":  func(m *measured) { m.result.Throughput[1] = 192_000 },
		"in 500.0 ms allows 131072": func(m *measured) {
			m.truth, m.result.RTTMin, m.result.Retransmitted = counters{segments: 1014}, new(0.5), new(0.0)
		},
		"0.67 of the outstanding bytes":      func(m *measured) { m.truth, m.result.Retransmitted = counters{segments: 1014}, new(0.0) },
		"the share sent again is 0.0250":     func(m *measured) { m.result.Retransmitted = new(0.025) },
		"the share sent again is 0.0100":     func(m *measured) { m.result.Retransmitted = new(0.010) },
		"by the kernel, with 60 of 1074":     func(m *measured) { m.truth.retransmitted = 60 },
		"with 0 of 1014 segments, 0.0000 to": func(m *measured) { m.truth.retransmitted = 0 },
	} {
		m := lossy("reno")
		c(m)
		if all := m.faults(length); !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%q, want %q", all, want)
		}
	}
	for want, c := range map[string]func(m *measured){
		"want at least 108600": func(m *measured) { m.result.Throughput[1] = 100_000 },
		"dropped 30 packets":   func(m *measured) { m.truth.dropped = 30 },
		"dropped 12 packets":   func(m *measured) { m.truth.dropped = 12 },
	} {
		m := lossy("reno")
		c(m)
		if all := m.late(); !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%q, want %q", all, want)
		}
	}
}

func TestCellWithFaultsIsMeasuredOnceMore(t *testing.T) {
	bad := func(variant string) *measured { m := lossy(variant); m.result.RTTMin = nil; return m }
	kept, err := flaky.Open(t.TempDir(), "papertcp")
	if err != nil {
		t.Fatal(err)
	}
	all := []measured{*lossy("reno"), *bad("cubic"), *bad("vegas")}
	remain, err := rerunFailed(func(c cell) (*measured, error) {
		if c.variant == "vegas" {
			return bad(c.variant), nil
		}
		return lossy(c.variant), nil
	}, all, 9*time.Second, kept)
	if err != nil || len(remain) != 2 || !strings.Contains(remain[0], "vegas") || len(kept.Files) != 1 || !strings.Contains(kept.Files[0], "cubic") {
		t.Errorf("%v: %q remain, %q are kept; want both of vegas, and cubic", err, remain, kept.Files)
	}
	if len(all[1].faults(9*time.Second)) > 0 {
		t.Error("the first result of a flaky cell is reported; want the second")
	}
	all = slices.Repeat([]measured{*bad("cubic")}, flaky.Max)
	remain, err = rerunFailed(func(c cell) (*measured, error) { return lossy(c.variant), nil }, all, 9*time.Second, kept)
	if err != nil || len(remain) != 1 || !strings.HasPrefix(remain[0], "4 flaky cells") {
		t.Errorf("%v, %q remain; want an error of 4 flaky cells", err, remain)
	}
}

func TestVegasMustNotFillTheQueue(t *testing.T) {
	reno, vegas := lossy("reno"), lossy("vegas")
	if all := vegasQueuesLess([]measured{*reno, *vegas}); len(all) != 1 {
		t.Errorf("%q", all)
	}
	vegas.result.RTT[1] = 0.15
	if all := vegasQueuesLess([]measured{*reno, *vegas}); len(all) != 0 {
		t.Errorf("%q", all)
	}
}

func TestLimitsOfAQuietMachineFailOnlyIfAsserted(t *testing.T) {
	for _, c := range []struct {
		faults, late []string
		precise      bool
		fails        bool
	}{{nil, nil, true, false}, {nil, []string{"x"}, false, false}, {nil, []string{"x"}, true, true}, {[]string{"y"}, nil, false, true}} {
		if err := verdict(c.faults, c.late, c.precise); (err != nil) != c.fails {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestReportHasThePaperBesideEachRow(t *testing.T) {
	up := lossy("cubic")
	up.cell = cell{sample.Forward, "cubic", 0}
	var text strings.Builder
	if err := report(&text, []measured{*lossy("reno"), *up}, 9*time.Second); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1424", "Figure 4: full 1500, loss-limited", "Table 2: 7.1  8.4  5.0  5.2", "20 of 1034 segments", "one transfer of 9s, the first 3s left out"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
}
