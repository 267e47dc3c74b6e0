package mesh

import (
	"fmt"
	"slices"
	"testing"
)

// sites are n hosts in sites of this size.
func sites(n, size int) (all []host) {
	for i := range n {
		all = append(all, host{Labels: map[string]string{siteLabel: fmt.Sprint(i / size)}})
	}
	return all
}

func TestPeersAreThoseOfTheShape(t *testing.T) {
	for _, c := range []struct {
		of   Options
		n    int
		self int
		want []int
	}{
		{Options{Shape: Full}, 4, 1, []int{0, 2, 3}},
		{Options{Shape: Ring}, 2, 0, []int{1}},
		{Options{Shape: Ring}, 3, 0, []int{1, 2}},
		{Options{Shape: Ring}, 6, 0, []int{1, 5}},
		{Options{Shape: Ring}, 6, 5, []int{0, 4}},
		{Options{Shape: Neighbors, Neighbors: 4}, 8, 1, []int{0, 2, 3, 7}},
		{Options{Shape: Neighbors, Neighbors: 6}, 6, 0, []int{1, 2, 3, 4, 5}},
		{Options{Shape: Neighbors, Neighbors: 100}, 5, 0, []int{1, 2, 3, 4}},
		{Options{Shape: Site, Representatives: 1}, 9, 0, []int{1, 2, 3, 6}},
		{Options{Shape: Site, Representatives: 1}, 9, 1, []int{0, 2}},
		{Options{Shape: Site, Representatives: 2}, 9, 4, []int{0, 1, 3, 5, 6, 7}},
		{Options{Shape: Site, Representatives: 3}, 6, 5, []int{0, 1, 2, 3, 4}},
	} {
		if got := c.of.peers(sites(c.n, 3), c.self); !slices.Equal(got, c.want) {
			t.Errorf("%+v: the peers of host %d of %d are %v, want %v", c.of, c.self, c.n, got, c.want)
		}
	}
}

func TestShapesAreSymmetricAndConnected(t *testing.T) {
	for n := 2; n < 30; n++ {
		hosts := sites(n, 4)
		for _, o := range []Options{
			{Shape: Full},
			{Shape: Ring},
			{Shape: Neighbors, Neighbors: 2},
			{Shape: Neighbors, Neighbors: 6},
			{Shape: Site, Representatives: 1},
			{Shape: Site, Representatives: 3},
		} {
			reached, next := map[int]bool{0: true}, []int{0}
			for len(next) > 0 {
				self := next[0]
				next = next[1:]
				for _, peer := range o.peers(hosts, self) {
					if !slices.Contains(o.peers(hosts, peer), self) {
						t.Errorf("%+v: of %d hosts, %d measures %d, but not the reverse", o, n, self, peer)
					}
					if !reached[peer] {
						reached[peer], next = true, append(next, peer)
					}
				}
			}
			if len(reached) != n {
				t.Errorf("%+v: %d of %d hosts are connected", o, len(reached), n)
			}
		}
	}
}
