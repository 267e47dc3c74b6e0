package loadtest

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/documents"
	"oneway.example/tests/lab"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/program"
)

// Without a checksum, packets that the link corrupts arrive. They are in the metrics by kind, and with
// samples in the run's report.
func TestCorruptedPacketsAreCountedByKindAndSampled(t *testing.T) {
	link := lab.Link{Rate: 20e6, Delay: 5 * time.Millisecond, Corrupt: 0.05}
	s := newSite(t, lab.Options{Profile: lab.Profile{Name: "corrupting", Forward: link, Reverse: link}, SpareOthers: true})
	// Small packets, so that some have a corrupted header.
	a := s.Agent(t, "paths:\n"+s.Path("p", "checksum: false", "duration: 2s", "packet_bytes: 200", "rate: {forward: 1Mbit, reverse: 1Mbit}"))
	program.Eventually(t, "a run", func() bool { return loadsite.Sum(a.Metrics(t, "oneway_probe_runs_total")) > 0 })
	s.Drained(t)
	corrupted := a.Metrics(t, "oneway_run_packets_corrupted_total")
	t.Logf("corrupted: %v", corrupted)
	list := a.Runs(t)
	if len(list) != 1 || list[0].Result != "completed" {
		t.Fatalf("the reports: %+v", list)
	}
	var report struct{ Body loadsite.Result }
	text := a.Get(t, "/runs/"+list[0].ID)
	documents.Valid(t, document.Report, text)
	documents.Valid(t, document.Status, a.Get(t, "/api/v1/status"))
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if page := string(a.Get(t, "/runs/"+list[0].ID+"/view")); strings.Count(page, "<figure>") != 10 || !strings.Contains(page, ">Throughput by second<") {
		t.Errorf("the page of the run has not the ten drawings of a load in both directions:\n%.500s", page)
	}
	r := report.Body
	if len(r.Transfers) != 2 {
		t.Fatalf("the report has %d transfers, want one in each direction", len(r.Transfers))
	}
	for i, d := range sample.Directions() {
		truth := 0
		for _, p := range s.Network.Log(d) {
			if p.Corrupted {
				truth++
			}
		}
		way := `direction="` + d.String() + `"`
		if n := loadsite.Sum(corrupted, way); int(n) != truth || truth == 0 {
			t.Errorf("%s: %v corrupted packets are counted; the link corrupted %d", d, n, truth)
		}
		for _, kind := range []string{"bit_errors", "bad_header"} {
			if loadsite.Sum(corrupted, way, `kind="`+kind+`"`) == 0 {
				t.Errorf("%s: no %s", d, kind)
			}
		}
		told := r.Transfers[i]
		inReport := 0
		for n := range maps.Values(told.Counts.Damaged) {
			inReport += n
		}
		if told.Direction != d.String() || inReport != truth || len(told.Received.Corrupt) == 0 || told.Received.ChecksumErrors != 0 {
			t.Errorf("%s: the report has %d corrupted packets of %d, %d samples, and %d checksum errors of the kernel",
				told.Direction, inReport, truth, len(told.Received.Corrupt), told.Received.ChecksumErrors)
		}
		for _, c := range told.Received.Corrupt {
			if c.Damage == "bit_errors" && (c.Differing != 1 || len(c.Got) == 0 || len(c.Want) != len(c.Got) || c.Got[0] == c.Want[0]) {
				t.Errorf("%s: want a packet with one different byte: %+v", d, c)
			}
		}
	}
}
