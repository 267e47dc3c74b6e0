package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/probe/calibration"
)

// calibrated writes a calibration file beside the configuration.
func (r *rig) calibrated(systematic time.Duration) {
	r.t.Helper()
	d := calibration.Direction{Count: 5000, Systematic: 2 * systematic, Random: time.Microsecond}
	var table calibration.Table
	if err := table.Put(calibration.Record{
		Interface: "eth7", Host: "h", Kernel: "k", Date: time.Unix(1e9, 0), Setup: calibration.Veth, At: "192.0.2.2:862",
		SharedClock: true, Origin: "kernel", PacketBytes: 172, Forward: d, Reverse: d,
	}); err != nil {
		r.t.Fatal(err)
	}
	if err := table.Save(filepath.Join(filepath.Dir(r.file), "calibration.json")); err != nil {
		r.t.Fatal(err)
	}
}

func TestCalibrationIsExportedAndAReloadReadsItAgain(t *testing.T) {
	fake := newFake()
	r := newRig(t, fake, twoPaths)
	fake.expect(t, "start a", "start b")
	r.calibrated(4 * time.Microsecond)
	r.write("calibration_file: calibration.json\n" + twoPaths)
	for _, want := range []float64{4e-6, 6e-6} {
		r.calibrated(time.Duration(want * 1e9))
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		fake.expect(t, "stop a", "stop b", "start a", "start b") // they used the old one
		if v, found := r.value("oneway_timestamp_calibration_seconds", "eth7", "systematic"); !found || v != want {
			t.Errorf("exported %v, %v, want %v", v, found, want)
		}
	}
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if r.job(0).running().(*fakeProber).env.Calibration == nil {
		t.Error("the prober has no calibration")
	}
	r.write(twoPaths)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, found := r.value("oneway_timestamp_calibration_seconds"); found {
		t.Error("still exported without a file")
	}
}

func TestACorruptCalibrationIsAProblemOfItsKey(t *testing.T) {
	r := newRig(t, newFake(), twoPaths)
	if err := os.WriteFile(filepath.Join(filepath.Dir(r.file), "calibration.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.write("calibration_file: calibration.json\n" + twoPaths)
	if err := r.Reload(); err == nil || !strings.Contains(err.Error(), ":1:19: calibration_file cannot be used: /") || !strings.Contains(err.Error(), "calibration.json: not a calibration file: ") {
		t.Error(err)
	}
}
