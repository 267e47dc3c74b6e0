package ledger

import (
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/estimate/seqwin"
)

// totals are counts of one direction over the whole run.
type totals struct {
	sent, received, lost, duplicated, reordered, late, corrupted uint64
	// dropped by the receiving host's socket: neither received nor lost. Nor are undecided packets: who counted them
	// ended before their outcome.
	dropped, undecided uint64
}

// accounted counts the packets that have an outcome, or will get none.
func (t totals) accounted() uint64 { return t.received + t.lost + t.dropped + t.undecided }

func (t totals) outstanding() uint64 { return t.sent - min(t.sent, t.accounted()) }

func (t totals) plus(c seqwin.Counts) totals {
	t.received += c.Received
	t.lost += c.Lost
	t.duplicated += c.Duplicated
	t.reordered += c.Reordered
	t.late += c.Late
	return t
}

// counts are the account of one direction.
type counts struct {
	dir sample.Direction
	// known: losses of this direction are distinguished from those of the other.
	known bool
	// told: our reflector has told when a packet of this direction left its host.
	told bool
	// overdueRun is the length of the run of overdue packets up to lastOverdue that is not reported yet.
	overdueRun uint32
	// decided takes the verdicts.
	decided func(Verdict)
	// ended are the totals of earlier sessions of the remote end; now includes them and the current one.
	ended, now totals
	tracker    loss.Tracker
	// overdue are packets that the receiver counted as received and whose delay exceeded the loss timeout; dropped
	// are those that the receiving host dropped. Both are of the current session.
	overdue, dropped uint64
	lastOverdue      uint64 // its number + 1
}

func (d *counts) decide(kind VerdictKind, losses loss.Delta) {
	d.decided(Verdict{Kind: kind, Direction: d.dir, Losses: losses})
}

// endBurst reports a run of lost packets.
func (d *counts) endBurst(length int) { d.decide(BurstEnded, loss.Delta{Lost: uint64(length)}) }

// count adds the receiver's counts of this direction; the newest known numbers are reported one by one. hostDropped
// returns how many of a number of losses the receiving host dropped.
func (d *counts) count(c seqwin.Counts, known int, hostDropped func(lost uint64) uint64) {
	delta := d.tracker.UpdateWithin(c, known)
	if n := hostDropped(delta.Lost); n > 0 {
		d.dropped += n
		delta.Exclude(n)
	}
	d.decide(PacketsDecided, delta)
	for _, n := range delta.Completed {
		d.endBurst(n)
	}
	if c.Base > d.lastOverdue+1 {
		d.endOverdueRun()
	}
	before := d.now
	d.now = d.ended.plus(c)
	d.now.received -= min(d.overdue, d.now.received)
	d.now.late += d.overdue
	d.now.lost += d.overdue - min(d.dropped, d.now.lost+d.overdue)
	d.now.dropped += d.dropped
	d.now.sent, d.now.corrupted = before.sent, before.corrupted
	d.known = true
}

// tooLate adds a packet that the receiver counted as received and whose delay exceeded the loss timeout: it is lost
// (RFC 7680 section 2.4).
func (d *counts) tooLate(seq uint64) {
	d.overdue++
	d.now.received -= min(1, d.now.received)
	d.now.lost++
	d.now.late++
	d.overdueRun++
	d.lastOverdue = seq + 1
	d.decide(PacketOverdue, d.tracker.AddOverdue(seq))
}

// endOverdueRun reports the run of overdue packets.
func (d *counts) endOverdueRun() {
	if d.overdueRun > 0 {
		d.endBurst(int(d.overdueRun))
		d.overdueRun = 0
	}
}

// answered counts packets as received because each has a reply.
func (d *counts) answered(received uint64) {
	d.now.received += received
	d.decide(PacketsDecided, loss.Delta{Decided: received, Received: received})
}

// missed counts packets as lost in an unknown order.
func (d *counts) missed(lost uint64) {
	d.now.lost += lost
	d.decide(PacketsDecided, loss.Delta{Decided: lost, Lost: lost, PatternLost: lost, Unordered: lost})
}

// undecide counts packets whose outcome in this direction stays unknown.
func (d *counts) undecide(n uint64) {
	if n > 0 {
		d.now.undecided += n
		d.decide(PacketsUndecided, loss.Delta{Decided: n})
	}
}

// restart begins the counts of a new session of the remote end.
func (d *counts) restart() {
	d.ended = d.now
	d.endOverdueRun() // its numbers are undefined in the next session
	d.overdue, d.dropped = 0, 0
	d.tracker.Reset()
}

// DiscardReason is why an arriving packet belongs to no measurement.
type DiscardReason uint8

// Reasons of discarded packets.
const (
	// DiscardShort: it is shorter than a reply; DiscardBadHMAC: no key verifies it.
	DiscardShort DiscardReason = iota
	DiscardBadHMAC
	// DiscardUnknownSession: it has the SSID of none; DiscardWrongPeer: it is from another address than the peer's.
	DiscardUnknownSession
	DiscardWrongPeer
	// DiscardUnknownSequence: no packet with its number is remembered; DiscardBadEcho: its copy of T1 is not that packet's.
	DiscardUnknownSequence
	DiscardBadEcho
	// DiscardBadReceipt: its Receipt is of another session, or counts what was not sent.
	DiscardBadReceipt
	// DiscardTruncated: it is longer than the buffer; DiscardWrongNumber: no reflector can have numbered it so.
	DiscardTruncated
	DiscardWrongNumber
	// DiscardCorrupted is a damaged reply of this session.
	DiscardCorrupted
	// DiscardKeyRejected is a rejection; DiscardNoKey is the reply of a reflector without a key to an authenticated request.
	DiscardKeyRejected
	DiscardNoKey
	// DiscardReasons is the number of reasons.
	DiscardReasons
)

// String is the value of the label `reason` of oneway_packets_discarded_total.
func (r DiscardReason) String() string {
	return [DiscardReasons]string{
		"short", "bad_hmac", "unknown_session", "wrong_peer", "unknown_sequence",
		"bad_echo", "bad_receipt", "truncated", "wrong_number", "corrupted", "key_rejected", "no_key",
	}[r]
}

// OfKey reports whether the keys of the two ends are the reason.
func (r DiscardReason) OfKey() bool { return r >= DiscardKeyRejected && r < DiscardReasons }

// SkipReason is why a due test packet was not sent.
type SkipReason uint8

// Reasons of test packets that were not sent.
const (
	// SkipLate: its time had passed.
	SkipLate SkipReason = iota
	// SkipBufferFull: the socket's send buffer was full; SkipUnreachable: this host knows no route; SkipRefusedByHost: it
	// does not permit it (errtext.Forbidden); SkipError: the kernel gave another error.
	SkipBufferFull
	SkipUnreachable
	SkipRefusedByHost
	// SkipNoAddress: this host had no address that replies reach.
	SkipNoAddress
	SkipError
	// SkipReasons is the number of reasons.
	SkipReasons
)

// String is the value of the label `reason` of oneway_probe_schedule_skipped_total.
func (r SkipReason) String() string {
	return [SkipReasons]string{"late", "send_buffer_full", "unreachable", "not_permitted", "no_address", "send_error"}[r]
}

// LowConfidenceReason is why a lost round trip has no direction.
type LowConfidenceReason uint8

// Reasons of losses without a direction.
const (
	// LowConfidenceForeign: the reflector does not number its replies.
	LowConfidenceForeign LowConfidenceReason = iota
	// LowConfidenceRemoteRestart: the reflector began to count after them, or lost its counts; LowConfidencePort: it
	// began to, since they were before a change of the source port. LowConfidenceEnded: the session ended before the direction was known.
	LowConfidenceRemoteRestart
	LowConfidencePort
	LowConfidenceEnded
	// LowConfidenceReasons is the number of reasons.
	LowConfidenceReasons
)

// String is the value of the label `reason` of oneway_round_trips_lost_direction_unknown_total.
func (r LowConfidenceReason) String() string {
	return [LowConfidenceReasons]string{"foreign_reflector", "remote_restarted", "source_port_changed", "session_ended"}[r]
}

// Faults are counts of what most sessions never have.
type Faults struct {
	// Discarded arriving packets, Skipped due packets and lost round trips of LowConfidence, by reason.
	Discarded     [DiscardReasons]uint64
	Skipped       [SkipReasons]uint64
	LowConfidence [LowConfidenceReasons]uint64
	// refused is the reason of the last arriving packet that was no reply, at lastRefused (monotonic; 0: never).
	refused     DiscardReason
	lastRefused time.Duration
	// unreported are packets that exceeded the loss timeout, and that the remote end may count as lost as well: test packets without
	// space for a Receipt, since the last query.
	unreported []uint64
	// ports are of a session that has changed its source port.
	ports ports
}

// mostUnreported limits Faults.unreported, which a remote end whose counts stay the same does not empty: further packets are lost at once.
const mostUnreported = 1 << 10

// fault returns the counts of faults, which are allocated at their first use.
func (a *Account) fault() *Faults {
	if a.faults == nil {
		a.faults = new(Faults)
	}
	return a.faults
}

// Drops attributes a socket's drops (SO_RXQ_OVFL) to the losses that are decided after them: these are losses of
// the host, not of the path. The kernel does not report whose packet was dropped. If several sessions share a
// socket and the path loses packets too, at most as many losses are attributed to the host as its socket dropped.
// It is safe for concurrent use.
type Drops struct {
	mu     sync.Mutex
	seen   uint64 // the total, plus 1; 0: unknown
	recent []drop // not attributed to a loss yet, the oldest first
}

// drop is a number of packets that a socket dropped at about the same time.
type drop struct {
	at time.Duration // monotonic, when it was noticed
	n  uint64
}

const (
	// dropsTogether is the least time between two separate drops, dropsKept the age at which a drop is forgotten.
	dropsTogether = 100 * time.Millisecond
	dropsKept     = 10 * time.Minute
)

// Update takes the socket's total. Drops before the first update are not counted. A total that falls is of another
// socket.
func (d *Drops) Update(total uint64, now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen > 0 && total >= d.seen {
		n := total - (d.seen - 1)
		if last := len(d.recent) - 1; last >= 0 && now-d.recent[last].at < dropsTogether {
			d.recent[last].n += n
		} else {
			d.recent = append(d.recent, drop{now, n})
		}
	}
	d.seen = total + 1
	d.recent = slices.DeleteFunc(d.recent, func(r drop) bool { return r.n == 0 || now-r.at > dropsKept })
}

// Begin is called when the total of another socket begins at zero.
func (d *Drops) Begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen, d.recent = 1, d.recent[:0]
}

// Take returns how many of the lost packets decided now the socket dropped; keep is the longest time between a drop
// and the decision of a loss attributed to it.
func (d *Drops) Take(lost uint64, now, keep time.Duration) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := uint64(0)
	for i := range d.recent {
		if r := &d.recent[i]; now-r.at <= keep {
			n := min(lost-found, r.n)
			found += n
			r.n -= n
		}
	}
	return found
}
