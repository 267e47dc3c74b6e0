package incident

import (
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
)

func TestDrawingHasTheDelaysAndTheLosses(t *testing.T) {
	begin := instant.Time(1_790_000_000e9)
	var g ring
	for seq := range uint64(10) {
		p := replied(seq, begin.Add(time.Duration(seq)*time.Second), 80*ms, 20*ms)
		if seq == 4 {
			p = lost(seq, begin.Add(time.Duration(seq)*time.Second))
		}
		r := rowOf(p)
		g.add(&r, 10_000)
	}
	v := Body{Begin: begin, Rows: table{g, begin}}.View()
	if len(v.Drawings) != 2 || len(v.Drawings[0].Series) != 4 {
		t.Fatalf("%+v", v)
	}
	s := v.Drawings[0].Series
	for i, want := range []float64{0.08, 0.02, 0.1} {
		if len(s[i].X) != 9 || s[i].X[4] != 5 || s[i].Y[4] < want-0.001 || s[i].Y[4] > want+0.001 {
			t.Errorf("%s: %v, %v", s[i].Name, s[i].X, s[i].Y)
		}
	}
	if len(s[3].X) != 1 || s[3].X[0] != 4 || s[3].Y[0] != 0 {
		t.Errorf("lost at %v, %v", s[3].X, s[3].Y)
	}
	if shares := v.Drawings[1].Series; len(shares) != 3 || len(shares[2].Y) != 10 || shares[2].Y[9] != 0.9 {
		t.Errorf("the distribution is %+v", shares)
	}
}
