package train

import (
	"fmt"
	"testing"
	"time"

	"oneway.example/exporter/load/loadsession"
	"oneway.example/tests/probeoptions"
)

func TestOptionsOfTheProbeAndOfAllLoadTestsStandTogether(t *testing.T) {
	probeoptions.Accepted(t, NewType(), "payload_bytes: [1472]\ntrains: 10\ntrain_packets: 30\ntrain_interval: 200ms\ngroup: 5\ngroup_pause: 0s\nmax_repeats: 10\nmin_clean: 5\npath_mtu: false\nmax_mtu_bytes: 1500\nevery: 1h\ndirections: [reverse]\n", "payload_byte", "payload_bytes")
}

func TestWrongOptionsNameTheExpectation(t *testing.T) {
	probeoptions.Refused(t, NewType(), map[string]string{
		"payload_bytes: []\n":        "payload_bytes has 0 values; it must have 1 to 12",
		"payload_bytes: [800, 31]\n": "payload_bytes[1] is 31; it must be between 32 and 8972",
		"payload_bytes: [80, 80]\n":  "payload_bytes[1] is 80 for the second time",
		"trains: 2\n":                "trains is 2; it must be between 3 and 1000",
		"train_packets: 4\n":         "train_packets is 4; it must be between 5 and 200",
		"train_interval: 1ms\n":      "train_interval is 1ms; it must be between 10ms and 1m0s",
		"group: 0\n":                 "group is 0; it must be between 1 and 1000",
		"group_pause: 1h\n":          "group_pause is 1h0m0s; it must be between 0s and 1m0s",
		"max_repeats: -1\n":          "max_repeats is -1; it must be between 0 and 1000",
		"min_clean: 31\n":            "min_clean is 31; it must be between 3 and 30",
		"min_clean: -1\n":            "min_clean is -1; it must be between 3 and 30",
		"max_mtu_bytes: 1000\n":      "max_mtu_bytes is 1000; it must be between 1280 and 65535",
		"every: 1s\n":                "every is 1s; it must be between 10s and 168h0m0s",
	})
}

func TestCleanTrainsNeededFollowTheirNumber(t *testing.T) {
	for trains, want := range map[int]int{30: 10, 10: 3, 3: 3, 300: 100} {
		o := DefaultOptions()
		o.Trains = trains
		if err := o.check(); err != nil || o.MinClean != want {
			t.Errorf("of %d trains %d must be clean, want %d (%v)", trains, o.MinClean, want, err)
		}
	}
}

func TestWrongNumberOfTrainsIsTheOnlyErrorOfIt(t *testing.T) {
	for _, trains := range []int{2, 100_000_000} {
		for _, clean := range []int{0, 5} {
			o := DefaultOptions()
			o.Trains, o.MinClean = trains, clean
			if err := o.check(); err == nil || err.Error() != fmt.Sprintf("trains is %d; it must be between 3 and 1000", trains) {
				t.Errorf("%d trains, %d of them clean: error is %v", trains, clean, err)
			}
		}
	}
}

func TestTimeOutLeavesSpaceForASlowLink(t *testing.T) {
	o := DefaultOptions()
	o.Trains, o.TrainInterval, o.GroupPause = 10, 200*time.Millisecond, 0
	k, err := NewKind(loadsession.DefaultOptions(), o)
	if err != nil {
		t.Fatal(err)
	}
	// A train of 25 packets of 1500 bytes takes 2 s at 150 kb/s; a timeout is twice this.
	if got := k.Duration(); got < 2*4*10*time.Second || got > 10*time.Minute {
		t.Errorf("a run may take %v", got)
	}
}
