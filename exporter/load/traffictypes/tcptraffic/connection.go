package tcptraffic

import (
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/exporter/net/tcpsocket"
)

// connection is the connection of a flow. With stamps it has departures at the sending end, or arrivals at the other.
type connection struct {
	*tcpsocket.Conn
	departures *departures
	arrivals   *arrivals
}

// connection enables the stamps of a flow before anything was written; skip bytes precede its payload. An old kernel has
// no stamps: the flow then has no records.
func (p *Plan) connection(flow int, c *tcpsocket.Conn, sends bool, skip int64) connection {
	if !p.stamped(flow) {
		return connection{Conn: c}
	}
	if d := newDepartures(p, &p.Flows[flow], skip); sends && c.EnableStamps(d.take) == nil {
		return connection{Conn: c, departures: d}
	}
	if !sends && c.EnableStamps(nil) == nil {
		return connection{Conn: c, arrivals: newArrivals()}
	}
	return connection{Conn: c}
}

// handshake returns the zero value without stamps.
func (c *connection) handshake() (h tcpstamp.Handshake) {
	if c.departures != nil || c.arrivals != nil {
		h, _ = c.Handshake() // what is unknown is absent
	}
	return h
}

// records adds those of a flow with stamps.
func (c *connection) records(to *FlowEnd) {
	switch {
	case c.departures != nil:
		_ = c.Drain() // what has come before a reset drops it
		to.Sent, to.Acks = c.departures.records(), c.departures.bursts.records()
	case c.arrivals != nil:
		to.Received = c.arrivals.Records()
	default:
		return
	}
	to.Stamped = &Stamped{len(to.Sent), len(to.Received), len(to.Acks)}
}
