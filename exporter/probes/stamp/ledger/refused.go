package ledger

import "time"

// Refuse counts an arriving packet that is not a reply to a request of this session.
func (a *Account) Refuse(why DiscardReason, now time.Duration) {
	a.discard(why)
	if why == DiscardCorrupted {
		a.rev.now.corrupted++
	}
	a.Hint(why, now)
}

// Hint takes why a packet of the peer was refused that may be of another session of this host.
func (a *Account) Hint(why DiscardReason, now time.Duration) {
	if why.OfKey() || !a.refusing(now) || !a.fault().refused.OfKey() {
		a.refuse(why, now)
	}
}

func (a *Account) refuse(why DiscardReason, now time.Duration) {
	f := a.fault()
	f.refused, f.lastRefused = why, now
}

// refusalMemory is how long a refused packet is the reason of a silent path: several times the second between the rejections of
// a reflector with another key, and short, since a peer that is down sends nothing.
const refusalMemory = 30 * time.Second

// refusing reports whether the last packets were no replies.
func (a *Account) refusing(now time.Duration) bool {
	memory := max(refusalMemory, 10*a.opts.Interval, 3*a.opts.LossTimeout)
	f := a.faults
	return f != nil && f.lastRefused > a.lastReply && now-f.lastRefused < memory
}

func (a *Account) discard(why DiscardReason) { a.fault().Discarded[why]++ }

// Refusal returns why the last packets since the last reply were no replies, if there were any lately.
func (a *Account) Refusal() Optional[DiscardReason] {
	return Optional[DiscardReason]{a.Faults().refused, a.refusing(a.now)}
}
