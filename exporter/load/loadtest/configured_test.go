package loadtest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe/report"
)

func TestConfiguredSettingsAreThoseOfTheFile(t *testing.T) {
	type section struct {
		Interval time.Duration `yaml:"interval"`
	}
	got := configuredOf(struct {
		Rate    option.Rate  `yaml:"rate"`
		Amount  option.Bytes `yaml:"amount"`
		Sizes   []int        `yaml:"sizes"`
		Idle    section      `yaml:"idle"`
		section `yaml:",inline"`
		Unset   string `yaml:"unset"`
		Other   int
	}{Rate: 625_000, Amount: 1_000_000, Sizes: []int{64, 1500}, Idle: section{time.Second}, Other: 7})
	want := []report.Line{{Quantity: "rate", Value: "5Mbit"}, {Quantity: "amount", Value: "1 MB"}, {Quantity: "sizes", Value: "64, 1500"}, {Quantity: "idle.interval", Value: "1s"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
