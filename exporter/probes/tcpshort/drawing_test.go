package tcpshort

import "testing"

func TestDrawingIsTheDistributionOfAllFlows(t *testing.T) {
	flows := []Flow{{Completion: new(0.3)}, {Completion: new(0.1)}, {Unfinished: "timeout"}, {Completion: new(0.2)}}
	all := (&Result{Sizes: []Size{{Direction: "forward", FlowBytes: 10_000, Flows: flows}, {Direction: "forward", FlowBytes: 100_000}, {Direction: "reverse"}}}).Drawings()
	if len(all) != 2 || len(all[0].Series) != 2 || all[1].Direction+": "+all[1].Title != "reverse: completion time, share of the flows" {
		t.Fatalf("%+v", all)
	}
	s := all[0].Series[0]
	if s.Name != "10 kB" || len(s.X) != 4 || s.X[0] != 0.1 || s.Y[0] != 0 || s.Y[1] != 0.25 || s.X[3] != 0.3 || s.Y[3] != 0.75 { // one did not end
		t.Errorf("%+v", s)
	}
}
