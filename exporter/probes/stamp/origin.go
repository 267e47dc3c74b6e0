package stamp

import "time"

// origin is what is known of the address that a session's packets leave from. The zero value: not checked yet.
type origin struct {
	hub     *hub
	changes uint64        // of the hub's addresses, at the last check
	checked time.Duration // when that was (monotonic)
	missing error         // nil: packets leave from an address that replies reach
}

// Times after which the address of a session is checked again: of a session without one, and of a silent one, since its
// route may have changed.
const (
	recheckMissing = 100 * time.Millisecond
	recheckSilent  = 10 * time.Second
)

// check returns an error if this host has no address for the packets of s. Then the kernel may send them nevertheless, and they
// would count as lost.
func (o *origin) check(s *session, h *hub, now time.Duration) error {
	changes, age := h.addressChanges(), now-o.checked
	if o.hub == h && o.changes == changes && (o.missing == nil || age < recheckMissing) && (age < recheckSilent || s.replies()) {
		return o.missing
	}
	*o = origin{h, changes, now, h.sources.Check(h.key.local.Addr(), s.peer.Addr())}
	return o.missing
}
