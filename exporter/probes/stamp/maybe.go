package stamp

// maybe is a value that may be unknown. The zero value is unknown.
type maybe[T any] struct {
	value T
	known bool
}

// pointer returns nil for an unknown value.
func (m maybe[T]) pointer() *T {
	if !m.known {
		return nil
	}
	return &m.value
}
