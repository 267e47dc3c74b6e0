package calibration

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/atomicfile"
	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/textfile"
)

// Table has one record per interface. A nil table, and the zero value, has none. It is safe for concurrent use as long as
// Put is not called.
type Table struct {
	records []Record // sorted by interface
	here    System
}

// maxBytes limits the size of a calibration file.
const maxBytes = 4 << 20

// Load reads a calibration file. Errors have the name of the file. Trust is checked against the system that loads the
// file, see For.
func Load(path string) (*Table, error) {
	content, err := textfile.Read(path, maxBytes, func(string, fs.FileInfo) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("calibration: %w", err)
	}
	records, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("calibration: %s: %w", path, err)
	}
	return &Table{records: records, here: ThisSystem()}, nil
}

// LoadOrNew is Load; a missing file is an empty table.
func LoadOrNew(path string) (*Table, error) {
	t, err := Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Table{here: ThisSystem()}, nil
	}
	return t, err
}

// For returns the errors of an interface, false without a calibration. A trusted calibration of another host, kernel or
// driver is returned as one without trust: it may widen a bound, and never narrows it.
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

// Host describes the timestamps of this host on an interface: its calibration, if any, and the interrupt moderation of its
// driver. "" is an unknown interface. It may be called on a nil table.
func (t *Table) Host(iface string) bound.Host {
	h := bound.Host{Conversion: bound.CardConversion, RunsOneway: true}
	if iface != "" {
		h.Calibration, _ = t.For(iface)
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

// Records lists the records, sorted by interface.
func (t *Table) Records() []Record {
	if t == nil {
		return nil
	}
	return slices.Clone(t.records)
}

// Warnings lists the records of another system than the one that loaded them. They are still used, see For.
func (t *Table) Warnings() (all []string) {
	for _, r := range t.Records() {
		if what := t.here.differs(&r); what != "" {
			all = append(all, fmt.Sprintf("interface %s: %s; calibrate again", r.Interface, what))
		}
	}
	return all
}

// Fingerprint is equal for tables with equal corrections; "" for an empty one.
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

// Export publishes metric.TimestampCalibration of all interfaces until the returned function is called: kind random is the
// largest error if that is trusted.
func (t *Table) Export(sink metric.Sink) (stop func()) {
	s := metric.NewScope(sink)
	s.Update(func() {
		for _, r := range t.Records() {
			e, _ := t.For(r.Interface)
			random := e.Random
			if e.Trusted {
				random = e.Largest
			}
			s.Set(metric.TimestampCalibration, e.Systematic.Seconds(), r.Interface, "systematic")
			s.Set(metric.TimestampCalibration, random.Seconds(), r.Interface, "random")
		}
	})
	return s.Close
}

// Put adds a record and replaces an older one of the same interface.
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

// Save replaces the file atomically: a reader gets the old or the new content, and after an error the file is unchanged.
func (t *Table) Save(path string) error {
	content, err := format(t.Records())
	if err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a symbolic link is kept
	}
	// The agent, which has another user, must be able to read it.
	if err := atomicfile.Replace(path, content, 0o644); err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	return nil
}

// System identifies the system of a calibration. The zero value is unknown and differs from all others.
type System struct {
	// Host and Kernel are the output of uname -n and -r.
	Host, Kernel string
	// Driver returns the driver of an interface, "" if there is no such interface or its driver is unknown.
	Driver func(iface string) string
}

// ThisSystem is the system that this program runs on.
func ThisSystem() System {
	host, _ := os.Hostname() // an unknown host differs from all others
	var u unix.Utsname
	_ = unix.Uname(&u)
	return System{Host: host, Kernel: unix.ByteSliceToString(u.Release[:]), Driver: DriverOf}
}

// differs states how r differs from this system; "" if it does not.
func (s System) differs(r *Record) string {
	switch {
	case r.Host != s.Host:
		return fmt.Sprintf("calibrated on host %q, this is %q", r.Host, s.Host)
	case r.Kernel != s.Kernel:
		return fmt.Sprintf("calibrated with kernel %q, this is %q", r.Kernel, s.Kernel)
	case s.Driver == nil || r.Driver != s.Driver(r.Interface):
		return fmt.Sprintf("calibrated with driver %q, the driver is another one now", r.Driver)
	}
	return ""
}
