package tcpstamp

import (
	"fmt"
	"time"

	"oneway.example/exporter/instant"
)

// Limits of the records of a flow: samples of the sending end, bursts, and acknowledgments of one.
const (
	MaxSent      = 4096
	MaxBursts    = 32
	MaxBurstAcks = 128
	maxAcks      = MaxBursts * MaxBurstAcks
)

// maxEarly is the longest uncertainty of a stamp of the remote end that is plausible.
const maxEarly = 24 * time.Hour

// CheckSent validates the records of a remote end that sent payload bytes. Their times are that end's own and may be of a
// clock that was set.
func CheckSent(records []Sent, payload int64) error {
	if len(records) > MaxSent {
		return fmt.Errorf("tcpstamp: %d sent samples, want at most %d", len(records), MaxSent)
	}
	before := int64(0)
	for i := range records {
		x := &records[i]
		if err := checkOffset(x.Offset, before, payload); err != nil {
			return err
		}
		before = x.Offset
		if x.Transmissions < 0 || (x.Transmissions == 0) != (x.First == 0) || (x.First == 0) != (x.Last == 0) {
			return fmt.Errorf("tcpstamp: byte %d was sent %d times, first at %v, last at %v", x.Offset, x.Transmissions, x.First, x.Last)
		}
		if err := checkTimes(x.Offset, x.AckedEarly, x.Written, x.Scheduled, x.First, x.Last, x.Acked); err != nil {
			return err
		}
	}
	return nil
}

// CheckReceived validates the records of a remote end that received payload bytes.
func CheckReceived(records []Received, payload int64) error {
	if len(records) > MaxReceived {
		return fmt.Errorf("tcpstamp: %d received samples, want at most %d", len(records), MaxReceived)
	}
	before := int64(0)
	for i := range records {
		x := &records[i]
		if err := checkOffset(x.Offset, before, payload); err != nil {
			return err
		}
		before = x.Offset
		if err := checkTimes(x.Offset, x.Early, x.At, x.NotBefore, x.Read, x.Doubt); err != nil {
			return err
		}
	}
	return nil
}

// CheckAcks validates the acknowledgments that a remote end received, of its bursts in payload bytes.
func CheckAcks(records []Ack, payload int64) error {
	if len(records) > maxAcks {
		return fmt.Errorf("tcpstamp: %d acknowledgments, want at most %d", len(records), maxAcks)
	}
	burst, before := int32(0), int64(0)
	for i := range records {
		x := &records[i]
		if x.Burst < burst || x.Burst >= MaxBursts || x.Offset <= before || x.Offset > payload {
			return fmt.Errorf("tcpstamp: acknowledgment of %d of %d bytes in burst %d follows that of %d in burst %d", x.Offset, payload, x.Burst, before, burst)
		}
		burst, before = x.Burst, x.Offset
		if err := checkTimes(x.Offset, x.Early, x.At); err != nil {
			return err
		}
		if x.At == 0 {
			return fmt.Errorf("tcpstamp: acknowledgment of %d bytes has no time", x.Offset)
		}
	}
	return nil
}

// Check validates the handshake of a remote end.
func (h *Handshake) Check() error {
	if h.MSS < 0 || h.MSS > 1<<16 || h.PeerScale < -1 || h.OwnScale < -1 {
		return fmt.Errorf("tcpstamp: handshake with MSS %d, window scales %d and %d", h.MSS, h.PeerScale, h.OwnScale)
	}
	return nil
}

func checkOffset(offset, before, payload int64) error {
	if offset <= before || offset%Grid != 0 || offset > payload {
		return fmt.Errorf("tcpstamp: sampled byte %d follows %d of %d; want ascending multiples of %d", offset, before, payload, Grid)
	}
	return nil
}

func checkTimes(offset int64, early time.Duration, times ...instant.Time) error {
	if early < 0 || early > maxEarly {
		return fmt.Errorf("tcpstamp: byte %d is up to %v early, want 0 to %v", offset, early, maxEarly)
	}
	for _, t := range times {
		if t < 0 {
			return fmt.Errorf("tcpstamp: byte %d has the time %v before 1970", offset, t)
		}
	}
	return nil
}
