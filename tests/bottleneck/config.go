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
	// TailDrop drops what comes while the queue is full.
	TailDrop Discipline = iota
	// HeadDrop drops the oldest packets for it.
	HeadDrop
	// CoDel is RFC 8289.
	CoDel
	// FQCoDel is RFC 8290.
	FQCoDel
	// RED is random early detection (Floyd and Jacobson 1993), gentle, in bytes, from a quarter of
	// the queue to three quarters.
	RED
)

// disciplines are their names, in order.
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

// ParseDiscipline reads a name.
func ParseDiscipline(text string) (Discipline, error) {
	i := slices.Index(disciplines(), text)
	if i < 0 {
		return 0, fmt.Errorf("%q is no discipline, want one of %s", text, strings.Join(disciplines(), ", "))
	}
	return Discipline(i), nil
}

// ParseTrace reads a recorded link in mahimahi's format: a line is a millisecond, counted from the
// begin and never less than in the line before, in which Opportunity bytes may leave.
func ParseTrace(b []byte) (all []uint32, err error) {
	n := 0
	for line := range bytes.Lines(b) {
		n++
		v, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("line %d of the trace: %q is no millisecond", n, bytes.TrimSpace(line))
		}
		all = append(all, uint32(v))
	}
	if n == 0 {
		return nil, errors.New("the trace is empty, want a millisecond in each line")
	}
	return all, nil
}

// Config of a bottleneck. With neither Rate nor Trace nothing waits.
type Config struct {
	// Rate in bits a second.
	Rate int64
	// Trace are milliseconds in which Opportunity bytes may leave, ascending, and again from the
	// begin after the last (mahimahi's format).
	Trace []uint32
	// Slot: packets leave at its multiples only, Rate x Slot / 8 bytes at each.
	Slot time.Duration
	// Bucket: so many bytes leave at Peak, or at once if Peak is 0, after the link stood idle
	// (a token bucket that is filled with Rate).
	Bucket int
	Peak   int64
	// Police drops what there are no tokens for, instead of letting it wait.
	Police bool

	Discipline Discipline
	// Queue is the limit in bytes, QueuePackets in packets, QueueTime how long a packet waits
	// before it is discarded instead of transmitted. Zero: no such limit.
	Queue        int
	QueuePackets int
	QueueTime    time.Duration

	// Others send so many bits a second through it, in packets of 1400 bytes at random distances.
	Others int64
	// Second is a bottleneck behind this one, Between the delay from one to the other.
	Second  *Config
	Between time.Duration
}

// Opportunity is how many bytes of a trace leave in a millisecond that it names, as in mahimahi.
const Opportunity = 1504

// Check says what is wrong with a configuration.
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
