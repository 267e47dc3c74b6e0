package ledger

import (
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
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
	// Unnumbered: its number and its counts are ignored, see unshare.
	Unnumbered bool
	// Port is the source port at which it arrived.
	Port Port
	// AsStated: its timestamps are read in the format that it names, since an earlier reply was in none, see InNoFormat.
	AsStated bool
}

// Filled reports whether our reflector wrote its counts.
func (r *Reply) Filled() bool { return r.HasReceipt && r.Receipt.Filled }

// counted reports whether our reflector wrote its counts, and they are not ignored.
func (r *Reply) counted() bool { return r.Filled() && !r.Unnumbered }

// Format is the format of the reply's timestamps: the one that its own Error Estimate names (stated; RFC 8762 section 4.2.1), or the other
// one if only in that the timestamps are close to local. tai is TAI-UTC, for the format PTP.
func (r *Reply) Format(tai time.Duration, local instant.Time) (f timefmt.Format, stated bool) {
	f = r.Packet.Error.Format()
	other := timefmt.PTP - f
	if !r.AsStated && !r.close(f, tai, local) && r.close(other, tai, local) {
		return other, false
	}
	return f, true
}

// InNoFormat reports whether the timestamps of the reply are close to local in neither format. Others of the same reflector may be by
// chance, such as times since 1970 with an NTP fraction, when that is a number of nanoseconds below one second.
func (r *Reply) InNoFormat(tai time.Duration, local instant.Time) bool {
	return !r.close(timefmt.NTP, tai, local) && !r.close(timefmt.PTP, tai, local)
}

// close reports whether all timestamps of the reply exist in format f and are within bound.Apart of local, except absent ones. In the other
// format a timestamp is at least 66 years away, or has too many nanoseconds.
func (r *Reply) close(f timefmt.Format, tai time.Duration, local instant.Time) bool {
	for _, raw := range [...]uint64{r.Packet.T2, r.Packet.T3} {
		if at := f.Decode(raw, tai, local); raw != 0 && (at.IsZero() || at.Sub(local).Abs() > bound.Apart) {
			return false
		}
	}
	return true
}

// Decode reads a timestamp of the remote end in the reply's Format.
func (r *Reply) Decode(raw uint64, tai time.Duration, local instant.Time) instant.Time {
	f, _ := r.Format(tai, local)
	return f.Decode(raw, tai, local)
}
