// Package lightreason has the reasons of light measurements without a reply: the values of a label, and what each means.
package lightreason

// Reason is why a measurement received no reply; empty: it received one.
type Reason string

// The reasons.
const (
	NoReply     Reason = "no_reply"
	Unreachable Reason = "unreachable"
	Discarded   Reason = "discarded"
	NotSent     Reason = "not_sent"
	Unresolved  Reason = "unresolved"
)

// Values returns all reasons with their meanings, as metric.Desc.Values has them.
func Values() []string {
	return []string{
		string(NoReply) + ": nothing arrived within the waiting time; a foreign reflector with another key does not reply either",
		string(Unreachable) + ": the network or the remote host rejected the packets (ICMP)",
		string(Discarded) + ": what arrived was no valid reply, for example because of its key",
		string(NotSent) + ": this host did not send the packets",
		string(Unresolved) + ": the name has no address",
	}
}
