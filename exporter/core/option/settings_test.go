package option

import (
	"encoding/json"
	"testing"
	"time"
)

func TestSettingsHaveUnitsInTheirNames(t *testing.T) {
	type inner struct {
		Step time.Duration `yaml:"step"`
	}
	type shared struct {
		Local string `yaml:"local"`
	}
	o := struct {
		Interval time.Duration `yaml:"interval"`
		Rate     PerDirection  `yaml:"rate"`
		Pacing   Rate          `yaml:"pacing_rate"`
		Buffer   []Bytes       `yaml:"send_buffer_bytes"`
		Limit    Bytes         `yaml:"limit"`
		Sweep    inner         `yaml:"sweep"`
		shared   `yaml:",inline"`
		derived  int
	}{Interval: 1500 * time.Millisecond, Rate: PerDirection{1000, 2000}, Pacing: 5, Buffer: []Bytes{1, 2}, Sweep: inner{time.Second}}
	o.Local, o.derived = "::1", 7
	got, err := json.Marshal(Settings(&o, nil))
	const want = `{"interval_seconds":1.5,"limit_bytes":0,"local":"::1","pacing_rate_bytes_per_second":5,` +
		`"rate_bytes_per_second":{"forward":1000,"reverse":2000},"send_buffer_bytes":[1,2],"sweep":{"step_seconds":1}}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}
