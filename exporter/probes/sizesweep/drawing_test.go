package sizesweep

import "testing"

func TestDrawingsHaveASeriesForEachPacketRate(t *testing.T) {
	r := &Result{}
	for _, direction := range []string{"forward", "reverse"} {
		for _, size := range []int{128, 1400} {
			for _, rate := range []int{50, 100} {
				c := MeasuredCell{Cell: Cell{PacketBytes: size, PacketRate: rate}, DirectionName: direction}
				c.Median.Received = new(float64(size * rate))
				if direction == "reverse" {
					c.Median.Loss = new(0.01)
				}
				r.Cells = append(r.Cells, c)
			}
		}
	}
	all := r.Drawings()
	if len(all) != 3 || all[0].Direction+": "+all[0].Title != "forward: throughput by packet size" || all[1].Direction+": "+all[1].Title != "reverse: throughput by packet size" || all[2].Direction+": "+all[2].Title != "reverse: loss by packet size" {
		t.Fatalf("%+v", all)
	}
	if s := all[1].Series; len(s) != 2 || s[1].Name != "100 packets/s" || len(s[1].X) != 2 || s[1].X[1] != 1400 || s[1].Y[1] != 140_000 {
		t.Errorf("%+v", s)
	}
}
