package stamp

import (
	"fmt"

	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probes/stamp/ledger"
)

// refusal is why the last packets from the peer were no replies, and what to do.
func (v *snapshot) refusal() string {
	key := len(v.opts.keys) > 0
	switch v.refused.Value {
	case ledger.DiscardKeyRejected:
		if key {
			return fmt.Sprintf("the reflector at udp %s rejects our key; use the same key file at both ends", v.peer)
		}
		return fmt.Sprintf("the reflector at udp %s requires a key, and this path has none; use the key file of the reflector", v.peer)
	case ledger.DiscardNoKey:
		return fmt.Sprintf("the reflector at udp %s has no key, and this path has one; use the same key file at both ends, or none", v.peer)
	case ledger.DiscardBadHMAC:
		return fmt.Sprintf("packets from udp %s fail the verification by our key: they have another key (use the same key file at both ends), or are of no reflector", v.peer)
	case ledger.DiscardShort:
		least, mode := stampfmt.MinReplyBytes, ""
		if key {
			least, mode = stampfmt.AuthenticatedBytes, " in authenticated mode"
		}
		return fmt.Sprintf("udp %s: replies of %d bytes, at least %d are needed%s (RFC 5357 section 4.2.1, RFC 8762 section 4.3)", v.peer, v.refusedBytes, least, mode)
	case ledger.DiscardWrongPeer:
		return fmt.Sprintf("replies come from udp %s, not from udp %s; make that the peer, or let the reflector (or the NAT before it) reply from the address that it is asked at", v.repliesFrom, v.peer)
	case ledger.DiscardTruncated:
		return fmt.Sprintf("udp %s: replies of more than %d bytes", v.peer, maxSize)
	case ledger.DiscardCorrupted:
		return fmt.Sprintf("udp %s: replies are damaged on the path: their checksum or their TLVs are not as before; or another reflector has taken the address", v.peer)
	case ledger.DiscardBadEcho:
		return fmt.Sprintf("udp %s: replies do not repeat the time of their test packet: no reflector of STAMP or TWAMP-Light, or their bytes 28 to 35 are changed on the path", v.peer)
	case ledger.DiscardUnknownSequence, ledger.DiscardUnknownSession:
		return fmt.Sprintf("udp %s: packets repeat the number and time of no test packet: no replies of STAMP or TWAMP-Light, or they come after the waiting time (loss_timeout)", v.peer)
	case ledger.DiscardWrongNumber:
		return fmt.Sprintf("udp %s: no reflector can have numbered its replies so: two reflectors reply, or their numbers begin anew all the time", v.peer)
	case ledger.DiscardBadReceipt:
		return fmt.Sprintf("udp %s: replies report counts of another session, or of more test packets than were sent", v.peer)
	default: // not of packets from the peer
		return fmt.Sprintf("packets from udp %s are discarded: %s", v.peer, v.refused.Value)
	}
}
