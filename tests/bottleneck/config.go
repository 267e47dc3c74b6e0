package bottleneck

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Discipline is the rule of the queue.
type Discipline uint8

// The disciplines.
const (
	// TailDrop drops packets that enter while the queue is full.
	TailDrop Discipline = iota
	// HeadDrop drops the oldest packets instead.
	HeadDrop
	// CoDel is RFC 8289.
	CoDel
	// FQCoDel is RFC 8290.
	FQCoDel
	// RED is random early detection (Floyd and Jacobson 1993), gentle, in bytes, from a quarter of
	// the queue to three quarters.
	RED
)

// disciplines are the names, in the order of the constants.
func disciplines() []string {
	return []string{"tail_drop", "head_drop", "codel", "fq_codel", "red"}
}

// String is the discipline's name.
func (d Discipline) String() string {
	if int(d) < len(disciplines()) {
		return disciplines()[d]
	}
	return "invalid"
}

// ParseDiscipline parses a name.
func ParseDiscipline(text string) (Discipline, error) {
	i := slices.Index(disciplines(), text)
	if i < 0 {
		return 0, fmt.Errorf("unknown discipline %q, want one of %s", text, strings.Join(disciplines(), ", "))
	}
	return Discipline(i), nil
}

// ParseTrace parses a trace in mahimahi's format: each line is a time in milliseconds since the start, not decreasing,
// at which Opportunity bytes may leave.
func ParseTrace(b []byte) (all []uint32, err error) {
	n := 0
	for line := range bytes.Lines(b) {
		n++
		v, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("line %d of the trace: %q is not a number of milliseconds", n, bytes.TrimSpace(line))
		}
		all = append(all, uint32(v))
	}
	if n == 0 {
		return nil, errors.New("the trace is empty, want a number of milliseconds in each line")
	}
	return all, nil
}

// Config of a bottleneck. With neither Rate nor Trace packets do not wait.
type Config struct {
	// Rate in bit/s.
	Rate int64
	// Trace are the milliseconds at which Opportunity bytes may leave, ascending; the trace repeats (mahimahi's
	// format).
	Trace []uint32
	// Slot: packets leave only at its multiples, Rate x Slot / 8 bytes at each.
	Slot time.Duration
	// Bucket is how many bytes leave at Peak, or at once if Peak is 0, after the link was idle (a token bucket filled
	// at Rate).
	Bucket int
	Peak   int64
	// Police drops packets without tokens instead of queueing them.
	Police bool

	Discipline Discipline
	// Queue is the limit in bytes, QueuePackets in packets, QueueTime how long a packet waits before it is discarded.
	// Zero: no such limit.
	Queue        int
	QueuePackets int
	QueueTime    time.Duration

	// Others is the rate of cross traffic in bit/s, in packets of 1400 bytes with random gaps.
	Others int64
	// Second is a bottleneck after this one, Between the delay between them.
	Second  *Config
	Between time.Duration
}

// Opportunity is how many bytes leave in each millisecond of a trace, as in mahimahi.
const Opportunity = 1504

// Check returns an error if the configuration is invalid.
func (c Config) Check() error {
	switch {
	case c.Rate < 0 || c.Peak < 0 || c.Slot < 0 || c.Bucket < 0 || c.Queue < 0 || c.QueuePackets < 0 || c.QueueTime < 0:
		return fmt.Errorf("bottleneck: %+v: a negative value", c)
	case c.Rate > 0 && len(c.Trace) > 0:
		return fmt.Errorf("bottleneck: rate %d bit/s and a trace of %d lines, want one of both", c.Rate, len(c.Trace))
	case c.Rate == 0 && (c.Slot > 0 || c.Bucket > 0 || c.Police):
		return fmt.Errorf("bottleneck: slots, and a bucket, need a rate")
	case len(c.Trace) > 0 && c.Trace[len(c.Trace)-1] == 0:
		return fmt.Errorf("bottleneck: a trace ends at 0 ms, want one that takes time")
	case c.Police && c.Bucket == 0:
		return fmt.Errorf("bottleneck: a policer without a bucket passes nothing")
	}
	for i := 1; i < len(c.Trace); i++ {
		if c.Trace[i] < c.Trace[i-1] {
			return fmt.Errorf("bottleneck: line %d of a trace is %d ms, after %d ms", i+1, c.Trace[i], c.Trace[i-1])
		}
	}
	if c.Second != nil {
		if c.Second.Second != nil || c.Second.Others > 0 {
			return fmt.Errorf("bottleneck: want no more than two in series, and others' packets at the first")
		}
		return c.Second.Check()
	}
	return nil
}
