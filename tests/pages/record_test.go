package pages

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/await"
	"oneway.example/tests/lab"
	"oneway.example/tests/loadsite"
)

var record = flag.String("record", "", "kinds of load tests, separated by commas, or all: record their reports of testdata again, by load tests over the emulated WiBro link (root, five minutes for all)")

// recorded are the options of one load test of each kind, which end in seconds and leave reports of some kilobytes.
var recorded = map[string][]string{
	"saturation": {"duration: 6s", "rate: {forward: 3Mbit, reverse: 12Mbit}", "idle: {duration: 1s, interval: 40ms}", "skip: 1s", "drain_timeout: 3s"},
	"size_sweep": {"packet_bytes: [64, 512, 1410]", "packet_rates: [50, 100]", "cell_duration: 1s"},
	"train":      {"train_interval: 200ms", "group_pause: 1s", "trains: 9", "payload_bytes: [1472, 800]", "long_train_packets: 0"},
	"tcp":        {"duration: 8s"},
	"tcp_sweep":  {"send_buffer_bytes: [17KiB, 64KiB, 256KiB, auto]", "cell_duration: 2s", "omit: 500ms", "repetitions: 1"},
	"tcp_short":  {"flow_bytes: [10kB, 100kB]", "repetitions: 8"},
	"message":    {"duration: 2s"},
}

// TestRecord writes testdata/KIND.json.gz, if requested: a change of the format of reports, or of what their pages show, needs it.
func TestRecord(t *testing.T) {
	if *record == "" {
		return
	}
	wanted := slices.Collect(maps.Keys(recorded))
	if *record != "all" {
		wanted = strings.Split(*record, ",")
	}
	profile, err := lab.LoadProfile("../lab/profiles/wibro.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := loadsite.New(t, binary, lab.Options{Profile: profile})
	s.Start(t, s.Network.Server, "reflect", "--clock=static", "--clock-bound=1ms")
	config := "paths:\n" + fmt.Sprintf("  - {name: incident, peer: %q, probes: [{type: stamp, interval: 100ms}]}\n", s.At.Addr())
	every := time.Duration(len(wanted)) * 35 * time.Second // the first run is anywhere in the interval, and one takes half a minute
	for _, kind := range wanted {
		options := recorded[kind]
		if options == nil {
			t.Fatalf("%q is none of the recorded kinds", kind)
		}
		all := []string{
			"type: " + kind, "every: " + every.String(), "link: " + kind, "load_server: " + s.At.String(), "token_file: token", "pin: " + s.Pin,
		}
		config += fmt.Sprintf("  - {name: %s, peer: %q, probes: [{%s}]}\n", kind, s.At.Addr(), strings.Join(append(all, options...), ", "))
	}
	a := s.Agent(t, config)
	var runs []loadsite.Reported
	end := time.Now().Add(10 * time.Minute)
	for missing := true; missing && time.Now().Before(end); {
		time.Sleep(2 * time.Second) // polls: the runs take minutes
		runs, missing = a.Runs(t), false
		for _, kind := range wanted {
			missing = missing || !slices.ContainsFunc(runs, func(r loadsite.Reported) bool { return r.Path == kind && r.Result == "completed" })
		}
	}
	t.Log(runs)
	await.That(t, "an incident report", func() bool {
		r, err := a.HTTP.Post("http://"+loadsite.AgentAddress+"/-/incident?path=incident", "", nil)
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusCreated
	})
	for _, r := range a.Runs(t) {
		if r.Result == "completed" {
			keep(t, r.Path, a.Get(t, "/runs/"+r.ID))
		}
	}
}

// keep writes a report without its long lists, such as packets: pages show none of them.
func keep(t *testing.T, name string, text []byte) {
	t.Helper()
	var r struct {
		Header, Summary, View json.RawMessage
		Body                  any
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"header": r.Header, "summary": r.Summary, "view": r.View, "body": shortened(r.Body)})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	_, err = zipped.Write(text)
	if err := errors.Join(err, zipped.Close(), os.WriteFile("testdata/"+name+".json.gz", b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// shortened has the first elements of each list.
func shortened(v any) any {
	switch v := v.(type) {
	case []any:
		v = v[:min(len(v), 16)]
		for i := range v {
			v[i] = shortened(v[i])
		}
		return v
	case map[string]any:
		for key := range v {
			v[key] = shortened(v[key])
		}
	}
	return v
}
