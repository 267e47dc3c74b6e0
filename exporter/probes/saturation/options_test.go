package saturation_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/saturation"
	"oneway.example/tests/probeoptions"
)

func sampleForward() []sample.Direction { return []sample.Direction{sample.Forward} }

func TestAllOptionsAreRead(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := probeoptions.Configured(t, saturation.NewType(), `mode: sweep
every: 1h
jitter: 10m
windows: ["22:00-06:00", "sat,sun"]
link: uplink
load_server: "[2001:db8::1]:8620"
token_file: `+token+`
pin: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
directions: [reverse, forward]
dscp: 46
family: ipv6
max_wait: 1m
timeout: 10m
drain_timeout: 10s
rate: {forward: 5Mbit, reverse: 12Mbit/s}
packet_bytes: 1280
duration: 5m
idle: {duration: 1s, interval: 20ms}
skip: 5s
sweep: {from: {forward: 500kbit, reverse: 1Mb/s}, factor: 1.3, step: 10s, max_loss: 0.01, lossy_steps: 3}
search: {step: 500ms, lower: 20ms, upper: 60ms}
`)
	if err != nil {
		t.Error(err)
	}
}

func TestWrongOptionsNameTheExpectation(t *testing.T) {
	for options, want := range map[string]string{
		"token_file: /absent":                   "token_file cannot be used: keyfile: open /absent: no such file or directory",
		"cert_file: /absent\nkey_file: /absent": "cert_file cannot be used with key_file: keyfile: open /absent",
		"ca_file: /absent":                      "ca_file cannot be used: open /absent",
		"mode: fast":                            "mode is \"fast\"; it must be fixed, sweep or search",
		"":                                      "rate.forward is missing; write a rate above the link's, such as 5Mbit",
		"rate: {forward: 5Mbit}":                "rate.reverse is missing; write a rate above the link's, such as 5Mbit",
		"directions: [reverse]\nrate: {forward: 5Mbit}": "rate.reverse is missing",
		"rate: {forward: 5}":                            "it has no unit; write 5bit, 5kbit or 5Mbit",
		"rate: {forward: 5MB}":                          "a rate is in bits a second; write 40Mbit",
		"packet_bytes: 40":                              "packet_bytes is 40; it must be between 80 and 65535",
		"duration: 1ms":                                 "duration is 1ms; it must be between 1s and 30m",
		"every: 1s":                                     "every is 1s; it must be between 10s",
		"every: 1m\njitter: 40s":                        "jitter is 40s; it must be between 0s and 30s",
		"timeout: 4h1m":                                 "timeout is 4h1m0s; it must be between 0s and 4h0m0s",
		"windows: [always]":                             "windows[0]",
		"directions: [up]":                              "directions[0] is \"up\"; it must be forward or reverse",
		"directions: [forward, forward]":                "name each direction once",
		"directions: []":                                "directions is empty",
		"load_server: \"host:0\"":                       "load_server is \"host:0\"; its port must be between 1 and 65535",
		"cert_file: x":                                  "key_file is missing; it has the private key of cert_file",
		"dscp: 64":                                      "dscp is 64; it must be between 0 and 63",
		"family: ipx":                                   "family is \"ipx\"; it must be any, ipv4 or ipv6",
		"local: here":                                   "local is \"here\"; it must be an IP address",
		"local: 192.0.2.7\nfamily: ipv6":                "local is 192.0.2.7, which is not of family ipv6",
		"load_server: 192.0.2.1\nlocal: \"::1\"":        "load_server is 192.0.2.1, which is not of family ipv6, the family of the local address ::1",
		"checksum: false\nfamily: ipv6":                 "checksum is false, which is for IPv4 only",
		"rate: {forward: 10Gbit}\nduration: 10m":        "more than the 4194304 packets",
		"mode: sweep\nrate: {forward: 5Mbit}\nsweep: {factor: 1}":               "sweep.factor is 1; it must be above 1, such as 1.25, and at most 1000",
		"mode: sweep\nrate: {forward: 5Mbit}\nsweep: {from: {forward: 50Mbit}}": "sweep.from.forward is 50Mbit; it must be at most rate.forward, 5Mbit",
		"mode: sweep\ntogether: true":                                           "together is for mode fixed",
		"sweep: {max_loss: 1}":                                                  "sweep.max_loss is 1; it must be a share",
		"sweep: {lossy_steps: -1}":                                              "sweep.lossy_steps is -1",
		"mode: search\nrate: {forward: 5Mbit}\nsearch: {step: 40s}":             "search.step is 40s; the duration of 30s must have at least one report, here one each 40s",
		"drain_timeout: 1ms":                                                    "drain_timeout is 1ms; it must be between 100ms and 2m",
		"speed: 5":                                                              "is unknown",
	} {
		if err := probeoptions.Configured(t, saturation.NewType(), options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", options, err, want)
		}
	}
}

func TestLoadServerIsThePeerOnItsOwnPortUnlessConfigured(t *testing.T) {
	shared, own := loadsession.DefaultOptions(), wibroOptions()
	kind, err := saturation.NewKind(shared, own)
	if err != nil {
		t.Fatal(err)
	}
	for peer, ok := range map[string]bool{
		"192.0.2.1": true, "192.0.2.1:862": true, "host.example": true, "host.example:9": true, "2001:db8::1": true, "[2001:db8::1]:862": true, "": false, "a b": false,
	} {
		_, err := loadsession.NewTest(probe.Target{Path: "p", Probe: "q", Peer: peer}, shared, kind)
		if _, option := errors.AsType[*option.Error](err); (err == nil) != ok || err != nil && !option {
			t.Errorf("peer %q: %v", peer, err)
		}
	}
}

func TestBytesAreThoseOfThePlan(t *testing.T) {
	shared, own := loadsession.DefaultOptions(), wibroOptions()
	kind, err := saturation.NewKind(shared, own)
	if err != nil {
		t.Fatal(err)
	}
	// 30 s of 5 and 12 Mb/s, and 50 packets of 1410 bytes before and after each.
	want := int64(30*(5e6+12e6)/8) + 4*50*1410
	if got := kind.Bytes(math.MaxInt64); got < want || got > want+3000 {
		t.Errorf("%d bytes, want %d or slightly more", got, want)
	}
	if got, want := kind.Duration(), 68*time.Second; got != want {
		t.Errorf("%v, want %v", got, want)
	}
	own.Together = true
	if kind, err = saturation.NewKind(shared, own); err != nil {
		t.Fatal(err)
	}
	if got, want := kind.Duration(), 34*time.Second; got != want {
		t.Errorf("both together: %v, want %v", got, want)
	}
}

func TestPacedSegmentsKeepTheirRate(t *testing.T) {
	s := udptraffic.NewSession(&bottleneck{}, udptraffic.SessionOptions{})
	for _, r := range []option.Rate{64e3 / 8, 12e6 / 8, 1e9 / 8, 10e9 / 8} {
		p := s.Plan(s.PacedSegment(1410, r, time.Second))
		if err := p.Check(); err != nil {
			t.Error(err)
		}
		segment := p.Segments[0]
		got := float64(segment.PayloadBytes+28) / segment.Interval.Seconds()
		if off := got/float64(r) - 1; off > 1e-3 || off < -1e-3 {
			t.Errorf("%v: %v, %.4f %% off", r, option.Rate(got), 100*off)
		}
		if d := segment.Duration(); d > time.Second || d < time.Second-segment.Interval {
			t.Errorf("%v lasts %v", r, d)
		}
	}
}
