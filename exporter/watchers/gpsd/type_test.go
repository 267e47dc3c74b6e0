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
