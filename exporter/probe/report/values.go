package report

import "oneway.example/exporter/core/unit"

// Values are the numbers of a run, by quantity: the name of METRICS.md without "oneway_", then by direction and by further
// labels of the metric, if it has any: {"queue_delay_seconds": {"forward": {"p50": 0.031}}}. Each is a float64 or a
// map[string]any. Quantile ranks are min, max, and p5, p50, p99_9 and so on.
type Values map[string]any

// Set sets the number at a path of keys, the quantity first.
func (v Values) Set(x float64, path ...string) {
	at := map[string]any(v)
	for _, key := range path[:len(path)-1] {
		key = rank(key)
		below, ok := at[key].(map[string]any)
		if !ok {
			below = map[string]any{}
			at[key] = below
		}
		at = below
	}
	at[rank(path[len(path)-1])] = x
}

// rank is a value of the label quantile_rank as the name of a field, or another label's value as it is.
func rank(label string) string {
	switch label {
	case "0":
		return "min"
	case "1":
		return "max"
	}
	if percent := unit.RankPercent(label); percent != "" {
		return "p" + percent
	}
	return label
}

// Limits of Values, which bound what a damaged file can use.
const (
	maxNumbers = 256
	maxDepth   = 4
)

// bounded returns a copy within the limits; of a file that exceeds them nothing.
func (v Values) bounded() Values {
	left := maxNumbers
	kept, ok := boundedMap(v, maxDepth, &left)
	if !ok || len(kept) == 0 {
		return nil
	}
	return kept
}

func boundedMap(from map[string]any, depth int, left *int) (map[string]any, bool) {
	to := make(map[string]any, min(len(from), *left))
	for key, x := range from {
		if *left--; *left < 0 || depth == 0 {
			return nil, false
		}
		switch x := x.(type) {
		case float64:
			to[truncate(key)] = x
		case map[string]any:
			below, ok := boundedMap(x, depth-1, left)
			if !ok {
				return nil, false
			}
			to[truncate(key)] = below
		}
	}
	return to, true
}
