package udptraffic

import (
	"fmt"

	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/load/loadtest"
)

// leastTried is the number of packets from which on a transfer without arrivals is no accident.
const leastTried = 3

// Oversized returns an error if no packet of the transfer passed the path because of its size, or perhaps because of it, or none from some
// time on: then the transfer has no result, and the path need not be dead. key is the option with the size that one packet has more headers
// than, such as packet_bytes with 0; a Plan with several sizes is judged by the largest packet. Nil: its size kept none back.
func (t *Transfer) Oversized(key string, headers int) error {
	size, damaged := 0, 0
	for i := range t.Packets {
		size = max(size, int(t.Packets[i].IPBytes))
	}
	for _, n := range t.Counts.Damaged {
		damaged += n
	}
	c, mtu := &t.Counts, t.Sent.PathMTU
	choose := fmt.Sprintf("choose a smaller %s", key)
	if mtu > headers {
		choose = fmt.Sprintf("choose a %s of at most %d", key, mtu-headers)
	}
	failure := func(format string, values ...any) error {
		return &loadtest.Failure{Reason: runreason.TooLarge, Err: fmt.Errorf("%s: "+format+": "+choose, append([]any{t.Direction}, values...)...)}
	}
	none := c.Arrived+damaged+t.HostDropped() == 0
	switch {
	case mtu > 0 && size > mtu && (none || c.NotTried > 0):
		return failure("the path's MTU is %d, and its packets have %d bytes", mtu, size)
	case t.Sent.TooLarge > 0:
		return failure("%d of %d packets of %d bytes did not leave the sender, as they exceed the MTU of its interface", t.Sent.TooLarge, c.Planned, size)
	case none && c.Sent >= leastTried:
		return failure("cannot tell: no packet of %d bytes arrived, of %d, though the control connection works; the path's MTU may be smaller, or a "+
			"firewall drops them", size, c.Sent)
	}
	return nil
}
