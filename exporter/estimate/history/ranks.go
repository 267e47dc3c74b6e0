package history

import "slices"

// midranks are the ranks of values, 1..n, and the mean of the ranks for equal ones; ties is the sum of t^3 - t over groups of t equal
// values.
func midranks(values []float64) (ranks []float64, ties float64) {
	order := ascending(values)
	ranks = make([]float64, len(values))
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && values[order[j]] == values[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			ranks[k] = float64(i+j+1) / 2
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	return ranks, ties
}

// ascending are the indices of values in their order.
func ascending(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return a - b
	})
	return order
}

// KruskalWallis returns the statistic H of groups, with the correction for ties (Kruskal and Wallis 1952), and epsilon squared, the
// share of the variance of ranks that the groups explain: H (n+1) / (n^2 - 1) (Tomczak and Tomczak 2014). False for fewer than two
// groups with values, or equal values alone.
func KruskalWallis(groups [][]float64) (h, epsilon float64, ok bool) {
	var values []float64
	used := 0
	for _, g := range groups {
		values = append(values, g...)
		if len(g) > 0 {
			used++
		}
	}
	n := float64(len(values))
	ranks, ties := midranks(values)
	corrected := 1 - ties/(n*n*n-n)
	if used < 2 || !(corrected > 0) {
		return 0, 0, false
	}
	for _, g := range groups {
		sum := 0.0
		for _, r := range ranks[:len(g)] {
			sum += r - (n+1)/2
		}
		if ranks = ranks[len(g):]; len(g) > 0 {
			h += sum * sum / float64(len(g))
		}
	}
	h *= 12 / (n * (n + 1)) / corrected
	return h, h / (n - 1), true
}
