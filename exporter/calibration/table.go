package calibration

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/atomicfile"
	"oneway.example/exporter/bound"
	"oneway.example/exporter/metric"
)

// Table holds one record an interface. A nil table, and the zero value, holds none.
// It is safe for concurrent use as long as nobody calls Put.
type Table struct {
	records []Record // by interface
	here    System
}

// maxBytes bounds a calibration file; a larger one is surely none.
const maxBytes = 4 << 20

// Load reads a calibration file. The error names the file and what is wrong with it.
// What it says about trust is held against the system that reads it: see For.
func Load(path string) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("calibration: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("calibration: %w", err)
	}
	if len(content) > maxBytes {
		return nil, fmt.Errorf("calibration: %s: larger than %d bytes: not a calibration file", path, maxBytes)
	}
	records, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("calibration: %s: %w", path, err)
	}
	return &Table{records: records, here: ThisSystem()}, nil
}

// LoadOrNew is Load, but for a file that does not exist yet: that is an empty table.
func LoadOrNew(path string) (*Table, error) {
	t, err := Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Table{here: ThisSystem()}, nil
	}
	return t, err
}

// For gives the errors of an interface, false if it was not calibrated. A trusted
// calibration that was taken on another host or kernel, or with another driver, is
// given as one that is not: it may widen a bound, and never narrows it.
func (t *Table) For(iface string) (bound.Calibration, bool) {
	i, found := t.find(iface)
	if !found {
		return bound.Calibration{}, false
	}
	e := t.records[i].Errors()
	if e.Trusted && t.here.differs(&t.records[i]) != "" {
		e.Trusted, e.Largest = false, 0
	}
	return e, true
}

// Host is what is known of this host's stamps on an interface: its calibration, if there is
// one, and for how long its driver holds interrupts back. "" is an interface of which
// nothing is known. It may be called on a nil table.
func (t *Table) Host(iface string) bound.Host {
	h := bound.Host{Conversion: bound.CardConversion, Ours: true}
	if iface != "" {
		h.Calibrated, _ = t.For(iface)
		h.Moderation = ModerationOf(iface)
	}
	return h
}

func (t *Table) find(iface string) (int, bool) {
	if t == nil {
		return 0, false
	}
	return slices.BinarySearchFunc(t.records, iface, func(r Record, name string) int { return cmp.Compare(r.Interface, name) })
}

// Records lists what the table holds, by interface.
func (t *Table) Records() []Record {
	if t == nil {
		return nil
	}
	return slices.Clone(t.records)
}

// Warnings says, a line each, which records were taken elsewhere than where they
// were loaded. None is a reason not to use them, see For.
func (t *Table) Warnings() (all []string) {
	for _, r := range t.Records() {
		if what := t.here.differs(&r); what != "" {
			all = append(all, fmt.Sprintf("interface %s: %s; calibrate again", r.Interface, what))
		}
	}
	return all
}

// Fingerprint is the same for tables that correct alike; "" for an empty one.
func (t *Table) Fingerprint() string {
	if t == nil || len(t.records) == 0 {
		return ""
	}
	h := fnv.New64a()
	for _, r := range t.records {
		e, _ := t.For(r.Interface)
		fmt.Fprintf(h, "%q %v;", r.Interface, e)
	}
	return strconv.FormatUint(h.Sum64(), 16)
}

// Export publishes metric.StampCalibration of all interfaces until the returned
// function is called: kind random is the largest error where that is trusted.
func (t *Table) Export(sink metric.Sink) (stop func()) {
	s := metric.NewScope(sink)
	s.Update(func() {
		for _, r := range t.Records() {
			e, _ := t.For(r.Interface)
			random := e.Random
			if e.Trusted {
				random = e.Largest
			}
			s.Set(metric.StampCalibration, e.Systematic.Seconds(), r.Interface, "systematic")
			s.Set(metric.StampCalibration, random.Seconds(), r.Interface, "random")
		}
	})
	return s.Close
}

// Put adds a record, in place of an older one of the same interface.
func (t *Table) Put(r Record) error {
	if err := t.put(r); err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	return nil
}

func (t *Table) put(r Record) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("interface %q: %w", r.Interface, err)
	}
	r.Date = r.Date.UTC()
	from, found := t.find(r.Interface)
	to := from
	if found {
		to++
	}
	t.records = slices.Replace(t.records, from, to, r)
	return nil
}

// Save writes the table to a file: whole or, on an error, not at all, whatever else
// happens meanwhile. A reader sees the old file or the new one.
func (t *Table) Save(path string) error {
	content, err := format(t.Records())
	if err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link stays a link
	}
	// The agent, another user, must be able to read it.
	if err := atomicfile.Replace(path, content, 0o644); err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	return nil
}

// System is what a calibration is bound to. The zero value is unknown and differs
// from everything.
type System struct {
	// Host and Kernel are those of uname -n and -r.
	Host, Kernel string
	// Driver names the driver of an interface, "" if there is no such interface or it
	// does not say.
	Driver func(iface string) string
}

// ThisSystem is the one this program runs on.
func ThisSystem() System {
	host, _ := os.Hostname() // unknown differs from everything
	var u unix.Utsname
	_ = unix.Uname(&u)
	return System{Host: host, Kernel: unix.ByteSliceToString(u.Release[:]), Driver: DriverOf}
}

// differs says in what r is not of this system, "" if it is.
func (s System) differs(r *Record) string {
	switch {
	case r.Host != s.Host:
		return fmt.Sprintf("calibrated on host %q, this is %q", r.Host, s.Host)
	case r.Kernel != s.Kernel:
		return fmt.Sprintf("calibrated with kernel %q, this is %q", r.Kernel, s.Kernel)
	case s.Driver == nil || r.Driver != s.Driver(r.Interface):
		return fmt.Sprintf("calibrated with driver %q, which is another one now", r.Driver)
	}
	return ""
}
