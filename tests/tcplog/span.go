package tcplog

import (
	"slices"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/tests/lab"
)

// Span is the time of a connection by the log.
type Span struct {
	// Begin is when the client's first segment, that of the handshake, entered the link.
	Begin instant.Time
	// Payload is when the last segment with payload has left the link, by direction, and Last when the last one of all has;
	// zero: none has.
	Payload, Last [2]instant.Time

	port uint16
}

// Spans returns those of a client's connections, in the order of their begin, by the logs of both directions.
func Spans(forward, reverse []lab.Record) (all []Span) {
	at := func(p uint16) int { return slices.IndexFunc(all, func(s Span) bool { return s.port == p }) }
	for i := range forward {
		if r := &forward[i]; Is(r) && at(port(r)) < 0 {
			all = append(all, Span{Begin: r.Entry, port: port(r)})
		}
	}
	for d, log := range [][]lab.Record{sample.Forward: forward, sample.Reverse: reverse} {
		for i := range log {
			r := &log[i]
			if !Is(r) || r.Outcome != lab.Delivered || at(port(r)) < 0 {
				continue
			}
			s := &all[at(port(r))]
			s.Last[d] = max(s.Last[d], r.Exit.After)
			if payload(r) > 0 {
				s.Payload[d] = max(s.Payload[d], r.Exit.After)
			}
		}
	}
	return all
}
