package stamp

import "time"

// calm is the time without a refused packet after which a host is taken to send again; three intervals for a slow
// session.
const calm = 3 * time.Second

// rejectionMemory is how long an ICMP message is the reason of a silent path. A Linux host sends one address a message a second
// (icmp_ratelimit), so that some thirty paths to its closed ports each get one in that time. It is short, since a firewall that
// drops packets sends none.
const rejectionMemory = 30 * time.Second

// lastError is the last error of a session's packets: a refusal of this host (firewall, route, full queue) to send one, or an ICMP
// message.
type lastError struct {
	err    error         // nil: there was none
	at     time.Duration // monotonic
	memory time.Duration // how long it lasts without another one, at least three intervals
}

// present returns nil if packets were sent for a while, until sent, without another error.
func (e *lastError) present(sent, interval time.Duration) error {
	if sent-e.at > max(e.memory, 3*interval) {
		return nil
	}
	return e.err
}
