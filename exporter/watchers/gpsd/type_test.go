package gpsd

import (
	"testing"

	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/watcher"
)

func TestOptionsOfTheConfigurationAreUsed(t *testing.T) {
	w, err := NewType().New(watcher.Env{Name: "roof"}, func(into ...any) error {
		return yaml.Unmarshal([]byte("{address: \"192.0.2.1:2948\", device: /dev/ttyACM0}"), into[0])
	})
	if err != nil {
		t.Fatal(err)
	}
	if o := w.(*Client).options; o.Name != "roof" || o.Address != "192.0.2.1:2948" || o.Device != "/dev/ttyACM0" {
		t.Errorf("options are %+v", o)
	}
}

// A receiver is up if it has a fix, or if gpsd has not told yet whether it has one.
func TestReceiverWithoutAFixIsNotUp(t *testing.T) {
	for fix, up := range map[Fix]bool{FixNone: false, FixUnknown: true, Fix2D: true, Fix3D: true} {
		s := Details{Replying: true, Connected: true, Fix: fix.String()}.Status()
		if s.Up != up || (s.State == "no fix") == up || (len(s.Warnings) == 0) != up {
			t.Errorf("fix %s: up %v, state %q, warnings %q", fix, s.Up, s.State, s.Warnings)
		}
	}
}
