package ledger

import (
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
)

// statisticsPoller decides when to send a statistics query to our reflector: to open the session before the first
// test packet, to obtain the counts of each direction where test packets are too small for a Receipt, and to settle
// the end of a run.
type statisticsPoller struct {
	next     time.Duration
	tries    uint8
	opened   bool // the remote end has answered a query
	foreign  bool // it does not support our TLV
	finished bool // it has decided all sent packets
	// finish requests that decision; set after the loss timeout.
	finish bool
	ended  bool // the final query to a foreign reflector is sent
	// begin is the number at which a foreign reflector's replies begin, after its reply to the only query; 0:
	// unknown.
	begin uint64
	// sentT1 are the T1 of the last queries; they identify the replies of a reflector that returns no TLVs, or only
	// those that it supports.
	sentT1 []uint64
	count  uint32
	// heard is how many queries had been sent when the last reply to one arrived.
	heard uint32
}

const (
	// OpenTries is how many queries open a session whose remote end does not reply to them, StatsQueryInterval apart.
	OpenTries = 3
	// StatsQueryInterval is the least time between two queries.
	StatsQueryInterval = 250 * time.Millisecond
	// statsQueriesKept is how many of the last queries are remembered: those of a minute, the longest loss timeout.
	statsQueriesKept = 64
	// leap is the distance of the number of a foreign reflector's last query from the test packets' numbers: a
	// reply that repeats it is not numbered by the reflector. A smaller distance could occur by chance after
	// losses.
	leap = 1000
)

// due reports whether a query is to be sent now, and records it.
func (q *statisticsPoller) due(now time.Duration, needed bool, interval time.Duration) bool {
	switch {
	case now < q.next:
		return false
	case q.foreign:
		first := q.finish && !q.ended
		q.ended = q.ended || first
		return first
	case q.finish:
		if q.finished {
			return false
		}
		q.next = now + StatsQueryInterval
	case !q.opened && q.tries < OpenTries:
		q.tries++
		q.next = now + StatsQueryInterval
	case needed:
		q.next = now + max(interval, time.Second)
	default:
		return false
	}
	return true
}

// note records the T1 of a query that is being sent.
func (q *statisticsPoller) note(t1 uint64) {
	if len(q.sentT1) < statsQueriesKept {
		q.sentT1 = append(q.sentT1, t1)
	} else {
		q.sentT1[q.count%statsQueriesKept] = t1
	}
	q.count++
}

// contains reports whether t1 is that of a query, and of the last one.
func (q *statisticsPoller) contains(t1 uint64) (known, last bool) {
	if q.count == 0 {
		return false, false
	}
	return slices.Contains(q.sentT1, t1), q.sentT1[(q.count-1)%statsQueriesKept] == t1
}

// answered records the reply to a query.
func (q *statisticsPoller) answered(finish bool) {
	q.opened = true
	q.finished = q.finished || finish
}

// QueryDue reports whether a statistics query is to be sent now, and records it.
func (a *Account) QueryDue(now time.Duration) bool {
	ours := a.Shared == SharedAddress || a.Kind != RemoteStateful && a.Kind != RemoteStateless
	return a.statsQuery.due(now, !a.opts.Receipts && ours, a.opts.Interval)
}

// Query records the T1 of a query that is being sent. It returns the query's number, and whether the remote end is to
// decide all sent packets.
func (a *Account) Query(t1 instant.Time) (seq uint64, finish bool) {
	a.statsQuery.note(a.opts.encode(t1))
	seq, finish = a.Next(), a.statsQuery.finish
	if finish && a.Kind != RemoteOurs && a.Shared != SharedAddress {
		seq += leap
	}
	return seq, finish
}

// Queries counts the statistics queries.
func (a *Account) Queries() uint64 { return uint64(a.statsQuery.count) }

// Opened reports whether the remote end has replied to a statistics query.
func (a *Account) Opened() bool { return a.statsQuery.opened || a.statsQuery.foreign }

// Finish requests that the remote end decides all sent packets, if it is known.
func (a *Account) Finish() {
	a.statsQuery.finish = a.Kind != RemoteUnknown
	a.statsQuery.foreign = a.statsQuery.finish && a.Kind != RemoteOurs
}

// Finished reports whether the remote end has decided all sent packets, or was not requested to.
func (a *Account) Finished() bool { return !a.statsQuery.finish || a.statsQuery.finished }

// Settled reports whether the outcomes of all packets are known, as far as they can be.
func (a *Account) Settled() bool { return a.Kind != RemoteStateful || a.guessable() }
