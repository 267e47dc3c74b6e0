package tcpstamp

import (
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
)

// MaxReceived is the most sampled bytes of a flow at the receiving end.
const MaxReceived = 8192

// Limits of the samples besides MaxReceived: first samples and then one every spacing. Each costs a call of TCP_INFO. The
// sending end has at most an eighth of them, so that its grid is, but for bursts at high rates, no finer.
const (
	first   = 2048
	spacing = 625 * time.Microsecond
)

// Read is a read of the bytes after From up to To, with what the kernel told about it.
type Read struct {
	From, To int64
	// Stamp is the kernel's of the last byte read, or of a later one that was joined with it (SO_TIMESTAMPING); zero:
	// none.
	Stamp instant.Time
	// Left is the number of bytes that were left to read when the call returned (TCP_CM_INQ); -1: unknown.
	Left int64
	// Begin is when the call began, End a time after the call and that of TCP_INFO.
	Begin, End instant.Time
	// OutOfOrder is the number of segments that arrived out of order so far, from TCP_INFO after the call (rcv_ooopack,
	// Linux 5.4); -1: unknown. Window is the size of the receive buffer (SO_RCVBUF). Both are needed only if Sampled.
	OutOfOrder, Window int64
}

// windowSlack is how far beyond the receive window a segment may reach: the kernel accepts those that begin in it, and
// one may be as long as GRO makes it (BIG TCP: 512 KiB).
const windowSlack = 1 << 20

// state is a bound for bytes after through, all that TCP had then processed in order.
type state struct {
	through int64
	stamp   instant.Time // of a byte before; later bytes in order have no earlier stamp
	begin   instant.Time // the kernel had not processed any byte after through then
}

// maxStates is the most states of data that was processed and not read.
const maxStates = 256

// Receiver collects what the receiving end of a flow knows of sampled bytes. Its methods are for one goroutine and do not
// allocate.
//
// A segment's timestamp is taken before TCP processes it. The kernel joins segments in the queue (tcp_try_coalesce) and
// the joined data has the timestamp of the part that was joined last, which is its end. In order, that is the latest, so that
// a byte arrived no later than the stamp of its read; and no earlier than that of any read before whose end and rest in the
// queue (TCP_CM_INQ) did not include it. Out of order, the part joined last may have arrived first, when a lost segment
// fills the hole before it (tcp_ofo_queue).
type Receiver struct {
	grid     int64
	begin    instant.Time // of the first sample
	received []Received

	states    [maxStates]state // ring, ascending
	head, len int
	past      state // of the last state before the present byte

	outOfOrder int64
	doubt      instant.Time
	doubtUntil int64
}

// NewReceiver returns the receiver of a flow without samples.
func NewReceiver() *Receiver {
	return &Receiver{grid: Grid, received: make([]Received, 0, MaxReceived)}
}

// Sampled reports whether a read has a sampled byte, so that Add needs TCP_INFO.
func (r *Receiver) Sampled(from, to int64) bool { return to/r.grid > from/r.grid }

// Empty tells that a call that began at begin, after the read up to offset, found no data.
func (r *Receiver) Empty(offset int64, begin instant.Time) { r.push(state{offset, 0, begin}) }

// Add takes a read. Reads must be added in order.
func (r *Receiver) Add(read Read) {
	if r.Sampled(read.From, read.To) {
		r.notice(&read)
		for x := (read.From/r.grid + 1) * r.grid; x <= read.To; x = (x/r.grid + 1) * r.grid {
			r.add(x, &read)
		}
	}
	if read.Left >= 0 {
		r.push(state{read.To + read.Left, read.Stamp, read.Begin})
	}
}

// notice begins doubt if data arrived out of order since the last sampled read. Such data ends within the window that the
// buffer allows, which begins at the next byte to read.
func (r *Receiver) notice(read *Read) {
	if read.OutOfOrder < 0 || read.OutOfOrder != r.outOfOrder {
		r.outOfOrder = read.OutOfOrder
		r.doubt = read.End
		r.doubtUntil = max(r.doubtUntil, read.To+max(0, read.Window)+windowSlack)
	}
}

func (r *Receiver) add(offset int64, read *Read) {
	for r.len > 0 && r.states[r.head].through < offset {
		r.advance(r.states[r.head])
		r.head, r.len = (r.head+1)%maxStates, r.len-1
	}
	x := Received{Offset: offset, At: read.Stamp, NotBefore: r.past.begin, Read: read.End}
	if x.At != 0 && !read.stamped(offset) {
		if offset <= r.doubtUntil {
			x.Reordered, x.Doubt = true, r.doubt
		}
		x.Early = x.At.Sub(r.past.stamp)
		if r.past.stamp == 0 || x.Early < 0 { // no bound, or the clock was set
			x.Early, x.Reordered, x.Doubt = 0, true, read.End
		}
	}
	r.keep(x)
}

// stamped reports whether the stamp of the read is that of the segment with the byte, in any order of arrival: the part that
// was joined last has the last byte of the queue. An earlier byte of the read may have come in another segment: those of a
// slow sender, or of a proxy, have any size.
func (r *Read) stamped(offset int64) bool {
	return r.Left == 0 && offset == r.To
}

// advance makes s the last state before the present byte.
func (r *Receiver) advance(s state) {
	if s.stamp == 0 {
		s.stamp = r.past.stamp
	}
	r.past = s
}

// push adds a state unless there is no space: bounds are then wider.
func (r *Receiver) push(s state) {
	if r.len > 0 {
		last := &r.states[(r.head+r.len-1)%maxStates]
		// No sampled byte is between them.
		if last.through/r.grid == s.through/r.grid {
			if s.stamp == 0 {
				s.stamp = last.stamp
			}
			*last = s
			return
		}
	}
	if r.len < maxStates {
		r.states[(r.head+r.len)%maxStates] = s
		r.len++
	}
}

func (r *Receiver) keep(x Received) {
	if r.begin == 0 {
		r.begin = x.Read
	}
	if len(r.received) == MaxReceived || len(r.received) > first+int(max(0, x.Read.Sub(r.begin))/spacing) {
		r.grid *= 2
		r.received = slices.DeleteFunc(r.received, func(x Received) bool { return x.Offset%r.grid != 0 })
		if x.Offset%r.grid != 0 {
			return
		}
	}
	r.received = append(r.received, x)
}

// Records returns what was collected.
func (r *Receiver) Records() []Received { return r.received }
