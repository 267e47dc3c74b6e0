package tcplog

import (
	"slices"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
)

// Span is the time of a connection by the log.
type Span struct {
	// Begin is when the client's first segment, that of the handshake, entered the link.
	Begin instant.Time
	// Payload is when the last segment with new payload has left the link, by direction, and Last when the last one of all has;
	// zero: none has. A busy machine acknowledges late, and payload that has arrived is sent again.
	Payload, Last [2]instant.Time

	port uint16
	open bool // the client has sent more than SYNs
}

// Spans returns those of a client's connections, in the order of their begin, by the logs of both directions. A SYN begins
// another connection of a port that the client has used before.
func Spans(forward, reverse []lab.Record) (all []Span) {
	of := func(r *lab.Record) *Span {
		for i := range slices.Backward(all) {
			if all[i].port == port(r) && all[i].Begin <= r.Entry {
				return &all[i]
			}
		}
		return nil
	}
	for i := range forward {
		r := &forward[i]
		if !Is(r) {
			continue
		}
		if last := of(r); last == nil || last.open && isSYN(r) {
			all = append(all, Span{Begin: r.Entry, port: port(r)})
		} else {
			last.open = last.open || !isSYN(r)
		}
	}
	type delivered struct {
		span      *Span
		direction int
		key       uint64
	}
	before := map[delivered]bool{}
	for d, log := range [][]lab.Record{sample.Forward: forward, sample.Reverse: reverse} {
		for i := range log {
			r := &log[i]
			if !Is(r) || r.Outcome != lab.Delivered {
				continue
			}
			s := of(r)
			if s == nil {
				continue
			}
			s.Last[d] = max(s.Last[d], r.Exit.After)
			if one := (delivered{s, d, r.Key}); payload(r) > 0 && !before[one] {
				before[one] = true
				s.Payload[d] = max(s.Payload[d], r.Exit.After)
			}
		}
	}
	return all
}

// isSYN reports whether a client's segment is a SYN: it acknowledges nothing.
func isSYN(r *lab.Record) bool { return payload(r) == 0 && uint32(r.Key) == 0 }
