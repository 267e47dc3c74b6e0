package unit

// OrDash is a value in words, or "-" for nil, as a cell of a table has it.
func OrDash[T any](v *T, words func(T) string) string {
	if v == nil {
		return "-"
	}
	return words(*v)
}

// OrDash is a single value with its unit, or "-" for nil.
func (u Unit) OrDash(v *float64) string { return OrDash(v, u.Format) }

// MillisecondsOrDash is Milliseconds, or "-" for nil.
func MillisecondsOrDash(v *float64) string { return OrDash(v, Milliseconds) }

// Quartiles are three cells: the median and the lower and upper quartile of v, which has them in order.
func (u Unit) Quartiles(v *[3]float64) []string {
	if v == nil {
		return []string{"-", "-", "-"}
	}
	return []string{u.Format(v[1]), u.Format(v[0]), u.Format(v[2])}
}
