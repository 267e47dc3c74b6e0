package metric

// Reading is the state of a series at the instant of a reader.
type Reading struct {
	// Labels are the values in the order of Desc.Labels.
	Labels []string
	// Number is the value of a counter or gauge.
	Number float64
	// Count and Sum are those of a histogram, Buckets its cumulative classic buckets in the order of Desc.Buckets.
	Count   uint64
	Sum     float64
	Buckets []uint64
}
