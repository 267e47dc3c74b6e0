package receiver

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestChecksumIsThatOfNMEA(t *testing.T) {
	// Examples of the gpsd project's description of NMEA, and of many manuals.
	for _, want := range []string{"GPGLL,4916.45,N,12311.12,W,225444,A*31", "GPGLL,5300.97914,N,00259.98174,E,125926,A*28"} {
		if got := Sentence("%s", want[:len(want)-3]); got != "$"+want+"\r\n" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSentencesAreThoseOfTheSecond(t *testing.T) {
	s := Default()
	at := time.Date(2026, 12, 31, 23, 59, 58, 0, time.UTC)
	got := strings.Split(s.Sentences(at), "\r\n")
	want := []string{
		"$GPRMC,235958.00,A,3729.1000,N,12657.2000,E,0.000,0.00,311226,,,A*",
		"$GPGGA,235958.00,3729.1000,N,12657.2000,E,1,08,1.0,50.0,M,20.0,M,,*",
		"$GPGSA,A,3,01,02,03,04,05,06,07,08,,,,,1.8,1.0,1.5*",
		"$GPGSV,3,1,10,01,20,000,45,02,25,030,44,03,30,060,43,04,35,090,42*",
		"$GPGSV,3,2,10,05,40,120,41,06,45,150,40,07,50,180,39,08,55,210,38*",
		"$GPGSV,3,3,10,09,60,240,37,10,65,270,36*", "",
	}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
	s.Fix = NoFix
	if got := s.Sentences(at); !strings.HasPrefix(got, "$GPRMC,235958.00,V,,,,,,,311226,,,N*") || !strings.Contains(got, "$GPGSA,A,1,,,,,,,,,,,,,1.8,") {
		t.Errorf("without a fix: %q", got)
	}
}

// TestSpeedAndCourseAreThoseOfTheTrack compares them with the positions around.
func TestSpeedAndCourseAreThoseOfTheTrack(t *testing.T) {
	track := Track{Latitude: -37, Longitude: 127, Radius: 300, Speed: 15}
	begin := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	for second := range 200 {
		at := begin.Add(time.Duration(second) * time.Second)
		before, now, after := track.At(at.Add(-time.Second/2)), track.At(at), track.At(at.Add(time.Second/2))
		north := (after.Latitude - before.Latitude) * degree
		east := (after.Longitude - before.Longitude) * degree * math.Cos(track.Latitude*math.Pi/180)
		if speed := math.Hypot(north, east); math.Abs(speed-track.Speed) > 0.01 {
			t.Fatalf("%v: moves at %v m/s, want %v", at, speed, track.Speed)
		}
		course := math.Mod(math.Atan2(east, north)*180/math.Pi+360, 360)
		if apart := math.Abs(course - now.Course); min(apart, 360-apart) > 0.1 {
			t.Fatalf("%v: moves to %v degrees, want %v", at, course, now.Course)
		}
	}
}

func TestMinutesCarryOver(t *testing.T) {
	for angle, want := range map[float64]string{
		-0.5: "0030.0000,S", 37.485: "3729.1000,N", 59.9999999999: "6000.0000,N", 1.0 / 60: "0001.0000,N",
	} {
		if got := minutes(angle, 2, "N", "S"); got != want {
			t.Errorf("%v is %s, want %s", angle, got, want)
		}
	}
}

func TestLateReaderOfAFIFOGetsNoOldSentences(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "receiver")
	r, err := OpenFIFO(path, Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	time.Sleep(3500 * time.Millisecond) // nobody reads for some seconds
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1<<16)
	n, err := io.ReadAtLeast(f, b, 1)
	if got := strings.Count(string(b[:n]), "$GPRMC"); got != 1 || err != nil {
		t.Errorf("%d seconds' sentences waited, want 1: %v", got, err)
	}
}
