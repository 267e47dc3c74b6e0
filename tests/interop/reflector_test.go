package interop

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/testbed"
)

// summary is the checked part of stamp-suite's JSON report.
type summary struct {
	Sent     int     `json:"packets_sent"`
	Received int     `json:"packets_received"`
	Lost     int     `json:"packets_lost"`
	MaxRTT   float64 `json:"max_rtt_ms"`
	OWD      struct {
		Samples       int     `json:"samples"`
		ForwardMin    float64 `json:"forward_min_ms"`
		ForwardMedian float64 `json:"forward_median_ms"`
		ForwardMax    float64 `json:"forward_max_ms"`
		ReverseMin    float64 `json:"reverse_min_ms"`
		ReverseMedian float64 `json:"reverse_median_ms"`
		ReverseMax    float64 `json:"reverse_max_ms"`
		Quality       quality `json:"clock_quality"`
	} `json:"owd"`
	Measurements struct {
		Late       int `json:"late_replies"`
		Duplicates int `json:"duplicate_replies"`
		Unknown    int `json:"unknown_replies"`
		Additional int `json:"additional_replies"`
		Validation struct {
			Rejected int                  `json:"rejected_replies"`
			Flags    flags                `json:"flags"`
			ByType   map[string]typeCount `json:"by_type"`
			HMAC     struct {
				NotRequested, Missing, Verified, Unverified, Failed int
			} `json:"hmac"`
		} `json:"tlv_validation"`
		Direct struct {
			Forward *int `json:"forward_missing"`
			Reverse *int `json:"reverse_missing"`
		} `json:"direct_measurement"`
		FollowUp struct {
			Matched   int `json:"matched"`
			Unmatched int `json:"unmatched"`
			Ambiguous int `json:"ambiguous"`
			Delay     struct {
				Min *float64 `json:"min_ms"`
				Max *float64 `json:"max_ms"`
			} `json:"reverse_delay"`
		} `json:"follow_up"`
	} `json:"measurements"`
}

type quality struct {
	Both    int     `json:"both_synchronized"`
	Largest float64 `json:"max_combined_error_ms"`
}

type flags struct {
	Unrecognized int `json:"unrecognized"`
	Malformed    int `json:"malformed"`
	Integrity    int `json:"integrity_failed"`
}

type typeCount struct {
	Observed int   `json:"observed"`
	Flags    flags `json:"flags"`
}

// local is one way to run stamp-suite as a sender, with oneway as its reflector.
type local struct {
	name          string
	args          []string
	authenticated bool
	options       reflector.Options
	// understood are the TLVs that every reply must return unflagged, unknown those that it must return with the U flag
	// (RFC 8972 section 4).
	understood, unknown []stampfmt.TLVType
	// again is how often it repeats a TLV whose request oneway does not satisfy.
	again int
}

func cases() []local {
	padding := []string{"--extra-padding", "100"}
	all := slices.Concat([]string{"--timestamp-info", "--cos", "--dscp", "46", "--direct-measurement", "--location", "--follow-up-telemetry"}, padding)
	types := []stampfmt.TLVType{
		stampfmt.TypeExtraPadding, stampfmt.TypeTimestampInformation, stampfmt.TypeClassOfService,
		stampfmt.TypeDirectMeasurement, stampfmt.TypeFollowUp,
	}
	location := []stampfmt.TLVType{stampfmt.TypeLocation}
	// Excluded: --micro-session-id, with which it accepts no reply from a reflector that is not part of a link
	// aggregation (RFC 9534).
	return []local{
		{name: "base packets"},
		{name: "base packets, PTP", args: []string{"-K", "PTP", "--reflector-utc-offset", "37"}},
		{name: "base packets, our reflector stateless", options: reflector.Options{Stateless: true}},
		{name: "SSID 4711, Poisson", args: []string{"--ssid", "4711", "--on-zero-ssid", "stop", "--send-schedule", "poisson"}},
		{name: "base packets, authenticated", authenticated: true},
		{name: "extra padding", args: padding, understood: types[:1]},
		{name: "location", args: []string{"--location"}, unknown: location},
		{name: "timestamp information", args: []string{"--timestamp-info"}, understood: []stampfmt.TLVType{stampfmt.TypeTimestampInformation}},
		{name: "class of service", args: []string{"--cos", "--dscp", "46"}, understood: []stampfmt.TLVType{stampfmt.TypeClassOfService}},
		{name: "direct measurement", args: []string{"--direct-measurement"}, understood: []stampfmt.TLVType{stampfmt.TypeDirectMeasurement}},
		{name: "follow-up telemetry", args: []string{"--follow-up-telemetry"}, understood: []stampfmt.TLVType{stampfmt.TypeFollowUp}},
		{name: "six TLVs", args: all, understood: types, unknown: location},
		{name: "six TLVs, authenticated", args: all, understood: types, unknown: location, authenticated: true},
		{name: "six TLVs, authenticated, PTP", args: slices.Concat(all, []string{"-K", "PTP", "--reflector-utc-offset", "37"}), understood: types, unknown: location, authenticated: true},
		{
			name: "access report", unknown: []stampfmt.TLVType{stampfmt.TypeAccessReport}, again: 1,
			args: []string{"--access-report", "1", "--access-report-timeout", "1", "--access-report-retries", "1"},
		},
		{name: "bit errors", args: []string{"--ber"}, understood: types[:1], unknown: []stampfmt.TLVType{240, 241, 242}},
		{name: "malformed: length", args: []string{"--malformed", "bad-length"}},
		{name: "malformed: length, authenticated", args: []string{"--malformed", "bad-length"}, authenticated: true},
		{name: "malformed: flags", args: []string{"--malformed", "bad-flags"}},
		{name: "malformed: flags, authenticated", args: []string{"--malformed", "bad-flags"}, authenticated: true},
	}
}

const requests = 40

func TestOurReflectorRepliesToStampSuite(t *testing.T) {
	requireSuite(t)
	for _, address := range []string{"127.0.0.1", "::1"} {
		for _, c := range cases() {
			t.Run(c.name+"/"+address, func(t *testing.T) {
				s := c.measure(t, address)
				results.add(t, line{
					asks: "stamp-suite", replies: "oneway", what: c.name + ", " + address,
					sent: strconv.Itoa(s.Sent), answered: strconv.Itoa(s.Received),
					forward: fmt.Sprint(milliseconds(s.OWD.ForwardMedian)), reverse: fmt.Sprint(milliseconds(s.OWD.ReverseMedian)),
				})
				c.check(t, s)
			})
		}
	}
}

// measure runs the oneway reflector and stamp-suite as its sender.
func (c local) measure(t *testing.T, address string) (s summary) {
	t.Helper()
	out := c.run(t, address, "json")
	found := false
	for text := range strings.Lines(out) {
		if strings.Contains(text, `"type":"summary"`) {
			if err := json.Unmarshal([]byte(text), &s); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			found = true
		}
	}
	if !found {
		t.Fatalf("stamp-suite printed no summary: %s", out)
	}
	return s
}

func (c local) run(t *testing.T, address, format string) (stdout string) {
	t.Helper()
	path := requireSuite(t)
	peer, theirs := c.serve(t, address)
	args := []string{
		"-r", peer.Addr().String(), "-S", address, "-p", strconv.Itoa(int(peer.Port())), "-c", strconv.Itoa(requests),
		"-d", "3", "-L", "2", "--clock-synchronized", "--output-format", format,
	}
	if c.authenticated {
		args = append(args, "-A", "A", "--hmac-key-file", theirs, "--verify-tlv-hmac")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append(args, c.args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("stamp-suite: %v\n%s", err, &stderr)
	}
	if t.Failed() {
		t.Log(stderr.String())
	}
	return string(out)
}

// serve runs the oneway reflector until the test ends.
func (c local) serve(t *testing.T, address string) (at netip.AddrPort, theirKey string) {
	t.Helper()
	o := c.options
	o.Listen = []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(address), 0)}
	if c.authenticated {
		key := writeSecret(t)
		secrets, err := keyfile.Load(key.ours)
		if err != nil {
			t.Fatal(err)
		}
		o.Keys, o.RequireKey = []*stampfmt.Key{stampfmt.NewKey(secrets[0])}, true
		theirKey = key.theirs
	}
	r, err := reflector.New(o, reflector.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: startClock(t)})
	if err != nil {
		t.Fatal(err)
	}
	testbed.Background(t, r.Run)
	<-r.Started()
	return r.Addrs()[0], theirKey
}

func (c local) check(t *testing.T, s summary) {
	t.Helper()
	m := &s.Measurements
	if s.Sent != requests+c.again || s.Received != s.Sent || s.Lost != 0 {
		t.Errorf("sent %d, %d replies, %d lost", s.Sent, s.Received, s.Lost)
	}
	if m.Late+m.Duplicates+m.Unknown+m.Additional+m.Validation.Rejected > 0 {
		t.Errorf("invalid replies by stamp-suite's report: %+v", *m)
	}
	c.checkFlags(t, s)
	checkTheirDelays(t, s)
	if c.has(stampfmt.TypeDirectMeasurement) && (m.Direct.Forward == nil || *m.Direct.Forward != 0 || *m.Direct.Reverse != 0) {
		t.Errorf("direct measurement: %+v", m.Direct)
	}
	if f := &m.FollowUp; c.has(stampfmt.TypeFollowUp) {
		if f.Matched < requests*9/10 || f.Unmatched+f.Ambiguous > 0 || *f.Delay.Min < -1 || *f.Delay.Max > s.MaxRTT+1 {
			t.Errorf("follow-up telemetry: %+v", *f)
		}
	}
}

func (c local) has(tlv stampfmt.TLVType) bool { return slices.Contains(c.understood, tlv) }

func (c local) checkFlags(t *testing.T, s summary) {
	t.Helper()
	v := &s.Measurements.Validation
	for _, tlv := range c.understood {
		if got := v.ByType[strconv.Itoa(int(tlv))]; got != (typeCount{Observed: requests}) {
			t.Errorf("TLV %d: %+v", tlv, got)
		}
	}
	for _, tlv := range c.unknown {
		if got := v.ByType[strconv.Itoa(int(tlv))]; got.Observed == 0 || got.Flags != (flags{Unrecognized: got.Observed}) {
			t.Errorf("unsupported TLV %d: %+v", tlv, got)
		}
	}
	// It does not report the M flag of a TLV that exceeded the packet.
	if v.Flags.Malformed > 0 || v.Flags.Integrity > 0 {
		t.Errorf("flags %+v", v.Flags)
	}
	if v.HMAC.Failed > 0 || c.authenticated && len(c.understood) > 0 && (v.HMAC.Verified != requests || v.HMAC.Missing > 0) {
		t.Errorf("HMAC TLV: %+v", v.HMAC)
	}
}

// checkTheirDelays is like checkDelays. stamp-suite's own timestamps may be delayed in user space by a busy machine.
func checkTheirDelays(t *testing.T, s summary) {
	t.Helper()
	const space = 1.0 // ms
	o := &s.OWD
	if o.Samples != s.Sent || o.Quality.Both != s.Sent {
		t.Errorf("%d one-way delays, %d of synchronized clocks", o.Samples, o.Quality.Both)
	}
	if o.Quality.Largest < ourBound.Seconds()*1e3 {
		t.Errorf("stamp-suite received an Error Estimate of %v ms, want %v", o.Quality.Largest, ourBound)
	}
	if o.ForwardMin < -space || o.ReverseMin < -space || o.ForwardMax > s.MaxRTT+space || o.ReverseMax > s.MaxRTT+space {
		t.Errorf("invalid delays %+v, largest round trip %v ms", *o, s.MaxRTT)
	}
}

func milliseconds(v float64) time.Duration {
	return time.Duration(v * 1e6).Round(100 * time.Nanosecond)
}

// TestOurReflectorFailsAWrongKey: a sender with another key gets no reply.
func TestOurReflectorFailsAWrongKey(t *testing.T) {
	path := requireSuite(t)
	at, _ := local{authenticated: true}.serve(t, "127.0.0.1")
	out, err := exec.Command(path, "-r", "127.0.0.1", "-p", strconv.Itoa(int(at.Port())), "-c", "5", "-d", "2", "-L", "1",
		"-A", "A", "--hmac-key", strings.Repeat("ab", 32), "--output-format", "json").Output()
	var s summary
	if jsonErr := json.Unmarshal(out, &s); jsonErr != nil || s.Sent != 5 || s.Received != 0 || s.Lost != 5 {
		t.Errorf("got %v, %v, want no reply: %s", err, jsonErr, out)
	}
}

// TestCSVOfStampSuiteHasTheSameResults guards against a wrong interpretation of the JSON.
func TestCSVOfStampSuiteHasTheSameResults(t *testing.T) {
	requireSuite(t)
	rows, err := csv.NewReader(strings.NewReader(local{}.run(t, "127.0.0.1", "csv"))).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%v: %v", err, rows)
	}
	last := rows[len(rows)-1]
	for column, want := range map[string]string{"packets_sent": "40", "packets_received": "40", "packets_lost": "0"} {
		if i := slices.Index(rows[0], column); i < 0 || last[i] != want {
			t.Errorf("column %s is not %s in %v", column, want, rows)
		}
	}
}
