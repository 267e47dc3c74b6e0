package mesh

import "oneway.example/exporter/core/metric"

// The shapes.
const (
	// Full: each host measures each other.
	Full = "full"
	// Ring: each host measures the one before it in the file and the one after it; the last and the first are neighbors.
	Ring = "ring"
	// Neighbors: as Ring, with several hosts before and after it.
	Neighbors = "neighbors"
	// Site: the hosts of a site measure each other, and the first hosts of each site those of the other sites.
	Site = "site"
)

// siteLabel is the label of hosts that Site uses.
const siteLabel = metric.SiteL

// peers are the indices of the hosts that one host measures, in the order of the file.
func (o *Options) peers(hosts []host, self int) (peers []int) {
	speaks := map[int]bool{} // for its site
	if o.Shape == Site {
		members := map[string]int{}
		for i, h := range hosts {
			site := h.Labels[siteLabel]
			speaks[i] = members[site] < o.Representatives
			members[site]++
		}
	}
	reach := len(hosts) // in the ring
	switch o.Shape {
	case Ring:
		reach = 1
	case Neighbors:
		reach = o.Neighbors / 2
	}
	for i, h := range hosts {
		distance := max(i-self, self-i)
		distance = min(distance, len(hosts)-distance)
		apart := o.Shape == Site && h.Labels[siteLabel] != hosts[self].Labels[siteLabel]
		if i != self && distance <= reach && (!apart || speaks[i] && speaks[self]) {
			peers = append(peers, i)
		}
	}
	return peers
}
