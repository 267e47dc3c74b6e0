package ledger

import "testing"

func TestHopsAreCountedAndTheirChanges(t *testing.T) {
	var h Hops
	for _, step := range []struct {
		left, arrived uint8
		want          Hops
	}{
		{255, 0, Hops{}},  // not reported
		{64, 255, Hops{}}, // impossible
		{255, 250, Hops{Optional[uint8]{5, true}, 0}},
		{255, 250, Hops{Optional[uint8]{5, true}, 0}},
		{255, 249, Hops{Optional[uint8]{6, true}, 1}},
		{255, 0, Hops{Optional[uint8]{6, true}, 1}},
		{255, 255, Hops{Optional[uint8]{0, true}, 2}},
	} {
		if h.arrived(step.left, step.arrived); h != step.want {
			t.Errorf("left with %d, arrived with %d: %+v, want %+v", step.left, step.arrived, h, step.want)
		}
	}
	for arrived, want := range map[uint8]uint8{1: 64, 64: 64, 65: 128, 128: 128, 129: 255, 255: 255} {
		if got := usualTTL(arrived); got != want {
			t.Errorf("a packet that arrives with %d left with %d, want %d", arrived, got, want)
		}
	}
}
