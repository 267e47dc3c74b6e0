package calibration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/sample"
)

// version is that of the file format: it changes when old readers would go wrong.
const version = 1

// fileJSON is a calibration file. Every key is needed, and no other is known: a
// number that is missing would read as an error of zero.
type fileJSON struct {
	Version    int          `json:"version"`
	Interfaces []recordJSON `json:"interfaces"`
}

type recordJSON struct {
	Interface   string        `json:"interface"`
	Driver      string        `json:"driver"`
	Host        string        `json:"host"`
	Kernel      string        `json:"kernel"`
	Date        time.Time     `json:"date"`
	Setup       string        `json:"setup"`
	At          string        `json:"at"`
	SharedClock bool          `json:"shared_clock"`
	Origin      string        `json:"origin"`
	PacketBytes int           `json:"packet_bytes"`
	Interval    int64         `json:"interval_ns"`
	TrueDelay   int64         `json:"true_delay_ns"`
	Forward     directionJSON `json:"forward"`
	Reverse     directionJSON `json:"reverse"`
	Trusted     bool          `json:"trusted"`
}

type directionJSON struct {
	Count      int   `json:"count"`
	Systematic int64 `json:"systematic_ns"`
	Random     int64 `json:"random_ns"`
	Largest    int64 `json:"largest_ns"`
}

func format(records []Record) ([]byte, error) {
	file := fileJSON{Version: version, Interfaces: []recordJSON{}}
	for i := range records {
		file.Interfaces = append(file.Interfaces, toJSON(&records[i]))
	}
	b, err := json.MarshalIndent(file, "", "  ")
	return append(b, '\n'), err
}

// MarshalJSON writes r as it stands in a calibration file.
func (r Record) MarshalJSON() ([]byte, error) { return json.Marshal(toJSON(&r)) }

func toJSON(r *Record) recordJSON {
	direction := func(d Direction) directionJSON {
		return directionJSON{d.Count, d.Systematic.Nanoseconds(), d.Random.Nanoseconds(), d.Largest.Nanoseconds()}
	}
	return recordJSON{
		Interface: r.Interface, Driver: r.Driver, Host: r.Host, Kernel: r.Kernel, Date: r.Date.UTC(),
		Setup: r.Setup, At: r.At, SharedClock: r.SharedClock, Origin: r.Origin.String(), PacketBytes: r.PacketBytes,
		Interval: r.Interval.Nanoseconds(), TrueDelay: r.TrueDelay.Nanoseconds(),
		Forward: direction(r.Forward), Reverse: direction(r.Reverse), Trusted: r.Trusted,
	}
}

func (j *recordJSON) record() (Record, error) {
	direction := func(d directionJSON) Direction {
		return Direction{d.Count, time.Duration(d.Systematic), time.Duration(d.Random), time.Duration(d.Largest)}
	}
	r := Record{
		Interface: j.Interface, Driver: j.Driver, Host: j.Host, Kernel: j.Kernel, Date: j.Date,
		Setup: j.Setup, At: j.At, SharedClock: j.SharedClock, PacketBytes: j.PacketBytes,
		Interval: time.Duration(j.Interval), TrueDelay: time.Duration(j.TrueDelay),
		Forward: direction(j.Forward), Reverse: direction(j.Reverse), Trusted: j.Trusted,
	}
	i := slices.IndexFunc(sample.Origins(), func(o sample.Origin) bool { return o.String() == j.Origin })
	if i < 0 {
		return r, fmt.Errorf("origin is %q; it must be %q or %q", j.Origin, sample.Kernel, sample.Hardware)
	}
	r.Origin = sample.Origins()[i]
	return r, r.Check()
}

// parse reads a file's content, strictly. The records come back by interface.
func parse(content []byte) ([]Record, error) {
	if err := checkVersion(content); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.DisallowUnknownFields()
	var file fileJSON
	if err := dec.Decode(&file); err != nil {
		return nil, err
	}
	if err := checkKeys(content); err != nil {
		return nil, err
	}
	t := Table{}
	for i := range file.Interfaces {
		r, err := file.Interfaces[i].record()
		if err != nil {
			return nil, fmt.Errorf("interface %q: %w", file.Interfaces[i].Interface, err)
		}
		if _, twice := t.find(r.Interface); twice {
			return nil, fmt.Errorf("interface %q stands there twice", r.Interface)
		}
		if err := t.Put(r); err != nil {
			return nil, err
		}
	}
	return t.records, nil
}

// checkVersion comes first, so that a newer file is called that and not unknown keys.
// It also finds what follows the end of the table.
func checkVersion(content []byte) error {
	var v struct {
		Version *int `json:"version"`
	}
	err := json.Unmarshal(content, &v)
	switch {
	case err != nil:
		return fmt.Errorf("not a calibration file: %w", err)
	case v.Version == nil:
		return errors.New("not a calibration file: it has no version")
	case *v.Version != version:
		return fmt.Errorf("version is %d; this program knows %d: calibrate again", *v.Version, version)
	}
	return nil
}
