package ledger

// Optional is a value that may be unknown. The zero value is unknown.
type Optional[T any] struct {
	// Value is undefined unless Known.
	Value T
	Known bool
}

// OptionalOf returns v if it is known. If not, v is not used.
func OptionalOf[T any](v T, known bool) Optional[T] { return Optional[T]{v, known} }

// Pointer returns nil for an unknown value.
func (m Optional[T]) Pointer() *T {
	if !m.Known {
		return nil
	}
	return &m.Value
}
