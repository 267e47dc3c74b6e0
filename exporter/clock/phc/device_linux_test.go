package phc

import (
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func clockTime(ns int64) unix.PtpClockTime {
	return unix.PtpClockTime{Sec: ns / 1e9, Nsec: uint32(ns % 1e9)}
}

func triple(before, device, after int64) [3]unix.PtpClockTime {
	return [3]unix.PtpClockTime{clockTime(before), clockTime(device), clockTime(after)}
}

func TestTightestReadingIsTaken(t *testing.T) {
	got, err := tightest([][3]unix.PtpClockTime{
		triple(1000, 500, 3000),
		triple(5000, 2500, 5101), // an odd width: half of it is rounded up
		triple(9000, 4500, 9400),
		triple(20000, 6000, 19000), // a step back during the reading
	})
	if want := (Reading{Device: 2500, System: 5050, Uncertainty: 51}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if _, err := tightest([][3]unix.PtpClockTime{triple(2, 0, 1)}); err == nil {
		t.Error("accepted a reading during a step")
	}
}

func TestInfoDistinguishesHardwareFromSoftware(t *testing.T) {
	const software = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_RX_SOFTWARE
	for _, c := range []struct {
		flags uint32
		clock int32
		want  Info
	}{
		{software, -1, Info{Clock: -1}},
		{software | unix.SOF_TIMESTAMPING_TX_HARDWARE, 0, Info{}}, // one direction is not enough
		{unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE, 2, Info{Clock: 2, Hardware: true}},
	} {
		if got := infoOf(&unix.EthtoolTsInfo{So_timestamping: c.flags, Phc_index: c.clock}); got != c.want {
			t.Errorf("flags %#x: %+v, want %+v", c.flags, got, c.want)
		}
	}
}

func TestLoopbackHasNoClock(t *testing.T) {
	info, err := Interface("lo")
	if err != nil {
		t.Fatal(err)
	}
	if info.Clock != -1 || info.Hardware || info.Enabled {
		t.Errorf("Interface(lo) = %+v, want no clock", info)
	}
	if _, err := Interface("no-such-link"); err == nil {
		t.Error("Interface of an unknown name succeeded")
	}
}

func TestRealDeviceIsRelatedToTheSystemClock(t *testing.T) {
	devices, err := filepath.Glob("/dev/ptp[0-9]")
	if err != nil || len(devices) == 0 {
		t.Skip("SKIPPED, NOT PASSED: this machine has no /dev/ptp0")
	}
	d, err := Open(0)
	if err != nil {
		t.Skipf("SKIPPED, NOT PASSED: %v", err)
	}
	defer d.Close()
	var r Relation
	for range 3 {
		reading, err := d.Read()
		if err != nil {
			t.Fatal(err)
		}
		r.Add(reading)
		time.Sleep(500 * time.Millisecond) // hardware clocks do not run in simulated time (synctest)
	}
	reading, err := d.Read()
	if err != nil {
		t.Fatal(err)
	}
	at, ok := r.System(reading.Device)
	if u, good := r.Uncertainty(); !good {
		t.Skipf("SKIPPED, NOT PASSED: uncertainty of /dev/ptp0 is too high to convert anything: %v", u)
	}
	if diff := at.Sub(reading.System); !ok || diff.Abs() > time.Millisecond {
		t.Errorf("error %v, ok %v", diff, ok)
	}
}

func TestMissingDeviceIsAnError(t *testing.T) {
	if _, err := Open(9999); err == nil {
		t.Error("opened")
	}
}
