package vmlab

import (
	"time"

	"oneway.example/tests/vmlab/record"
	"oneway.example/tests/vmlab/truth"
)

// inTurn performs actions one after the other until one fails.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// pause is an action that changes nothing.
func pause(d time.Duration) func() error {
	return func() error { time.Sleep(d); return nil }
}

// pauses is a scenario without changes.
func pauses(d time.Duration) func(*Run) error {
	return func(*Run) error { return pause(d)() }
}

// forbid is a pause in which no delay may be valid.
func (r *Run) forbid(d time.Duration) func() error {
	return func() error {
		from := truth.Counter()
		time.Sleep(d)
		r.Forbidden = append(r.Forbidden, Span{from, truth.Counter()})
		return nil
	}
}

// Rate makes the clock fast by so many parts per billion, like a crystal.
func (h *Host) Rate(ppb int64) error {
	_, err := h.Do(record.Command{Do: record.Rate, By: ppb})
	return err
}

// Set sets the clock wrong by so much; positive: fast.
func (h *Host) Set(wrong time.Duration) error {
	_, err := h.Do(record.Command{Do: record.Set, By: int64(wrong)})
	return err
}
