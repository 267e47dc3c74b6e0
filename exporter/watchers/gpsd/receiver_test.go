package gpsd

import (
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
)

// from is a report as another device would send it.
func from(device, report string) string { return strings.ReplaceAll(report, "/dev/ttyS0", device) }

func TestSecondReceiverDoesNotMixWithTheFirst(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.every(30*time.Second, fix3D, from("/dev/ttyUSB0", noFix))
		if s := b.client.State(); s.Device != "/dev/ttyS0" || s.Fix != Fix3D {
			t.Errorf("%+v, want what the first says", s)
		}
		b.every(reportLifetime-time.Second, from("/dev/ttyUSB0", noFix)) // the first was heard a second ago
		b.send(from("/dev/ttyUSB0", noFix))
		if s := b.client.State(); s.Device != "/dev/ttyS0" {
			t.Errorf("%+v, want the first until it is silent for more than %v", s, reportLifetime)
		}
		b.every(2*time.Second, from("/dev/ttyUSB0", noFix))
		if s := b.client.State(); s.Device != "/dev/ttyUSB0" || s.Fix != FixNone {
			t.Errorf("%+v, want what the second says", s)
		}
	})
}

func TestSecondReceiverDoesNotInheritFromTheFirst(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.send(from("/dev/ttyUSB0", back), fix3D, skyView, toff, gone, from("/dev/ttyUSB0", noFix))
		s := b.client.State()
		if s.Device != "/dev/ttyUSB0" || s.Fix != FixNone || s.Seen.Known || s.Used.Known || !s.Sentence.At.IsZero() {
			t.Errorf("%+v, want the second's fix alone", s)
		}
	})
}

func TestOnlyTheConfiguredDeviceCounts(t *testing.T) {
	inTestbed(t, Options{Device: "/dev/ttyS0"}, nil, func(b *testbed) {
		b.send(from("/dev/ttyUSB0", pulse), from("/dev/ttyUSB0", fix3D), from("/dev/ttyUSB0", back), noFix)
		s := b.client.State()
		if s.Device != "/dev/ttyS0" || s.Fix != FixNone || !s.Pulse.At.IsZero() {
			t.Errorf("%+v, want /dev/ttyS0 without a fix and without a pulse", s)
		}
		b.send(gone)
		if s := b.client.State(); s.Connected {
			t.Errorf("%+v, but the device is gone", s)
		}
	})
}

// gpsd reports a PPS device of its own under that device's name.
func TestPulseMayComeFromAnotherDevice(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.send(fix3D, from("/dev/pps0", pulse))
		if s := b.client.State(); s.Device != "/dev/ttyS0" || s.Pulse.Offset != -3500 {
			t.Errorf("%+v, want the pulse of /dev/pps0", s)
		}
		b.send(strings.Replace(pulse, "999996500", "999990000", 1))
		if s := b.client.State(); s.Pulse.Offset != -10_000 {
			t.Errorf("%+v, want the pulse of the receiver itself", s)
		}
		b.send(from("/dev/pps0", pulse))
		if s := b.client.State(); s.Pulse.Offset != -10_000 {
			t.Errorf("%+v, want to stay with the receiver's pulse", s)
		}
	})
}

func TestPartialSkyViewKeepsTheLastCounts(t *testing.T) {
	const (
		precisionOnly = `{"class":"SKY","device":"/dev/ttyS0","hdop":0.60,"pdop":1.10}`
		bareZero      = `{"class":"SKY","device":"/dev/ttyS0","hdop":0.60,"nSat":0,"uSat":0}`
		usedOnly      = `{"class":"SKY","device":"/dev/ttyS0","hdop":0.60,"uSat":1}`
		listOnly      = `{"class":"SKY","device":"/dev/ttyS0","satellites":[{"PRN":7,"used":true},{"PRN":2,"used":false}]}`
	)
	counts := func(b *testbed, when, seen, used string) {
		b.Helper()
		b.tick()
		b.metrics(when, map[*metric.Desc]string{metric.GNSSSatellitesSeen: seen, metric.GNSSSatellitesUsed: used})
	}
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.send(precisionOnly)
		counts(b, "before any list", "absent", "absent")
		b.send(skyView, precisionOnly)
		counts(b, "gpsd 3.23 and later", "3", "2")
		b.send(bareZero)
		counts(b, "gpsd 3.22", "3", "2")
		b.send(usedOnly)
		counts(b, "from GGA", "3", "1")
		b.send(listOnly)
		counts(b, "gpsd 3.20 and earlier", "2", "1")
		b.every(reportLifetime+time.Second, bareZero)
		counts(b, "when the sky is gone", "0", "0")
	})
}

func TestUnknownModeIsNoFixOfAnyKind(t *testing.T) {
	inTestbed(t, Options{}, nil, func(b *testbed) {
		b.send(fix3D, `{"class":"TPV","device":"/dev/ttyS0","mode":0}`)
		b.tick()
		b.metrics("mode 0", map[*metric.Desc]string{metric.GNSSFix: "absent", metric.GNSSConnected: "1"})
	})
}

func TestFixesHaveNames(t *testing.T) {
	for got, want := range map[string]string{
		FixUnknown.String(): "unknown", FixNone.String(): "none", Fix2D.String(): "2D", Fix3D.String(): "3D",
		Fix(7).String(): "Fix(7)",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
