package gpsd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/record"
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
	// devices is the whole pool, as the reply to WATCH has it.
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
	// place is of a TPV, too: lat and lon in degrees (WGS 84), speed in m/s. parse does not read
	// it: that takes time, and an error of parse, which is logged, quotes what it could not read.
	place struct {
		Time      string  `json:"time"`
		Latitude  float64 `json:"lat"`
		Longitude float64 `json:"lon"`
		Speed     float64 `json:"speed"`
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
	// maxApart is the most that a TPV's time may differ from the system's clock when the report is
	// read: receiver and gpsd take seconds, and a receiver whose week number has begun again at
	// zero is 1024 weeks off.
	maxApart = time.Hour
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
	if err := required("class", head.Class == nil); err != nil {
		return nil, err
	}
	blank := classes[*head.Class]
	if blank == nil {
		return nil, nil
	}
	report = blank()
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

// classes are what lines are read into, by their class.
var classes = map[string]func() any{
	"VERSION": func() any { return &version{} },
	"DEVICES": func() any { return &devices{} },
	"DEVICE":  func() any { return &device{} },
	"WATCH":   func() any { return &watching{} },
	"ERROR":   func() any { return &complaint{} },
	"TPV":     func() any { return &position{} },
	"SKY":     func() any { return &sky{} },
	"PPS":     func() any { return &moment{pulse: true} },
	"TOFF":    func() any { return &moment{} },
}

// decode fills v, a pointer to a struct, and says what is wrong otherwise.
func decode(line []byte, v any) error {
	if !bytes.HasPrefix(bytes.TrimLeft(line, " \t\r"), []byte("{")) {
		return &lineError{notJSON, errors.New("not an object")}
	}
	err := json.Unmarshal(line, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &lineError{wrongType, err}
	} else if err != nil {
		return &lineError{notJSON, err}
	}
	return nil
}

// required says what is missing, if it is.
func required(name string, missing bool) error {
	if missing {
		return &lineError{wrongType, fmt.Errorf("no %s", name)}
	}
	return nil
}

// within says what is wrong with a number, if there is one.
func within[N int | int64](name string, v *N, lo, hi N) error {
	if v != nil && (*v < lo || *v > hi) {
		return &lineError{implausible, fmt.Errorf("%s is %d, not within %d..%d", name, *v, lo, hi)}
	}
	return nil
}

func (d *devices) check() error { return required("devices", d.Devices == nil) }

func (d *device) check() error { return required("path", d.Path == "") }

// active reports whether gpsd has the device open.
func (d *device) active() bool {
	return !slices.Contains([]string{"", "0", "null", `""`, "false"}, string(d.Activated))
}

func (p *position) check() error {
	return cmp.Or(required("mode", p.Mode == nil), within("mode", p.Mode, 0, maxMode))
}

// point is the point of the track that a TPV tells of; false: it tells of none, or of what cannot
// be. At is the TPV's time, that of the fix; where that is absent, no time, or more than maxApart
// from now, At is now: the system's clock when the report was read.
func point(line []byte, now time.Time) (record.Point, bool) {
	p := place{Latitude: math.NaN(), Longitude: math.NaN(), Speed: math.NaN()}
	err := decode(line, &p)
	at, wrong := time.Parse(time.RFC3339, p.Time)
	if wrong != nil || at.Sub(now).Abs() > maxApart {
		at = now
	}
	return record.Point{At: instant.FromTime(at), Latitude: p.Latitude, Longitude: p.Longitude, Speed: p.Speed},
		err == nil && math.Abs(p.Latitude) <= 90 && math.Abs(p.Longitude) <= 180 && !(p.Speed < 0)
}

func (s *sky) check() error {
	if err := cmp.Or(within("nSat", s.Seen, 0, maxSatellites), within("uSat", s.Used, 0, maxSatellites)); err != nil {
		return err
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
		seen, used.Known = Count{len(*s.Satellites), true}, true
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
		if err := cmp.Or(required(f.name, f.value == nil), within(f.name, f.value, f.lo, f.hi)); err != nil {
			return err
		}
	}
	return cmp.Or(within("qErr", m.QErr, -maxQErr, maxQErr), within("precision", m.Precision, math.MinInt8, math.MaxInt8))
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

// malformation says why a line was not understood: the label `reason` of
// oneway_gnss_malformed_total.
type malformation string

const (
	// tooLong: longer than maxLine; it is skipped to its end.
	tooLong malformation = "too_long"
	// notJSON: not one JSON object, such as a report that gpsd cut at its own limit.
	notJSON malformation = "not_json"
	// wrongType: a field that the class must have is missing, or of another type.
	wrongType malformation = "wrong_type"
	// implausible: well-formed, but no receiver can say that.
	implausible malformation = "implausible"
)

func malformations() []malformation {
	return []malformation{tooLong, notJSON, wrongType, implausible}
}

// lineError is a malformation and what exactly was wrong.
type lineError struct {
	reason malformation
	cause  error
}

// Error names the reason and the cause.
func (e *lineError) Error() string { return fmt.Sprintf("gpsd: %s: %v", e.reason, e.cause) }

// Unwrap gives the cause.
func (e *lineError) Unwrap() error { return e.cause }
