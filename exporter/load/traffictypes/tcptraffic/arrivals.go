package tcptraffic

import (
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/exporter/net/tcpsocket"
)

// arrivals are the stamps of the receiving end of a flow. Only the goroutine that reads uses them.
type arrivals struct {
	*tcpstamp.Receiver
	read  int64
	empty instant.Time
	// outOfOrder is that of the last read with a sampled byte.
	outOfOrder int64
}

func newArrivals() *arrivals {
	return &arrivals{Receiver: tcpstamp.NewReceiver()}
}

// add adds the sampled bytes of a read.
func (a *arrivals) add(c *tcpsocket.Conn, r tcpsocket.Arrival) {
	if r.Empty > a.empty {
		a.empty = r.Empty
		a.Empty(a.read, r.Empty)
	}
	one := tcpstamp.Read{From: a.read, To: a.read + int64(r.N), Stamp: r.At, Left: int64(r.Left), Begin: r.Begin, OutOfOrder: -1}
	a.read = one.To
	if a.Sampled(one.From, one.To) {
		if state, err := c.Reception(); err == nil {
			if state.Known {
				one.OutOfOrder = int64(state.OutOfOrder)
			}
			if one.OutOfOrder < 0 || one.OutOfOrder != a.outOfOrder { // else nothing depends on the window
				m, _ := c.Memory() // 0 if the connection has failed: nothing follows
				a.outOfOrder, one.Window = one.OutOfOrder, int64(m.ReceiveBuffer)
			}
		}
		one.End = instant.Now()
	}
	a.Add(one)
}

// receive reads payload, or discards it.
func (a *arrivals) receive(c *tcpsocket.Conn, buf []byte, discard bool) (int, error) {
	r, err := c.ReadStamped(buf, discard)
	if err == nil {
		a.add(c, r)
	}
	return r.N, err
}
