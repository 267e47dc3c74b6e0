package chrony

import "fmt"

// failure says why a query gave no usable reply. Its String is the label
// `reason` of oneway_clock_query_failures_total.
type failure uint8

const (
	// unreachable: no socket, refused, no permission.
	unreachable failure = iota
	// timeout: no reply at all in time.
	timeout
	// truncated: a reply shorter than its type says.
	truncated
	// oversized: a reply longer than its type says.
	oversized
	// malformed: not a reply of this protocol version to this command.
	malformed
	// wrongSequence: a reply to another request.
	wrongSequence
	// flood: too many datagrams, none of them the reply.
	flood
	// refused: chronyd's status is an error, such as UNAUTH.
	refused
	// implausible: well-formed, but no clock can be like that.
	implausible
)

func failures() []failure {
	return []failure{
		unreachable, timeout, truncated, oversized, malformed, wrongSequence, flood, refused, implausible,
	}
}

// String is the value of the metric label `reason`.
func (f failure) String() string {
	switch f {
	case unreachable:
		return "unreachable"
	case timeout:
		return "timeout"
	case truncated:
		return "truncated"
	case oversized:
		return "oversized"
	case malformed:
		return "malformed"
	case wrongSequence:
		return "wrong_sequence"
	case flood:
		return "flood"
	case refused:
		return "refused"
	case implausible:
		return "implausible"
	}
	return "invalid"
}

// queryError is a failure and its cause.
type queryError struct {
	reason failure
	cause  error // may be nil
}

// Error names the reason and the cause.
func (e *queryError) Error() string {
	if e.cause == nil {
		return "chrony: " + e.reason.String()
	}
	return fmt.Sprintf("chrony: %v: %v", e.reason, e.cause)
}

// Unwrap gives the cause.
func (e *queryError) Unwrap() error { return e.cause }
