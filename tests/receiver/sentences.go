package receiver

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The modes of a fix (GSA; gpsd's TPV).
const (
	NoFix = 1
	Fix2D = 2
	Fix3D = 3
)

// Settings are what the receiver reports. Default has a fix.
type Settings struct {
	Track Track
	// Fix is NoFix, Fix2D or Fix3D.
	Fix int
	// Used of Seen satellites are used, with a fix; at most 12.
	Used, Seen int
	// Silent: it sends nothing.
	Silent bool
	// Late is how long after its second a second's sentences are written.
	Late time.Duration
}

// Default is a receiver that stands still.
func Default() Settings {
	return Settings{
		Track: Track{Latitude: 37.485, Longitude: 126.9533333, Altitude: 50},
		Fix:   Fix3D, Used: 8, Seen: 10, Late: 100 * time.Millisecond,
	}
}

// Track is a circle that the receiver moves along clockwise, at constant speed; with Radius 0 a point.
type Track struct {
	// Latitude and Longitude of its center, degrees; Altitude, Radius, meters.
	Latitude, Longitude, Altitude, Radius float64
	// Speed, meters per second.
	Speed float64
}

// Position is a place on it.
type Position struct {
	// Degrees.
	Latitude, Longitude float64
	// Course is the direction of the motion, degrees from north by east.
	Course float64
}

// meters of a degree of latitude on a sphere of the radius of WGS 84's equator.
const degree = 6378137 * math.Pi / 180

// At is the position at a time, the same in every run.
func (t Track) At(at time.Time) Position {
	if t.Radius == 0 {
		return Position{t.Latitude, t.Longitude, 0}
	}
	around := 2 * math.Pi * t.Radius / t.Speed // seconds
	seconds := float64(at.Unix()%86400) + float64(at.Nanosecond())/1e9
	angle := 2 * math.Pi * math.Mod(seconds/around, 1) // of the place, from north by east
	return Position{
		Latitude:  t.Latitude + t.Radius*math.Cos(angle)/degree,
		Longitude: t.Longitude + t.Radius*math.Sin(angle)/(degree*math.Cos(t.Latitude*math.Pi/180)),
		Course:    math.Mod(angle*180/math.Pi+90, 360),
	}
}

// knot in meters per second.
const knot = 1852.0 / 3600

// Sentences are those of a second: RMC, GGA, GSA, GSV.
func (s *Settings) Sentences(at time.Time) string {
	at = at.UTC()
	clock, date := at.Format("150405.00"), at.Format("020106")
	seen := Sentence("GPGSA,A,%d,%s%s", s.Fix, s.identities(), "1.8,1.0,1.5") + s.view()
	if s.Fix < Fix2D {
		// A receiver with a clock of its own continues to give the time.
		return Sentence("GPRMC,%s,V,,,,,,,%s,,,N", clock, date) + Sentence("GPGGA,%s,,,,,0,00,99.9,,,,,,", clock) + seen
	}
	p := s.Track.At(at)
	place := minutes(p.Latitude, 2, "N", "S") + "," + minutes(p.Longitude, 3, "E", "W")
	altitude := fmt.Sprintf("%.1f,M,20.0,M", s.Track.Altitude)
	if s.Fix == Fix2D {
		altitude = ",,,"
	}
	return Sentence("GPRMC,%s,A,%s,%.3f,%.2f,%s,,,A", clock, place, s.Track.Speed/knot, p.Course, date) +
		Sentence("GPGGA,%s,%s,1,%02d,1.0,%s,,", clock, place, s.Used, altitude) + seen
}

// identities are the twelve fields of the used satellites, each with its comma.
func (s *Settings) identities() string {
	var b strings.Builder
	for i := range 12 {
		if s.Fix >= Fix2D && i < s.Used {
			fmt.Fprintf(&b, "%02d", i+1)
		}
		b.WriteByte(',')
	}
	return b.String()
}

// view is GSV: the satellites in view, four a sentence.
func (s *Settings) view() string {
	const each = 4
	var b strings.Builder
	sentences := (s.Seen + each - 1) / each
	for n := range sentences {
		var text strings.Builder
		fmt.Fprintf(&text, "GPGSV,%d,%d,%02d", sentences, n+1, s.Seen)
		for i := n * each; i < min(s.Seen, (n+1)*each); i++ {
			fmt.Fprintf(&text, ",%02d,%02d,%03d,%02d", i+1, 20+5*i, 30*i, 45-i)
		}
		b.WriteString(Sentence("%s", &text))
	}
	return b.String()
}

// minutes is an angle as degrees and minutes.
func minutes(angle float64, digits int, positive, negative string) string {
	side := positive
	if angle < 0 {
		side, angle = negative, -angle
	}
	const unit = 60 * 10000
	n := int(math.Round(angle * unit))
	return fmt.Sprintf("%0*d%07.4f,%s", digits, n/unit, float64(n%unit)/10000, side)
}

// Sentence is one, with its checksum: the exclusive or of all between $ and *.
func Sentence(format string, arguments ...any) string {
	text := fmt.Sprintf(format, arguments...)
	var sum byte
	for i := range len(text) {
		sum ^= text[i]
	}
	return fmt.Sprintf("$%s*%02X\r\n", text, sum)
}
