package record

import (
	"strconv"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// Outcome is the result of a test packet as a round trip.
type Outcome uint8

// The outcomes. A lost packet may be recorded again as late.
const (
	// Received: the reply arrived within the loss timeout.
	Received Outcome = iota
	// Lost: no reply arrived within the loss timeout; only T1 is set.
	Lost
	// Late: the reply arrived after the loss timeout; the packet was recorded as lost before.
	Late
)

// String is the name used in reports.
func (f Outcome) String() string {
	if f > Late {
		return "invalid"
	}
	return [...]string{"received", "lost", "late"}[f]
}

// Packet is a packet of a light probe whose outcome is known.
type Packet struct {
	// Path and Probe are the metric labels.
	Path, Probe string
	Outcome     Outcome
	// Era counts the steps of both clocks that the prober detected, and Restarts those of the remote end: delays of
	// different eras have no difference, and a restarted remote end may have another clock.
	Era, Restarts uint64
	// Packet has the number, the timestamps with their origins, and the clocks' bounds.
	sample.Packet
	// Forward and Reverse are the delays with their bounds, or the reason why they are undefined, as the estimators
	// receive them. Both are undefined for a lost packet.
	Forward, Reverse sample.Delay
	// TooLate, by direction: the delay certainly exceeded the loss timeout, and the packet is lost there (RFC 7680
	// section 2.4); its delay is in no distribution.
	TooLate [2]bool
}

// Rows are packets of one transfer of a run, recorded together when the transfer has ended.
type Rows struct {
	// Path and Probe are the metric labels; Run is the run's id, the name of its report.
	Path, Probe, Run string
	Direction        sample.Direction
	// Begin is the reference of the rows' times.
	Begin instant.Time
	// Every: one row represents so many packets; 1: all are present.
	Every int
	// Bound is the largest error bound of the rows' delays, or the reason why they have none.
	Bound sample.Bound
	// Rows are shared by all readers, which must not change them.
	Rows []Row
}

// Row is one packet of a run. Its JSON is an array in the order of RowColumns.
type Row struct {
	Seq     uint32
	Segment uint16
	// Copies is the number of copies that arrived, the first one included.
	Copies  uint16
	IPBytes uint32
	// Sent and Arrived are nanoseconds after the transfer's begin; NoTime: undefined.
	Sent, Arrived int64
	// Damage is the value of stream.Damage.
	Damage uint8
}

// NoTime is an undefined time of a row; in JSON it is null.
const NoTime = -1 << 63

// RowColumns names the elements of a row's JSON.
func RowColumns() []string {
	return []string{"seq", "segment", "ip_bytes", "sent_ns", "arrived_ns", "copies", "corruption"}
}

// MarshalJSON is an array in the order of RowColumns.
func (r Row) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 64), '[')
	for i, v := range [...]int64{int64(r.Seq), int64(r.Segment), int64(r.IPBytes), r.Sent, r.Arrived, int64(r.Copies), int64(r.Damage)} {
		if i > 0 {
			b = append(b, ',')
		}
		if v == NoTime {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendInt(b, v, 10)
		}
	}
	return append(b, ']'), nil
}
