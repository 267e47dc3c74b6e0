package ledger

import (
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/wire/stampfmt"
)

// Reply is one parsed reply, or the reply to a statistics query.
type Reply struct {
	// Packet is the base packet, FollowUp and Receipt are TLVs.
	Packet   stampfmt.ReflectorPacket
	FollowUp stampfmt.FollowUp
	Receipt  stampfmt.Receipt
	// HasFollow and HasReceipt: the reply contains that TLV.
	HasFollow  bool
	HasReceipt bool
	// Returned: it has all TLVs of its test packet, intact. Otherwise the bytes after the base packet may be padding.
	Returned bool
}

// Filled reports whether our reflector wrote its counts.
func (r *Reply) Filled() bool { return r.HasReceipt && r.Receipt.Filled }

// Decode reads a timestamp of the remote end, in the format that the reply's own Error Estimate names (RFC 8762
// section 4.2.1). local is a time close to it. tai is TAI-UTC, for the format PTP.
func (r *Reply) Decode(raw uint64, tai time.Duration, local instant.Time) instant.Time {
	return r.Packet.Error.Format().Decode(raw, tai, local)
}
