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

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/strictjson"
)

// The reports of gpsd_json(5) that are used. An unknown class is parsed to nil.
type (
	// version is gpsd's banner.
	version struct {
		Release string `json:"release"`
		Major   int    `json:"proto_major"`
	}
	// device is one device of gpsd's pool.
	device struct {
		Path string `json:"path"`
		// Activated is a date, 0 in the report of a removed device, and missing while the device is closed.
		Activated json.RawMessage `json:"activated"`
	}
	// devices is the complete list, as in the reply to WATCH.
	devices struct {
		Devices *[]device `json:"devices"`
	}
	// watching is gpsd's echo of WATCH.
	watching struct{}
	// errorReport is an ERROR.
	errorReport struct {
		Message string `json:"message"`
	}
	// position is a TPV.
	position struct {
		Device string `json:"device"`
		Mode   *int   `json:"mode"`
	}
	// location is also a TPV: lat and lon in degrees (WGS 84), speed in m/s. parse does not decode it, because of the
	// cost, and because an error of parse is logged with the value that it could not decode.
	location struct {
		Time      string  `json:"time"`
		Latitude  float64 `json:"lat"`
		Longitude float64 `json:"lon"`
		Speed     float64 `json:"speed"`
	}
	// sky is a SKY. gpsd 3.23 and later also send it without satellites, with the dilution of precision only; 3.20 and
	// earlier send it without nSat and uSat.
	sky struct {
		Device     string       `json:"device"`
		Seen       *int         `json:"nSat"`
		Used       *int         `json:"uSat"`
		Satellites *[]satellite `json:"satellites"`
	}
	satellite struct {
		Used bool `json:"used"`
	}
	// timeEvent is a PPS or TOFF: the time of one event by the receiver and by the system clock.
	timeEvent struct {
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
	// maxMode is the mode of a three-dimensional fix.
	maxMode = 3
	// maxSatellites is far above the 184 channels of gpsd (MAXCHANNELS).
	maxSatellites = 1000
	// minReal is 1980-01-06, the GPS epoch.
	minReal = 315_964_800
	// maxSeconds is in the year 2242 and keeps the difference of two times within a Duration.
	maxSeconds = 1 << 33
	// maxQErr in ps is one period of a receiver clock of 1 MHz; real ones run at 16 MHz or more.
	maxQErr = 1_000_000
	// maxApart is the maximum difference between a TPV's time and the system clock when the report is read: receiver and
	// gpsd take seconds, and a receiver after a week number rollover is off by 1024 weeks.
	maxApart = time.Hour
)

// parse parses one line of gpsd. The report is a pointer to one of the types above, or nil for a class that is not used.
// The error is a *lineError.
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

// classes makes the value that a line is decoded into, by class.
var classes = map[string]func() any{
	"VERSION": func() any { return &version{} },
	"DEVICES": func() any { return &devices{} },
	"DEVICE":  func() any { return &device{} },
	"WATCH":   func() any { return &watching{} },
	"ERROR":   func() any { return &errorReport{} },
	"TPV":     func() any { return &position{} },
	"SKY":     func() any { return &sky{} },
	"PPS":     func() any { return &timeEvent{pulse: true} },
	"TOFF":    func() any { return &timeEvent{} },
}

// decode decodes a line into v, a pointer to a struct.
func decode(line []byte, v any) error {
	if !bytes.HasPrefix(bytes.TrimLeft(line, " \t\r"), []byte("{")) {
		return &lineError{notJSON, errors.New("not an object")}
	}
	err := json.Unmarshal(line, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &lineError{wrongType, strictjson.Explain(err)}
	} else if err != nil {
		return &lineError{notJSON, err}
	}
	return nil
}

// required returns an error if a field is missing.
func required(name string, missing bool) error {
	if missing {
		return &lineError{wrongType, fmt.Errorf("no %s", name)}
	}
	return nil
}

// within returns an error if a number is present and out of range.
func within[N int | int64](name string, v *N, lo, hi N) error {
	if v != nil && (*v < lo || *v > hi) {
		return &lineError{implausible, fmt.Errorf("%s is %d, not within %d..%d", name, *v, lo, hi)}
	}
	return nil
}

func (d *devices) check() error { return required("devices", d.Devices == nil) }

func (d *device) check() error { return required("path", d.Path == "") }

// active reports whether gpsd has opened the device.
func (d *device) active() bool {
	return !slices.Contains([]string{"", "0", "null", `""`, "false"}, string(d.Activated))
}

func (p *position) check() error {
	return cmp.Or(required("mode", p.Mode == nil), within("mode", p.Mode, 0, maxMode))
}

// point is the point of the track in a TPV; false if it has none or an invalid one. Its time is the TPV's time, that of the fix;
// if that is absent, invalid, or more than maxApart from now, it is now: the system clock when the report was read.
func point(line []byte, now time.Time) (record.Table, bool) {
	p := location{Latitude: math.NaN(), Longitude: math.NaN(), Speed: math.NaN()}
	err := decode(line, &p)
	at, wrong := time.Parse(time.RFC3339, p.Time)
	if wrong != nil || at.Sub(now).Abs() > maxApart {
		at = now
	}
	row := []int64{
		record.TrackLatitude: record.Real(p.Latitude), record.TrackLongitude: record.Real(p.Longitude), record.TrackSpeed: record.Real(p.Speed),
	}
	return record.Table{Schema: record.Track, Begin: instant.FromTime(at), Rows: [][]int64{row}},
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

// count is the number of satellites seen and used; a count that the report lacks is unknown.
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

func (m *timeEvent) check() error {
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

// reading is the event as a Reading.
func (m *timeEvent) reading() Reading {
	r := Reading{
		At:     instant.FromUnix(*m.RealSec, *m.RealNsec),
		Offset: time.Duration(*m.ClockSec-*m.RealSec)*time.Second + time.Duration(*m.ClockNsec-*m.RealNsec),
	}
	if m.Precision != nil {
		r.Precision = *m.Precision
	}
	return r
}

// malformation is the reason why a line could not be decoded: the label `reason` of oneway_gnss_malformed_total.
type malformation string

const (
	// tooLong: longer than maxLine; the line is skipped to its end.
	tooLong malformation = "too_long"
	// notJSON: not one JSON object, for example a report that gpsd truncated at its limit.
	notJSON malformation = "not_json"
	// wrongType: a required field of the class is missing or of another type.
	wrongType malformation = "wrong_type"
	// implausible: well-formed, but impossible for a receiver.
	implausible malformation = "implausible"
)

func malformations() []malformation {
	return []malformation{tooLong, notJSON, wrongType, implausible}
}

// lineError is a malformation and its cause.
type lineError struct {
	reason malformation
	cause  error
}

// Error names the reason and the cause.
func (e *lineError) Error() string { return fmt.Sprintf("gpsd: %s: %v", e.reason, e.cause) }

// Unwrap returns the cause.
func (e *lineError) Unwrap() error { return e.cause }
