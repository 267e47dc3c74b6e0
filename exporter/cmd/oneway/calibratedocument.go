//go:build !slim

package main

import (
	"context"
	"time"

	"oneway.example/exporter/agent/backtoback"
	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe/calibration"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probes/stamp"
)

// calibrationDocument is the output of `oneway calibrate --json`.
type calibrationDocument struct {
	document.Envelope
	// Settings are the options in use.
	Settings document.Settings `json:"settings"`
	document.Outcome
	*calibrated
}

// calibrated is the measured error of the timestamps of an interface.
type calibrated struct {
	// Interface is the calibrated one, Driver the name of its driver; empty: unknown.
	Interface string `json:"interface"`
	Driver    string `json:"driver"`
	// Kernel is the release of this host's kernel.
	Kernel string `json:"kernel"`
	// Setup is loopback, veth or peer; Peer is the reflector's address.
	Setup string `json:"setup"`
	Peer  string `json:"peer"`
	// SharedClock: both ends read one clock.
	SharedClock bool `json:"shared_clock"`
	// Origin is the origin of the local timestamps, kernel or hardware.
	Origin string `json:"origin"`
	// Used are the packets whose delays were used.
	Used document.ByDirection[int] `json:"used_packets"`
	// DelaySystematic is the median of the measured minus the true delay, DelayRandom the distance from it within which 95 % of
	// the delays are, DelayLargest the largest distance (RFC 7679 section 3.7.3).
	DelaySystematic document.ByDirection[report.Seconds] `json:"delay_systematic_error_seconds"`
	DelayRandom     document.ByDirection[report.Seconds] `json:"delay_random_error_seconds"`
	DelayLargest    document.ByDirection[report.Seconds] `json:"delay_largest_error_seconds"`
	// Systematic and Random are the errors of one timestamp of the interface. Largest is known if the calibration is trusted.
	Systematic report.Seconds  `json:"timestamp_systematic_error_seconds"`
	Random     report.Seconds  `json:"timestamp_random_error_seconds"`
	Largest    *report.Seconds `json:"timestamp_largest_error_seconds,omitempty"`
	// Probe has the values of the test packets.
	Probe *stamp.Document `json:"probe"`
}

// document returns the result of a calibration; a nil result: there was none.
func (f *calibrateFlags) document(ctx context.Context, r *backtoback.Result, err error) calibrationDocument {
	o := &f.options
	d := calibrationDocument{
		Envelope: document.New(document.Calibration), Outcome: outcomeOf(ctx, err),
		Settings: settings(f.clock, option.Settings(&o.Stamp, o)),
	}
	if r == nil {
		return d
	}
	record, e := &r.Record, r.Record.Errors()
	d.calibrated = &calibrated{
		Interface: record.Interface, Driver: record.Driver, Kernel: record.Kernel, Setup: record.Setup, Peer: record.At,
		SharedClock: record.SharedClock, Origin: record.Origin,
		Used:            document.ByDirection[int]{Forward: record.Forward.Count, Reverse: record.Reverse.Count},
		DelaySystematic: ofBoth(record, func(d calibration.Direction) time.Duration { return d.Systematic }),
		DelayRandom:     ofBoth(record, func(d calibration.Direction) time.Duration { return d.Random }),
		DelayLargest:    ofBoth(record, func(d calibration.Direction) time.Duration { return d.Largest }),
		Systematic:      report.Seconds(e.Systematic), Random: report.Seconds(e.Random), Largest: largest(e), Probe: r.Report.Document(),
	}
	return d
}

func ofBoth(r *calibration.Record, of func(calibration.Direction) time.Duration) document.ByDirection[report.Seconds] {
	return document.ByDirection[report.Seconds]{Forward: report.Seconds(of(r.Forward)), Reverse: report.Seconds(of(r.Reverse))}
}

func largest(e bound.Calibration) *report.Seconds {
	if !e.Trusted {
		return nil
	}
	return new(report.Seconds(e.Largest))
}
