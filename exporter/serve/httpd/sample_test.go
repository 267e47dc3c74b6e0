package httpd

import (
	"errors"
	"time"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/ondemand"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/output"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/watchers/gpsd"
	"oneway.example/exporter/watchers/pps"
)

// sampleNow is the time of the sample.
var sampleNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fakeSource is a Source with a given status.
type fakeSource struct {
	status  agent.Status
	reports *report.Store
	reloads int
	err     error
	kept    []string

	onDemand *ondemand.Service
}

func (s *fakeSource) Status() agent.Status { return s.status }

func (s *fakeSource) Reports() *report.Store { return s.reports }

func (s *fakeSource) OnDemand() *ondemand.Service { return s.onDemand }

func (s *fakeSource) Reload() error {
	s.reloads++
	return s.err
}

func (s *fakeSource) StoreIncident(path, probe string) (report.Header, error) {
	s.kept = append(s.kept, path+" "+probe)
	return report.Header{ID: "20260301t120000z-00000005", Path: path, Probe: probe}, s.err
}

var errReload = errors.New("oneway.yml:12:17: paths[0].probes[0].interval is 0s; it must be between 100µs and 1h0m0s")

func number(v, bound float64, u unit.Unit) report.Number {
	n := report.Number{Value: &v, Unit: u}
	if bound > 0 {
		n.Bound = &bound
	}
	return n
}

func line(quantity, direction string, numbers ...report.Number) report.Line {
	return report.Line{Quantity: quantity, Direction: direction, Numbers: numbers}
}

func results(forward, reverse, loss, r, both float64) []probe.Result {
	const bound = 310e-6
	rated := func(direction string, r float64) report.Line {
		l := line("R", direction, number(r, 0, unit.RFactor))
		l.Of = "G.711-PLC"
		return l
	}
	return []probe.Result{
		line("delay", "forward", number(forward, bound, unit.Seconds)),
		line("loss", "forward", number(loss, 0, unit.Ratio)),
		rated("forward", r),
		line("delay", "reverse", number(reverse, bound, unit.Seconds)),
		line("loss", "reverse", number(0, 0, unit.Ratio)),
		rated("reverse", 92),
		line("round trip", "", number(both, 0, unit.Seconds)),
	}
}

// sample has all states that the page can show.
func sample() agent.Status {
	at := func(ago time.Duration) time.Time { return sampleNow.Add(-ago) }
	one := func(name, peer string, health agent.Health, s probe.Status) agent.PathStatus {
		return agent.PathStatus{Name: name, Peer: peer, Host: probe.Target{Peer: peer}.Host(), Probes: []agent.ProbeStatus{ofProbe("stamp", health, s)}}
	}
	paths := []agent.PathStatus{
		one("calgary-to-seoul", "reflector.seoul.example.net", agent.Up, probe.Status{
			Up: true, State: "measuring", LastSuccess: at(time.Second), Results: results(0.0812, 0.0798, 0.001, 86, 0.161),
		}),
		one("bus-12-to-core", "[2001:db8::7]:8620", agent.Impaired, probe.Status{
			Up: true, State: "measuring", LastSuccess: at(time.Second), Reason: "one-way delay is not valid: remote_unsynchronized",
			Results: []probe.Result{
				line("loss", "forward", number(0.0125, 0, unit.Ratio)), line("loss", "reverse", number(0.004, 0, unit.Ratio)), line("round trip", "", number(0.212, 0, unit.Seconds)),
			},
		}),
		one("office-to-router", "192.0.2.1", agent.Down, probe.Status{
			State: "no reply", LastSuccess: at(17 * time.Minute), Reason: "udp 192.0.2.1:862 does not reply; is a STAMP reflector running there, is the port open?",
		}),
		one("lab-to-lab", "lab.example.net", agent.Failed, probe.Status{State: "failed, will be tried again", Reason: "open udp 10.0.0.9:0: cannot assign requested address"}),
		one("new-site", "new.example.net", agent.Starting, probe.Status{State: "starting"}),
	}
	paths[3].Probes[0].Restarts = 4
	paths[0].Probes = append(paths[0].Probes, ofProbe("voice-50pps", agent.Up, probe.Status{
		Up: true, State: "measuring", LastSuccess: at(0), Results: results(0.0829, 0.0804, 0.0031, 84, 0.163),
	}))
	paths[1].Probes[0].Incident = &report.Header{
		ID: "20260301t113100z-00000006", Path: "bus-12-to-core", Probe: "stamp", Kind: report.Incident, Peer: "[2001:db8::7]:8620", Begin: at(39 * time.Minute), End: at(29 * time.Minute),
		Result: report.Completed, Reason: "round trip delay of 1.21 s, before 208 ms", Report: "runs/20260301t113100z-00000006", FileBytes: 9_120, Summary: []report.Line{{Quantity: "packets", Value: "600"}},
	}
	receiver := gpsd.Details{
		Name: "gps0", Address: "127.0.0.1:2947", Device: "/dev/ttyS0", Replying: true, Connected: true, Fix: "3D",
		Used: new(9), Seen: new(14), PulseOffset: new(report.Seconds(-310)), LastMessage: at(time.Second),
	}
	pulse := pps.Details{
		Name: "pps0", Device: "/dev/pps0", Edge: "assert", Present: true, Pulses: 93544, Missed: 2, Last: at(time.Second),
		Jitter: new(report.Seconds(420)), Offset: new(report.Seconds(-1200)), Bound: new(report.Seconds(3 * time.Microsecond)),
	}
	return agent.Status{
		Envelope: document.Envelope{Schema: document.Status.Schema(), Time: sampleNow, Host: "probe1", Version: "0.1.0"},
		Started:  at(26 * time.Hour),
		Config:   agent.ConfigStatus{File: "/etc/oneway/oneway.yml", Loaded: at(3 * time.Hour)},
		Clock: agent.ClockStatus{
			Source: "chrony", State: "synchronized", Trusted: true, Bound: report.Seconds(287 * time.Microsecond),
			Offset: report.Seconds(-13 * time.Microsecond), LastUpdate: at(41 * time.Second),
		},
		Watchers: []agent.WatcherStatus{
			{Name: "gps0", Type: "gpsd", Health: agent.Up, Status: receiver.Status()}, {Name: "pps0", Type: "pps", Health: agent.Up, Status: pulse.Status()},
		},
		Receiver: receiver, Pulse: pulse,
		Reflector: &agent.ReflectorStatus{Listen: []string{":862"}, Listening: true, Packets: 1234567, Replied: 1234500, Sessions: 12},
		LoadServer: &agent.LoadServerStatus{
			Listen: []string{":8620"}, Running: true, Pin: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
			Connections: 2, Sessions: 1, Opened: 48, Refused: 3, Received: 1_250_000_000, Sent: 3_400_000_000,
		},
		OnDemand: &agent.OnDemandStatus{
			Status: ondemand.Status{
				Modules: []ondemand.ModuleStatus{{Name: "voice", Type: "stamp", Count: 50}, {Name: "stamp", Type: "stamp", Count: 10}},
				Running: 1, MaxConcurrent: 4, Requests: map[string]uint64{"success": 1840, "failure": 12, "not_allowed": 3},
			},
			Targets: []string{"*.example.net", "192.0.2.0/24"},
		},
		Links: []agent.LinkStatus{
			{Name: "lab-wan", Used: 1_234_567_890, Holder: "lab-to-lab/saturation", Since: at(12 * time.Second)},
			{Name: "mobile", Limit: 500_000_000, Used: 500_000_000, Left: new(int64(0))},
			{Name: "uplink", Limit: 5_000_000_000, Used: 1_402_000_000, Left: new(int64(3_598_000_000))},
		},
		Outputs: []agent.OutputStatus{
			{Name: "influxdb", Type: "influxdb", Status: output.Status{Destination: "https://influxdb.example.net:8086", LastSuccess: at(4 * time.Second), Written: 1_234_567, Rejected: 12}},
			{Name: "headquarters", Type: "influxdb", Status: output.Status{
				Destination: "https://hq.example.net:8181", LastSuccess: at(90 * time.Minute), Reason: "connect: connection refused",
				Waiting: 412_000, WaitingBytes: 9_300_000, Written: 1_000_000, Dropped: 345,
			}},
			{Name: "lab", Type: "influxdb", Status: output.Status{Destination: "http://192.0.2.8:8086"}, Error: "spool: mkdir /var/lib/oneway/outputs: permission denied"},
		},
		Reports: agent.ReportsStatus{Dir: "/var/lib/oneway/reports", Runs: 214, Bytes: 61_300_000},
		Paths:   append(paths, sampleTests(at)...),
	}
}

func ofProbe(name string, h agent.Health, s probe.Status) agent.ProbeStatus {
	return agent.ProbeStatus{Name: name, Type: "stamp", Health: h, State: s.State, Reason: s.Reason, LastSuccess: s.LastSuccess, Results: s.Results, Cause: s.Cause, LightValues: s.Light, StoresIncidents: true}
}

// sampleTests are paths with load tests: completed, incomplete, failed, before the first run, and after a restart of the agent.
func sampleTests(at func(time.Duration) time.Time) (paths []agent.PathStatus) {
	test := func(path, peer, name, kind string, h agent.Health, s probe.Status, run *report.Header) {
		one := agent.ProbeStatus{Name: name, Type: kind, LoadTest: true, Health: h, State: s.State, Reason: s.Reason, LastSuccess: s.LastSuccess, Results: s.Results, LastRun: run}
		if run != nil {
			run.Path, run.Probe, run.Kind, run.Peer = path, name, kind, peer
		}
		paths = append(paths, agent.PathStatus{Name: path, Peer: peer, Host: probe.Target{Peer: peer}.Host(), Probes: []agent.ProbeStatus{one}})
	}
	test("calgary-load", "reflector.seoul.example.net", "saturation", "saturation", agent.Up, probe.Status{Up: true, State: "next run at 15:47", LastSuccess: at(12 * time.Minute)}, &report.Header{
		ID: "20260301t114700z-00000004", Result: "completed", Begin: at(13 * time.Minute), End: at(13*time.Minute - 71*time.Second), FileBytes: 412_345,
		Summary: []report.Line{
			line("throughput", "forward", number(4.98e6/8, 0, unit.BytesPerSecond)), line("loss under load", "forward", number(0.008, 0, unit.Ratio)),
			line("queue", "forward", number(252_000, 4000, unit.Bytes)),
			line("working delay", "forward", report.Number{Label: "idle", Value: new(0.081), Unit: unit.Seconds}, report.Number{Label: "working", Value: new(0.48), Unit: unit.Seconds}),
			line("throughput", "reverse", number(11.9e6/8, 0, unit.BytesPerSecond)),
			{Quantity: "queue", Direction: "reverse", Value: "not filled"},
		},
	})
	test("bus-12-load", "[2001:db8::7]:8620", "train", "train", agent.Failed, probe.Status{State: "next run at 12:30", Reason: "last run incomplete: the sender's own pace bounds 18 trains of 30"}, &report.Header{
		ID: "20260301t113000z-00000003", Result: "incomplete", Reason: "session_lost", Begin: at(30 * time.Minute), End: at(30*time.Minute - 9*time.Second), FileBytes: 20_480,
		Summary: []report.Line{line("capacity, 1500 B", "forward", number(1.82e6/8, 0, unit.BytesPerSecond)), {Quantity: "trains", Value: "12 of 30 clean"}},
	})
	test("office-load", "192.0.2.1", "saturation", "saturation", agent.Failed, probe.Status{State: "next run at 13:00", Reason: "last run refused: the load server refuses: token unknown"}, nil)
	test("lab-load", "lab.example.net", "size-sweep-nightly", "size_sweep", agent.Failed, probe.Status{State: "next run at 22:00"}, &report.Header{
		ID: "20260301t100000z-00000001", Result: "failed", Reason: "unreachable", Begin: at(2 * time.Hour), End: at(2*time.Hour - 4*time.Minute),
	})
	test("new-load", "new.example.net", "tcp", "tcp", agent.Starting, probe.Status{State: "next run at 22:00"}, nil)
	return paths
}
