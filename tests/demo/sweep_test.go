package main

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probes/tcp"
	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/tests/lab"
	"oneway.example/tests/tcplog"
)

// transfer is the log of a transfer of 1,000 bytes each so often, with a round trip of 50 ms.
func transfer(port uint16, every time.Duration) (data, acks []lab.Record) {
	client, _ := lab.Addresses()
	local, remote := netip.AddrPortFrom(client, port), netip.MustParseAddrPort("10.77.0.2:50000")
	key := tcplog.Segments(client, loadServerPort)
	at := func(d time.Duration) lab.Interval {
		return lab.Interval{After: instant.Time(1).Add(d), Before: instant.Time(1).Add(d)}
	}
	for sent, n := time.Duration(0), uint32(0); sent < 8*time.Second; sent, n = sent+every, n+1000 {
		k, _ := key(lab.Segment{Source: remote, Destination: local, Sequence: n, Payload: 1000})
		data = append(data, lab.Record{Key: k, Entry: instant.Time(1).Add(sent), Exit: at(sent + 14*time.Millisecond), Outcome: lab.Delivered})
		k, _ = key(lab.Segment{Source: local, Destination: remote, Acknowledgment: n + 1000})
		acks = append(acks, lab.Record{Key: k, Exit: at(sent + 50*time.Millisecond), Outcome: lab.Delivered})
	}
	return data, acks
}

// swept is a sweep of three cells in the order of seed 7, of which cell i had a segment each (i+1) ms.
func swept(t *testing.T) []sweptCell {
	t.Helper()
	const seed = 7
	var data, acks []lab.Record
	for i, cell := range loadtest.Turns(3, 1, seed) {
		d, a := transfer(uint16(40000+i), time.Duration(cell+1)*time.Millisecond)
		data, acks = append(data, d...), append(acks, a...)
	}
	cells := make([]tcpsweep.MeasuredCell, 3)
	for i := range cells {
		rate := 1e6 / float64(i+1)
		cells[i].SendBuffer = int64(17<<10) << i
		cells[i].Throughput, cells[i].RTT = &[3]float64{rate, rate, rate}, &[3]float64{0.05, 0.05, 0.05}
		cells[i].Repetitions = []tcpsweep.Repetition{{Models: &tcp.Models{Throughput: map[string]float64{"window": rate}}}}
	}
	return join(cells, seed, tcplog.Connections(data, acks))
}

func statuses(t *testing.T, c *sweptCell) (all []string) {
	t.Helper()
	path, err := lab.LoadProfile(sweptProfile)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range judged(c.rows(path)) {
		all = append(all, string(r.Status))
	}
	return all
}

func TestCellsOfASweepAreJudgedByTheirConnections(t *testing.T) {
	all := swept(t)
	for i := range all {
		if got := strings.Join(statuses(t, &all[i]), " "); got != "ok ok ok" {
			t.Errorf("%d KiB: %s; by the log %+v", all[i].SendBuffer>>10, got, all[i].truth)
		}
	}
	c := &all[1]
	for want, change := range map[string]func(){
		"OUTSIDE ok ok": func() { c.truth.Throughput += 0.03 * 1.2e6 },
		"ok OUTSIDE ok": func() { c.truth.RTT[1] += 20 * time.Millisecond },
		"ok ok OUTSIDE": func() { c.Repetitions[0].Models.Throughput["window"] *= 1.2 },
		"unreported unreported unreported": func() {
			c.Throughput, c.RTT, c.Repetitions = nil, nil, []tcpsweep.Repetition{{Partial: "an outage"}}
		},
	} {
		all = swept(t)
		c = &all[1]
		change()
		if got := strings.Join(statuses(t, c), " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if all := join([]tcpsweep.MeasuredCell{{}, {}}, 7, nil); all[0].truth != nil {
		t.Error("a cell without a connection has a truth")
	}
}

func TestSweepIsPrintedBesideTheThesis(t *testing.T) {
	s := &stack{swept: swept(t)}
	s.swept[0].Send.Clipped, s.swept[0].Send.Effective, s.swept[0].Receive.Effective = true, 16<<10, 32<<10
	path, err := lab.LoadProfile(sweptProfile)
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for i := range s.swept {
		rows = append(rows, s.swept[i].rows(path)...)
	}
	rows[4].Truth = exactly(1) // the round trip of the second cell
	var table, main strings.Builder
	if err := s.printSweep(&table, judged(rows)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"17 KiB (limited to 8 KiB)", "8.00 Mb/s", "1 to 1.5 Mb/s  ok", "plot only  OUTSIDE"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q is not in\n%s", want, &table)
		}
	}
	if err := printTable(&main, "wibro", rows); err != nil || strings.Contains(main.String(), "tcp_sweep") {
		t.Errorf("%v: the sweep is in the main table:\n%s", err, &main)
	}
}
