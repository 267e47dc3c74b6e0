package tcpstamp

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/instant"
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
	return checkSamples("sent", records, MaxSent, payload, func(x *Sent) (int64, error) {
		if x.Transmissions < 0 || (x.Transmissions == 0) != (x.First == 0) || (x.First == 0) != (x.Last == 0) {
			return x.Offset, fmt.Errorf("tcpstamp: byte %d was sent %d times, first at %v, last at %v", x.Offset, x.Transmissions, x.First, x.Last)
		}
		return x.Offset, checkTimes(x.Offset, x.AckedEarly, x.Written, x.Scheduled, x.First, x.Last, x.Acked)
	})
}

// CheckReceived validates the records of a remote end that received payload bytes.
func CheckReceived(records []Received, payload int64) error {
	return checkSamples("received", records, MaxReceived, payload, func(x *Received) (int64, error) {
		return x.Offset, checkTimes(x.Offset, x.Early, x.At, x.NotBefore, x.Read, x.Doubt)
	})
}

// checkSamples validates the number and the order of samples, and each by one, which returns its offset.
func checkSamples[T any](what string, records []T, most int, payload int64, one func(*T) (offset int64, err error)) error {
	if len(records) > most {
		return fmt.Errorf("tcpstamp: %d %s samples, want at most %d", len(records), what, most)
	}
	before := int64(0)
	for i := range records {
		offset, err := one(&records[i])
		if offset <= before || offset%Grid != 0 || offset > payload {
			return fmt.Errorf("tcpstamp: sampled byte %d follows %d of %d; want ascending multiples of %d", offset, before, payload, Grid)
		}
		if err != nil {
			return err
		}
		before = offset
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
