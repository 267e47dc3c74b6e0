package tcp

import (
	"slices"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/tcpsocket"
	"oneway.example/exporter/tcpstamp"
)

// maxReceived is the most samples of a receiving end.
const maxReceived = 8192

// arrivals are the stamps of the receiving end of a flow. Only the goroutine that reads uses them.
type arrivals struct {
	// whole: each segment of the flow is full, unless the sender had no more to send. Then a read of at most a segment is
	// one segment.
	whole    bool
	read     int64
	step     int64
	received []tcpstamp.Received
	emptied  instant.Time // stamp of the last read that left the queue empty
	// outOfOrder is tcpsocket.Reception.OutOfOrder. Up to the offset doubtful, data may have arrived out of order.
	outOfOrder uint32
	doubtful   int64
}

func newArrivals(f *Flow) *arrivals {
	return &arrivals{whole: f.MessageInterval == 0 && !f.NoDelay, step: tcpstamp.Grid}
}

// add adds the sampled bytes of a read.
func (a *arrivals) add(c *tcpsocket.Conn, r tcpsocket.Arrival) {
	from, to := a.read, a.read+int64(r.N)
	a.read = to
	if r.At != 0 && from-from%a.step+a.step <= to {
		a.sample(c, r, from, to)
	}
	if r.Left == 0 && r.At != 0 {
		a.emptied = r.At
	}
}

// sample adds the sampled bytes of (from, to].
func (a *arrivals) sample(c *tcpsocket.Conn, r tcpsocket.Arrival, from, to int64) {
	now := instant.Now()
	state, err := c.Reception()
	known := err == nil && state.Known
	if known && state.OutOfOrder != a.outOfOrder {
		a.outOfOrder = state.OutOfOrder
		m, _ := c.Memory() // 0 if the connection has failed: nothing follows
		a.doubtful = to + int64(max(0, r.Left)+m.ReceiveBuffer)
	}
	mss, doubt := int64(state.MSS), !known || from < a.doubtful
	one := a.whole && int64(r.N) <= mss
	for x := from - from%a.step + a.step; x <= to; x = x - x%a.step + a.step {
		s := tcpstamp.Received{Offset: x, At: r.At, NotBefore: r.Empty, Read: now}
		switch {
		case one, r.Left == 0 && !doubt && (x == to || a.whole && x > to-mss): // in the segment with the stamp
		case doubt || a.emptied > r.At:
			s.Reordered = true
		case a.emptied == 0:
			continue // it may have arrived at any time since the connection began
		default:
			s.Early = r.At.Sub(a.emptied)
		}
		a.received = append(a.received, s)
		for len(a.received) >= maxReceived {
			a.step *= 2
			a.received = slices.DeleteFunc(a.received, func(s tcpstamp.Received) bool { return s.Offset%a.step != 0 })
		}
	}
}

// receive reads payload, or discards it.
func (a *arrivals) receive(c *tcpsocket.Conn, buf []byte, discard bool) (int, error) {
	r, err := c.ReadStamped(buf, discard)
	if err == nil {
		a.add(c, r)
	}
	return r.N, err
}
