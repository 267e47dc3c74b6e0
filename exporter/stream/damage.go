package stream

// Damages lists all values in order.
func Damages() []Damage { return []Damage{Intact, Truncated, Overwritten, BitErrors, BadHeader} }

// String is the word for it in reports and labels.
func (d Damage) String() string {
	switch d {
	case Intact:
		return "intact"
	case Truncated:
		return "truncated"
	case Overwritten:
		return "overwritten"
	case BitErrors:
		return "bit_errors"
	case BadHeader:
		return "bad_header"
	}
	return "invalid"
}
