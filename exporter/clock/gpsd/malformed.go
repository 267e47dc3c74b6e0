package gpsd

import (
	"errors"
	"fmt"
)

// malformation says why a line was not understood. Its String is the label
// `reason` of oneway_gnss_malformed_total.
type malformation uint8

const (
	// tooLong: longer than maxLine; it is skipped to its end.
	tooLong malformation = iota
	// notJSON: not one JSON object, such as a report that gpsd cut at its own limit.
	notJSON
	// wrongType: a field that the class must have is missing, or of another type.
	wrongType
	// implausible: well-formed, but no receiver can say that.
	implausible
)

func malformations() []malformation {
	return []malformation{tooLong, notJSON, wrongType, implausible}
}

// String is the value of the metric label `reason`.
func (m malformation) String() string {
	switch m {
	case tooLong:
		return "too_long"
	case notJSON:
		return "not_json"
	case wrongType:
		return "wrong_type"
	case implausible:
		return "implausible"
	}
	return "invalid"
}

// lineError is a malformation and what exactly was wrong.
type lineError struct {
	reason malformation
	cause  error // may be nil
}

// Error names the reason and the cause.
func (e *lineError) Error() string {
	if e.cause == nil {
		return "gpsd: " + e.reason.String()
	}
	return fmt.Sprintf("gpsd: %v: %v", e.reason, e.cause)
}

// Unwrap gives the cause.
func (e *lineError) Unwrap() error { return e.cause }

// reasonOf is the reason for which err is counted; ok is false if it is not of
// a line.
func reasonOf(err error) (reason malformation, ok bool) {
	if l, is := errors.AsType[*lineError](err); is {
		return l.reason, true
	}
	return 0, false
}
