package record

import (
	"strconv"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
)

// Outcome is what became of a test packet as a round trip.
type Outcome uint8

// The outcomes. A packet that is lost may be recorded once more, as late.
const (
	// Answered: the reply came within the waiting time.
	Answered Outcome = iota
	// Lost: no reply came within the waiting time; there is T1 alone.
	Lost
	// Late: the reply came after the waiting time; the packet was recorded as lost before.
	Late
)

// String is the word of reports.
func (f Outcome) String() string {
	if f > Late {
		return "invalid"
	}
	return [...]string{"answered", "lost", "late"}[f]
}

// Packet is a packet of a light probe whose outcome is known.
type Packet struct {
	// Path and Probe are the metric labels.
	Path, Probe string
	Outcome     Outcome
	// Era counts the steps of both clocks that the prober has seen, and Restarts those of the remote end:
	// delays of two eras have no difference, and a remote end that has restarted may have another clock.
	Era, Restarts uint64
	// Packet has the number, the stamps with their origins, and the clocks' bounds.
	sample.Packet
	// Forward and Reverse are the delays with their bounds, or the reason why they are not
	// defined, as the estimators get them. Of a lost packet both are undefined.
	Forward, Reverse sample.Delay
	// TooLate: by direction, it took longer than the waiting time, for certain, and is lost
	// there (RFC 7680 section 2.4); its delay is in no distribution.
	TooLate [2]bool
}

// Rows are packets of one transfer of a run, recorded together when the transfer has ended.
type Rows struct {
	// Path and Probe are the metric labels; Run is the run's id, the name of its report.
	Path, Probe, Run string
	Direction        sample.Direction
	// Begin is what the times of the rows are counted from.
	Begin instant.Time
	// Every: one row stands for so many packets; 1: all are here.
	Every int
	// Rows are shared by all readers, who must not change them.
	Rows []Row
}

// Row is one packet of a run. Its JSON is an array in the order of RowColumns.
type Row struct {
	Seq     uint32
	Segment uint16
	// Copies that arrived, the first one included.
	Copies  uint16
	IPBytes uint32
	// Sent and Arrived are nanoseconds after the transfer's begin; None: there is no such time.
	Sent, Arrived int64
	// Damage is that of stream.Damage.
	Damage uint8
}

// None is the time of a row that has none; in JSON it is null.
const None = -1 << 63

// RowColumns names the elements of a row's JSON.
func RowColumns() []string {
	return []string{"seq", "segment", "ip_bytes", "sent_ns", "arrived_ns", "copies", "damage"}
}

// MarshalJSON is an array in the order of RowColumns.
func (r Row) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 64), '[')
	for i, v := range [...]int64{int64(r.Seq), int64(r.Segment), int64(r.IPBytes), r.Sent, r.Arrived, int64(r.Copies), int64(r.Damage)} {
		if i > 0 {
			b = append(b, ',')
		}
		if v == None {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendInt(b, v, 10)
		}
	}
	return append(b, ']'), nil
}

// Point is where this host was.
type Point struct {
	// At is when it was there: by the receiver, or if that tells no time that can be, by this
	// host's clock when the receiver's report was read.
	At instant.Time
	// Latitude and Longitude in degrees, WGS 84, north and east positive.
	Latitude, Longitude float64
	// Speed over ground in meters per second; NaN: not known.
	Speed float64
}
