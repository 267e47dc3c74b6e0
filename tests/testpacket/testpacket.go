// Package testpacket identifies our test packets by their UDP payload, for the logs of
// emulated links.
package testpacket

import (
	"oneway.example/exporter/net/wire/loadfmt"
	"oneway.example/exporter/net/wire/stampfmt"
)

// STAMP returns the number of a test packet or of a reflected packet, which begin alike;
// statistics queries are no test packets.
func STAMP(payload []byte) (seq uint32, ok bool) {
	if len(payload) < stampfmt.UnauthenticatedBytes {
		return 0, false
	}
	p, err := stampfmt.ParseSender(payload)
	if err != nil {
		return 0, false
	}
	for rest := payload[stampfmt.UnauthenticatedBytes:]; len(rest) > 0; {
		var v stampfmt.TLV
		if v, rest, err = stampfmt.NextTLV(rest); err != nil {
			return 0, false
		}
		if r, err := stampfmt.ParseReceipt(v.Value); v.Type == stampfmt.TypeReceipt && err == nil && r.StatsQuery {
			return 0, false
		}
	}
	return p.Seq, true
}

// Request returns the number of the test packet of a reflected packet.
func Request(payload []byte) (seq uint32, ok bool) {
	p, err := stampfmt.ParseReflector(payload)
	return p.SenderSeq, err == nil
}

// Load returns the number of a load test's packet and that of its transfer.
func Load(payload []byte) (transfer uint16, seq uint32, ok bool) {
	h, err := loadfmt.Parse(payload)
	return h.Transfer, h.Seq, err == nil && h.Type == loadfmt.Data
}
