package promsink

import (
	"math"

	"oneway.example/exporter/core/metric"
)

// Read calls visit with the present series of these families, found by name, one family after the other in this order, all as of
// one instant. Families of any profile and histograms without classic buckets are included. The reading is valid during the
// call. The error is always nil.
func (s *Sink) Read(wanted []*metric.Desc, visit func(*metric.Desc, *metric.Reading)) error {
	s.scrape.Lock()
	defer s.scrape.Unlock()
	families, scrape := s.begin()
	defer s.scraping.Store(0)
	byName := make(map[string][]*series, len(families))
	for _, all := range families {
		byName[all[0].name] = all
	}
	var r metric.Reading
	for _, d := range wanted {
		for _, one := range byName[d.Name] {
			if one.reading(scrape, &r) {
				visit(one.desc, &r)
			}
		}
	}
	return nil
}

// reading sets r to the state at the start of the scrape, and reports whether the series is present.
func (s *series) reading(scrape uint32, r *metric.Reading) (present bool) {
	r.Labels = append(r.Labels[:0], make([]string, len(s.labels))...)
	for i, from := range s.permutation {
		r.Labels[from] = s.labels[i].value
	}
	s.read(scrape, func(number float64, hist *histogram) {
		present = hist != nil || !math.IsNaN(number)
		r.Number, r.Count, r.Sum, r.Buckets = number, 0, 0, r.Buckets[:0]
		if hist == nil {
			return
		}
		r.Count, r.Sum = hist.count, hist.sum
		count := uint64(0)
		for i := range s.desc.Buckets {
			count += hist.classic[i]
			r.Buckets = append(r.Buckets, count)
		}
	})
	return present
}
