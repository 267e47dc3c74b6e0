package reflector

// Result is what became of one packet that reached the reflector. Each packet
// has exactly one.
type Result uint8

// The results. The first four mean that there was an answer.
const (
	// Answered: a test packet, answered and counted.
	Answered Result = iota
	// AnsweredQuery: a query of our own sender, answered and not counted.
	AnsweredQuery
	// AnsweredMalformed: answered; a TLV was malformed (M flag).
	AnsweredMalformed
	// AnsweredUnverified: answered; the TLVs failed verification (I flag).
	AnsweredUnverified
	// SendFailed: the kernel did not take the answer.
	SendFailed
	// Short: fewer octets than a question has: 41, or 112 if a key is required.
	Short
	// Oversized: larger than Options.MaxPacketBytes.
	Oversized
	// Corrupted: the Receipt's CRC does not fit, or a packet of a session that
	// has Receipts came without one.
	Corrupted
	// BadHMAC: authenticated by its looks, but by no key of ours.
	BadHMAC
	// HMACLimited: not verified, because too many of late were false.
	HMACLimited
	// Repeated: what a session has had before, or may have had: a copy of an authenticated
	// question, or a question that comes from another address and is no news.
	Repeated
	// NotAllowed: the source is not in the allow list.
	NotAllowed
	// BadAddress: source port 0, or an address that cannot be answered.
	BadAddress
	// Loop: comes from a reflector.
	Loop
	// RateLimited: the source sends too fast.
	RateLimited
	// SessionsFull: there is no room for another session.
	SessionsFull
	// NewSessionLimited: too many sessions have begun of late: of its source, its network
	// or in all.
	NewSessionLimited

	results = iota
)

// postponed: not a result; its session has had its answers of this round.
const postponed Result = 0xff

// Results lists all values in order.
func Results() []Result {
	all := make([]Result, results)
	for i := range all {
		all[i] = Result(i)
	}
	return all
}

// Answered reports whether there was an answer.
func (r Result) Answered() bool { return r <= AnsweredUnverified }

// String is the value of the metric label `result`.
func (r Result) String() string {
	switch r {
	case Answered:
		return "answered"
	case AnsweredQuery:
		return "answered_query"
	case AnsweredMalformed:
		return "answered_malformed"
	case AnsweredUnverified:
		return "answered_unverified"
	case SendFailed:
		return "send_failed"
	case Short:
		return "short"
	case Oversized:
		return "oversized"
	case Corrupted:
		return "corrupted"
	case BadHMAC:
		return "bad_hmac"
	case HMACLimited:
		return "hmac_limited"
	case Repeated:
		return "repeated"
	case NotAllowed:
		return "not_allowed"
	case BadAddress:
		return "bad_address"
	case Loop:
		return "loop"
	case RateLimited:
		return "rate_limited"
	case SessionsFull:
		return "sessions_full"
	case NewSessionLimited:
		return "new_session_limited"
	case postponed:
	}
	return "invalid"
}
