package stamp

import (
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/wire/stampfmt"
)

// reply is one parsed reply, or the reply to a statistics query.
type reply struct {
	packet   stampfmt.ReflectorPacket
	followUp stampfmt.FollowUp
	receipt  stampfmt.Receipt
	// hasFollow and hasReceipt: the reply contains that TLV.
	hasFollow  bool
	hasReceipt bool
}

// filled reports whether our reflector wrote its counts.
func (r *reply) filled() bool { return r.hasReceipt && r.receipt.Filled }

// decode reads a timestamp of the remote end, in the format that the reply's own Error Estimate names (RFC 8762
// section 4.2.1). local is a time close to it. tai is TAI-UTC, for the format PTP.
func (r *reply) decode(raw uint64, tai time.Duration, local instant.Time) instant.Time {
	return r.packet.Error.Format().Decode(raw, tai, local)
}
