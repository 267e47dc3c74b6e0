package tcptraffic

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"oneway.example/exporter/net/tcpsocket"
)

// half is one end of a transfer, at the client or at the load server.
type half struct {
	plan    *Plan
	sends   bool
	content []byte // of the longest message
	flows   []*flow
	// permit is called before payload is sent, with its IP bytes, and after payload was received; it may
	// wait. nil: all is permitted.
	permit func(ctx context.Context, payload, ip int64) error
	// state is of all flows; nil: nobody reads it.
	state *flowState
	// tell receives the progress; nil: nobody does.
	tell func(payload int64, elapsed time.Duration)
	// over is closed when the sending end has ended: the receiving end then waits for drainTime only, as a
	// reset may be lost.
	over <-chan struct{}

	begin  time.Time
	cancel context.CancelFunc // ends a wait of permit
	left   atomic.Int64       // payload left of Plan.Bytes
	most   atomic.Int64       // IP bytes left of Plan.Most
	why    atomic.Pointer[Ended]
}

// flow is one end of a flow. The goroutine that moves its payload sets end; watch samples it.
type flow struct {
	Flow
	conn                 connection
	payload, first, last atomic.Int64 // first, last: time.Duration since half.begin
	end                  FlowEnd
	over                 time.Duration // since half.begin: it knew that the receiver had all, or failed
	samples              []Sample      // of watch, as is acked
	acked                int64
	retransmitted        atomic.Int64 // bytes taken from the limits
}

// resentWithin is the payload after which a sender takes what TCP has retransmitted from the limits: a sample may be late for
// a fast flow.
const resentWithin = 1 << 20

// connectionBytes allows for the IP bytes of a connection besides its segments with payload: handshake, cookie, end,
// and window updates.
const connectionBytes = 4 << 10

// newHalf prepares an end before its connections are open: what it does later is part of a short flow's time.
func newHalf(p *Plan, sends bool) *half {
	h := &half{plan: p, sends: sends}
	h.left.Store(p.Bytes)
	h.most.Store(p.Most - connectionBytes*int64(len(p.Flows)))
	if sends {
		h.content = content(p.Flows)
	}
	return h
}

// stop ends all flows, for the first reason given. It does not wait.
func (h *half) stop(why Ended) {
	h.why.CompareAndSwap(nil, &why)
	h.cancel()
	for _, f := range h.flows {
		_ = f.conn.SetDeadline(time.Unix(1, 0)) // a closed connection has ended
	}
}

// run moves the payload over the connections until all flows have ended, and closes them. The end of ctx stops them.
func (h *half) run(ctx context.Context, conns []connection) []FlowEnd {
	for i, c := range conns {
		h.flows = append(h.flows, &flow{Flow: h.plan.Flows[i], conn: c})
	}
	ctx, h.cancel = context.WithCancel(ctx)
	defer h.cancel()
	defer context.AfterFunc(ctx, func() { h.stop(EndedCanceled) })()
	move := h.receive
	if h.sends {
		move = func(ctx context.Context, f *flow) Ended { return h.send(ctx, f, h.content[:f.MessageBytes]) }
	}
	h.begin = time.Now()
	var moving sync.WaitGroup
	for _, f := range h.flows {
		moving.Go(func() {
			f.end.Handshake = f.conn.handshake()
			f.end.Ended = move(ctx, f)
			f.over = time.Since(h.begin)
			h.finish(f)
		})
	}
	ended := make(chan struct{})
	go func() {
		moving.Wait()
		close(ended)
	}()
	h.watch(ctx, ended)
	ends := make([]FlowEnd, len(h.flows))
	for i, f := range h.flows {
		f.end.Samples, f.end.Count = f.samples, len(f.samples)
		ends[i] = f.end
	}
	return ends
}

// content is random, as links and tunnels may compress, and long enough for each flow's messages.
func content(flows []Flow) []byte {
	size := 0
	for _, f := range flows {
		size = max(size, f.MessageBytes)
	}
	b := make([]byte, size)
	_, _ = rand.Read(b) // never fails (Go 1.24)
	return b
}

// send writes messages.
func (h *half) send(ctx context.Context, f *flow, message []byte) Ended {
	mss, header := int64(1), int64(0)
	if i, err := f.conn.Info(); err == nil {
		mss, header = max(1, i.MSS), i.HeaderBytes(f.conn.IPv6())
	}
	p := &pace{half: h, interval: f.MessageInterval, timer: time.NewTimer(0)}
	defer p.timer.Stop()
	var unseen int64
	for {
		if more, ok := p.wait(ctx); !ok {
			return h.failed(ctx.Err())
		} else if !more {
			return h.flush(f)
		}
		size := int64(len(message))
		if p.interval == 0 {
			size = h.fit(size, mss, header)
		}
		n := h.take(size)
		if n == 0 && size > 0 {
			return h.flush(f)
		}
		resent := true
		if unseen += n; unseen >= resentWithin {
			unseen = 0
			if i, err := f.conn.Info(); err == nil {
				resent = h.resent(ctx, f, &i)
			}
		}
		if !resent || n == 0 || !h.permitted(ctx, n, ipBytes(n, mss, header)) {
			if ended := h.flush(f); ended != EndedBytes {
				return ended
			}
			return EndedLimit
		}
		m, err := p.write(&f.conn, message[:n])
		h.moved(f, m)
		if err != nil {
			return h.failed(err)
		}
	}
}

// pace is the times of a flow's messages. An interval of zero has none.
type pace struct {
	*half
	interval time.Duration
	due      time.Duration // since half.begin
	timer    *time.Timer
}

// wait waits until the next message is due; not more: the plan's time is over; not ok: ctx has ended.
func (p *pace) wait(ctx context.Context) (more, ok bool) {
	if p.interval == 0 {
		return true, true
	}
	if p.due >= p.plan.Duration {
		return false, true
	}
	if d := p.due - time.Since(p.begin); d > 0 {
		p.timer.Reset(d)
		select {
		case <-p.timer.C:
		case <-ctx.Done():
			return false, false
		}
	}
	return true, true
}

// write writes a message and plans the next one. A wake-up that was late is made up for, a socket that held the write back
// is not.
func (p *pace) write(to *connection, message []byte) (n int, err error) {
	var held bool
	switch {
	case to.departures != nil:
		n, held, err = to.departures.write(to.Conn, message)
	case p.interval == 0:
		return to.Write(message)
	default:
		n, held, err = to.WriteMessage(message)
	}
	if held {
		p.due = max(p.due, time.Since(p.begin))
	}
	p.due += p.interval
	return n, err
}

// take takes up to n bytes of Plan.Bytes.
func (h *half) take(n int64) int64 {
	if h.plan.Bytes == 0 {
		return n
	}
	return min(n, max(0, h.left.Add(-n)+n))
}

// ipBytes is the most that payload needs in segments of some headers, each with an acknowledgment.
func ipBytes(payload, mss, header int64) int64 {
	return payload + (payload+mss-1)/mss*2*header
}

// fit is the part of a write of n bytes that a flow's share of the rest of Plan.Most permits; 0: none. All flows have the same share. A
// limit smaller than one write would send nothing otherwise.
func (h *half) fit(n, mss, header int64) int64 {
	left := max(0, h.most.Load()/int64(len(h.plan.Flows)))
	if ipBytes(n, mss, header) <= left {
		return n
	}
	segment := mss + 2*header
	return min(n, max(0, left-(left+segment-1)/segment*2*header))
}

// permitted takes payload and its IP bytes from the limits, or returns false.
func (h *half) permitted(ctx context.Context, payload, ip int64) bool {
	return h.most.Add(-ip) >= 0 && (h.permit == nil || h.permit(ctx, payload, ip) == nil)
}

// resent takes what TCP has retransmitted since the last call from the limits, or returns false.
func (h *half) resent(ctx context.Context, f *flow, i *tcpsocket.Info) bool {
	n := i.Retransmitted - f.retransmitted.Swap(i.Retransmitted)
	return n <= 0 || h.permitted(ctx, 0, n)
}

// flush waits until the receiver has read all and closes.
func (h *half) flush(f *flow) Ended {
	if f.conn.departures != nil {
		if err := f.conn.Finish(); err != nil {
			return h.failed(err)
		}
		return EndedBytes
	}
	if err := f.conn.CloseWrite(); err != nil {
		return h.failed(err)
	}
	if _, err := f.conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return h.failed(err)
	}
	return EndedBytes
}

// receiveBuffer is the most bytes of a read.
const receiveBuffer = 256 << 10

// receive reads until the sender closes or resets.
func (h *half) receive(ctx context.Context, f *flow) Ended {
	read, buf := f.conn.Read, make([]byte, receiveBuffer)
	switch {
	case f.conn.arrivals != nil:
		read = func(buf []byte) (int, error) { return f.conn.arrivals.receive(f.conn.Conn, buf, h.plan.Discard) }
	case h.plan.Discard:
		read = f.conn.Discard
	}
	for {
		n, err := read(buf)
		h.moved(f, n)
		if n > 0 && !h.permitted(ctx, int64(n), int64(n)) && ctx.Err() == nil {
			h.stop(EndedLimit)
		}
		if errors.Is(err, io.EOF) {
			return EndedClosed
		}
		if err != nil {
			return h.failed(err)
		}
	}
}

// moved counts payload.
func (h *half) moved(f *flow, n int) {
	if n <= 0 {
		return
	}
	now := int64(time.Since(h.begin))
	f.first.CompareAndSwap(0, now)
	f.last.Store(now)
	f.payload.Add(int64(n))
	if h.state != nil && !h.sends {
		h.state.received.Store(time.Now().UnixNano())
	}
}

// failed returns why a flow ended: the reason of stop, or that of the socket's error.
func (h *half) failed(err error) Ended {
	switch why := h.why.Load(); {
	case why != nil:
		return *why
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // just before stop
		return EndedCanceled
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return EndedReset
	}
	return EndedFailed
}

// finish reads the final state of a flow and closes it. A receiver that was not stopped has read all.
func (h *half) finish(f *flow) {
	e := &f.end
	e.Payload, e.First, e.Last = f.payload.Load(), time.Duration(f.first.Load()), time.Duration(f.last.Load())
	e.Final, _ = f.conn.Info() // a connection that was reset has its last state
	send, receive, _ := f.conn.Buffers(f.at(h.sends))
	if e.Buffer = receive; h.sends {
		e.Buffer = send
	}
	e.CongestionControl, _ = f.conn.CongestionControl()
	f.conn.records(e)
	if e.Ended == EndedBytes || e.Ended == EndedLimit || e.Ended == EndedClosed {
		_ = f.conn.Close() // the receiver has all, or resets itself the connection with the rest
		return
	}
	f.conn.Abort()
}

// watch samples the flows until they have ended, and stops them after the plan's time or without progress.
func (h *half) watch(ctx context.Context, ended <-chan struct{}) {
	limit := h.plan.sending()
	if !h.sends {
		limit = longest(h.plan)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	next, progressed, idle, over := time.Duration(0), time.Duration(0), h.plan.Idle, h.over
	var moved int64
	for {
		select {
		case <-ended:
			return
		case <-over:
			over, idle = nil, min(idle, drainTime)
		case <-timer.C:
		}
		now := time.Since(h.begin)
		if n := h.sample(ctx, now); n > moved {
			moved, progressed = n, now
			if h.state != nil {
				h.state.moved.Store(time.Now().UnixNano())
			}
		}
		switch {
		case now >= limit:
			h.stop(EndedTime)
		case now-progressed >= idle:
			h.stop(EndedIdle)
		}
		step := h.plan.Interval
		if now < h.plan.TraceFor {
			step = h.plan.TraceInterval
		}
		for next += step; next <= now; next += step {
			continue // a late sample is left out
		}
		wake := min(next, progressed+idle)
		if now < limit {
			wake = min(wake, limit)
		}
		timer.Reset(max(MinInterval, wake-time.Since(h.begin)))
	}
}

// sample samples all open flows and returns the bytes that were acknowledged or read so far.
func (h *half) sample(ctx context.Context, now time.Duration) (moved int64) {
	var payload int64
	var slowest time.Duration
	for _, f := range h.flows {
		n := f.payload.Load()
		payload += n
		if i, err := f.conn.Info(); err == nil { // it has not ended
			f.acked, slowest = i.Acked, max(slowest, i.RTT, i.ReceiverRTT)
			if h.sends && !h.resent(ctx, f, &i) && ctx.Err() == nil {
				h.stop(EndedLimit)
			}
			if len(f.samples) < h.plan.samples() {
				m, _ := f.conn.Memory()
				f.samples = append(f.samples, Sample{
					At: now, Payload: n,
					Acked: i.Acked, Sent: i.Sent, Retransmitted: i.Retransmitted, Outstanding: i.Outstanding(), NotSent: i.NotSent,
					Cwnd: i.Cwnd, Ssthresh: i.Ssthresh, DeliveryRate: i.DeliveryRate, RTT: i.RTT, RTTVar: i.RTTVar, MinRTT: i.MinRTT,
					Busy: i.Busy, RwndLimited: i.RwndLimited, SndbufLimited: i.SndbufLimited,
					SendBuffer: int64(m.SendBuffer), ReceiveBuffer: int64(m.ReceiveBuffer),
				})
			}
		}
		moved += f.acked
	}
	if h.state != nil && slowest > 0 {
		h.state.slowest.Store(int64(slowest))
	}
	if h.tell != nil {
		h.tell(payload, now)
	}
	if !h.sends {
		return payload
	}
	return moved
}

// ipBytes returns the IP bytes that an ended flow has sent and received, acknowledgments included.
func (f *flow) ipBytes() (out, in int64) {
	i, ipv6 := &f.end.Final, f.conn.IPv6()
	return i.SentIPBytes(ipv6), i.Received + i.SegmentsIn*i.HeaderBytes(ipv6)
}
