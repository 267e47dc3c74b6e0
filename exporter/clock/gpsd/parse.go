package gpsd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"oneway.example/exporter/instant"
)

// The reports that are read, of gpsd_json(5). An unknown class is parsed to nil.
type (
	// version is gpsd's banner.
	version struct {
		Release string `json:"release"`
		Major   int    `json:"proto_major"`
	}
	// device is one device of gpsd's pool.
	device struct {
		Path string `json:"path"`
		// Activated is a date, 0 in the notice that the device is gone, and missing
		// while it is closed.
		Activated json.RawMessage `json:"activated"`
	}
	// devices is the whole pool, as the answer to WATCH has it.
	devices struct {
		Devices *[]device `json:"devices"`
	}
	// watching is gpsd's echo of WATCH.
	watching struct{}
	// complaint is an ERROR.
	complaint struct {
		Message string `json:"message"`
	}
	// position is a TPV.
	position struct {
		Device string `json:"device"`
		Mode   *int   `json:"mode"`
	}
	// sky is a SKY. gpsd 3.23 and later send it without satellites, too, to tell of
	// the dilution of precision alone; 3.20 and earlier without nSat and uSat.
	sky struct {
		Device     string       `json:"device"`
		Seen       *int         `json:"nSat"`
		Used       *int         `json:"uSat"`
		Satellites *[]satellite `json:"satellites"`
	}
	satellite struct {
		Used bool `json:"used"`
	}
	// moment is a PPS or TOFF: what the receiver and what the system's clock held
	// the time to be at one event.
	moment struct {
		Device    string `json:"device"`
		RealSec   *int64 `json:"real_sec"`
		RealNsec  *int64 `json:"real_nsec"`
		ClockSec  *int64 `json:"clock_sec"`
		ClockNsec *int64 `json:"clock_nsec"`
		Precision *int   `json:"precision"`
		QErr      *int64 `json:"qErr"`
		pulse     bool   // PPS, not TOFF
	}
)

// Limits of what is plausible.
const (
	// maxMode is a three-dimensional fix.
	maxMode = 3
	// maxSatellites is far above the 184 channels that gpsd keeps (MAXCHANNELS).
	maxSatellites = 1000
	// minReal is 1980-01-06, when GPS's time begins.
	minReal = 315_964_800
	// maxSeconds keeps the difference of two times within a Duration; the year 2242.
	maxSeconds = 1 << 33
	// maxQErr in ps is one period of a receiver's clock of 1 MHz; real ones run at
	// 16 MHz and more.
	maxQErr = 1_000_000
)

// parse reads one line of gpsd. The report is a pointer to one of the types above,
// or nil for a class that is of no interest here. The error is a *lineError.
func parse(line []byte) (report any, err error) {
	var head struct {
		Class *string `json:"class"`
	}
	if err := decode(line, &head); err != nil {
		return nil, err
	}
	if head.Class == nil {
		return nil, &lineError{wrongType, errors.New("no class")}
	}
	report = blank(*head.Class)
	if report == nil {
		return nil, nil
	}
	if err := decode(line, report); err != nil {
		return nil, err
	}
	if r, ok := report.(interface{ check() error }); ok {
		if err := r.check(); err != nil {
			return nil, err
		}
	}
	return report, nil
}

// blank is what a line of this class is read into.
func blank(class string) any {
	switch class {
	case "VERSION":
		return &version{}
	case "DEVICES":
		return &devices{}
	case "DEVICE":
		return &device{}
	case "WATCH":
		return &watching{}
	case "ERROR":
		return &complaint{}
	case "TPV":
		return &position{}
	case "SKY":
		return &sky{}
	case "PPS":
		return &moment{pulse: true}
	case "TOFF":
		return &moment{}
	}
	return nil
}

// decode fills v, a pointer to a struct, and says what is wrong otherwise.
func decode(line []byte, v any) error {
	if !bytes.HasPrefix(bytes.TrimLeft(line, " \t\r"), []byte("{")) {
		return &lineError{notJSON, errors.New("not an object")}
	}
	err := json.Unmarshal(line, v)
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &lineError{wrongType, err}
	}
	return &lineError{notJSON, err}
}

func missing(name string) error {
	return &lineError{wrongType, fmt.Errorf("no %s", name)}
}

func outside(name string, v, lo, hi int64) error {
	return &lineError{implausible, fmt.Errorf("%s is %d, not within %d..%d", name, v, lo, hi)}
}

func (d *devices) check() error {
	if d.Devices == nil {
		return missing("devices")
	}
	return nil
}

func (d *device) check() error {
	if d.Path == "" {
		return missing("path")
	}
	return nil
}

// active reports whether gpsd has the device open.
func (d *device) active() bool {
	switch string(d.Activated) {
	case "", "0", "null", `""`, "false":
		return false
	}
	return true
}

func (p *position) check() error {
	if p.Mode == nil {
		return missing("mode")
	}
	if *p.Mode < 0 || *p.Mode > maxMode {
		return outside("mode", int64(*p.Mode), 0, maxMode)
	}
	return nil
}

func (s *sky) check() error {
	if n := s.Seen; n != nil && (*n < 0 || *n > maxSatellites) {
		return outside("nSat", int64(*n), 0, maxSatellites)
	}
	if n := s.Used; n != nil && (*n < 0 || *n > maxSatellites) {
		return outside("uSat", int64(*n), 0, maxSatellites)
	}
	if s.Seen != nil && s.Used != nil && *s.Used > *s.Seen {
		return &lineError{implausible, fmt.Errorf("%d satellites used of %d seen", *s.Used, *s.Seen)}
	}
	return nil
}

// count is the number of satellites seen and used; a count that the report does
// not have is not known.
func (s *sky) count() (seen, used Count) {
	if s.Satellites != nil {
		seen.Known, used.Known = true, true
		seen.N = len(*s.Satellites)
		for _, one := range *s.Satellites {
			if one.Used {
				used.N++
			}
		}
	}
	if s.Seen != nil {
		seen = Count{*s.Seen, true}
	}
	if s.Used != nil {
		used = Count{*s.Used, true}
	}
	return seen, used
}

func (m *moment) check() error {
	for _, f := range []struct {
		name   string
		value  *int64
		lo, hi int64
	}{
		{"real_sec", m.RealSec, minReal, maxSeconds},
		{"real_nsec", m.RealNsec, 0, int64(time.Second) - 1},
		{"clock_sec", m.ClockSec, 0, maxSeconds},
		{"clock_nsec", m.ClockNsec, 0, int64(time.Second) - 1},
	} {
		if f.value == nil {
			return missing(f.name)
		}
		if *f.value < f.lo || *f.value > f.hi {
			return outside(f.name, *f.value, f.lo, f.hi)
		}
	}
	if m.QErr != nil && (*m.QErr < -maxQErr || *m.QErr > maxQErr) {
		return outside("qErr", *m.QErr, -maxQErr, maxQErr)
	}
	if m.Precision != nil && (*m.Precision < math.MinInt8 || *m.Precision > math.MaxInt8) {
		return outside("precision", int64(*m.Precision), math.MinInt8, math.MaxInt8)
	}
	return nil
}

// reading is the moment as it is published.
func (m *moment) reading() Reading {
	r := Reading{
		At:     instant.FromUnix(*m.RealSec, *m.RealNsec),
		Offset: time.Duration(*m.ClockSec-*m.RealSec)*time.Second + time.Duration(*m.ClockNsec-*m.RealNsec),
	}
	if m.Precision != nil {
		r.Precision = *m.Precision
	}
	return r
}
