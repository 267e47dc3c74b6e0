package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/exporter-toolkit/web"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/families"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
)

const exampleFile = "../../../deploy/oneway.yml"

// Lines of the example: one that has a setting commented out, and one of its path with load tests.
var (
	setting  = regexp.MustCompile(`(?m)^( *)#((?:- )?[a-z_]+:( |$))`)
	loadTest = regexp.MustCompile(`(?m)^  #(- |  )`)
)

// uncommented is the example with all settings.
func uncommented(example []byte) string {
	return setting.ReplaceAllString(loadTest.ReplaceAllString(string(example), "  $1"), "$1$2")
}

func TestExampleConfigurationIsValid(t *testing.T) {
	got, _, err := agent.Check(agent.Options{ConfigFile: exampleFile, Types: families.Types()})
	if got.Warnings = nil; err != nil || !reflect.DeepEqual(got, agent.Summary{Paths: 4, Probes: 6, Reflector: true}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The path with load tests is valid as the example tells to use it: the first # of its lines removed, and a token.
func TestLoadTestsOfTheExampleAreValidWithAToken(t *testing.T) {
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "oneway.yml")
	last := strings.LastIndex(string(example), "  #- name:")
	err = errors.Join(
		os.WriteFile(file, []byte(string(example[:last])+loadTest.ReplaceAllString(string(example[last:]), "  $1")), 0o600),
		os.WriteFile(filepath.Join(filepath.Dir(file), "core.token"), []byte("secret\n"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := agent.Check(agent.Options{ConfigFile: file, Types: families.Types()})
	if got.Warnings = nil; err != nil || !reflect.DeepEqual(got, agent.Summary{Paths: 5, Probes: 6 + len(testKinds()), Reflector: true}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestEverySettingOfTheExampleIsValid uncomments all of them.
func TestEverySettingOfTheExampleIsValid(t *testing.T) {
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	all := uncommented(example)
	for name, content := range map[string]string{
		"reflector.key": "secret\n", "office.key": "secret\n", "tokens": "", "core.token": "secret\n", "influxdb.token": "secret\n", "calibration.json": `{"version": 1, "interfaces": []}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Hostname()
	hosts := fmt.Sprintf("- {name: %q, address: 192.0.2.1}\n- {name: peer, address: 192.0.2.2}\n", self)
	if err := errors.Join(err, os.Mkdir(filepath.Join(dir, "conf.d"), 0o755), os.WriteFile(filepath.Join(dir, "hosts.yml"), []byte(hosts), 0o600)); err != nil {
		t.Fatal(err)
	}
	writeCertificate(t, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	writeCertificate(t, filepath.Join(dir, "agent.pem"), filepath.Join(dir, "agent.key"))
	writeCertificate(t, filepath.Join(dir, "core-ca.pem"), filepath.Join(dir, "core-ca-key.pem"))
	writeCertificate(t, filepath.Join(dir, "clients.pem"), filepath.Join(dir, "clients-key.pem"))
	if err := os.WriteFile(filepath.Join(dir, "holidays.txt"), []byte("2126-12-25 Christmas Day\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := agent.Check(agent.Options{ConfigFile: file, Types: families.Types()}); err != nil {
			t.Error(err)
		}
	}
	// An output of version 2 with a token takes no key of another version and no password.
	all = regexp.MustCompile(`(?m)^ *(database|retention_policy|username|password_file): .*\n`).ReplaceAllString(all, "")
	// Source static takes a bound only, chrony takes all other clock settings. Planned work is once, or weekly.
	withoutBound := regexp.MustCompile(`(?m)^ *(bound|weekly): .*\n`)
	check("chrony.yml", withoutBound.ReplaceAllString(all, ""))
	withoutDaemon := regexp.MustCompile(`(?m)^  (address|interval|socket_dir|max_clock_error|trust_local|  from|  to): .*\n`)
	check("static.yml", withoutDaemon.ReplaceAllString(strings.Replace(all, "source: chrony", "source: static", 1), ""))
}

// TestExampleHasEveryKey compares the example with the structs that it is decoded into; sections are decoded by the
// agent.
func TestExampleHasEveryKey(t *testing.T) {
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, s := range []any{config.Config{}, config.Path{}, config.Probe{}, config.Item{}, stamp.Options{}} {
		for f := range reflect.TypeOf(s).Fields() {
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if f.IsExported() && key != "" && key != "-" && !regexp.MustCompile(`\b`+key+":").Match(example) {
				missing = append(missing, fmt.Sprintf("%T.%s", s, key))
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("not in the example: %q", missing)
	}
}

// TestDefaultsOfTheExampleAreTheDefaults decodes the probe with all its settings and compares it with the defaults.
func TestDefaultsOfTheExampleAreTheDefaults(t *testing.T) {
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	all := uncommented(example)
	all = regexp.MustCompile(`(?m)^( *bound|include): .*\n`).ReplaceAllString(all, "")
	c, err := config.Parse(exampleFile, []byte(all))
	if err != nil {
		t.Fatal(err)
	}
	var got stamp.Options
	if err := c.Paths[1].Probes[0].Options.Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := stamp.DefaultOptions()
	want.KeyFile, want.Local, want.Interface, want.Hardware = got.KeyFile, got.Local, got.Interface, got.Hardware // without a default
	want.Size = 172                                                                                               // 0 means 172, or more with a key
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the example says %+v\nthe defaults are %+v", got, want)
	}
}

// writeCertificate makes a self-signed certificate and its key.
func writeCertificate(t *testing.T, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "oneway.yml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCheckConfigReportsAllErrors(t *testing.T) {
	good := write(t, "paths: [{name: a, peer: h, probes: [{type: stamp}]}]")
	bad := write(t, "paths: [{name: a, peer: h, probes: [{type: stamp, interval: 0s}]}]")
	var out, problems bytes.Buffer
	if err := checkConfigs(&out, &problems, []string{good}, "", false); err != nil || out.String() != good+": ok: 1 path, 1 probe\n" {
		t.Errorf("%v: %q", err, out.String())
	}
	out.Reset()
	err := checkConfigs(&out, &problems, []string{bad, good}, filepath.Join(t.TempDir(), "absent.yml"), false)
	if err == nil || !strings.Contains(err.Error(), "2 files") {
		t.Errorf("error is %v", err)
	}
	want := bad + ":1:61: paths[0].probes[0].interval is 0s; it must be between 100µs and 1h0m0s\n"
	if !strings.HasSuffix(problems.String(), want) || !strings.Contains(problems.String(), "absent.yml") {
		t.Errorf("problems:\n%swant, after one of absent.yml,\n%s", problems.String(), want)
	}
}

func TestCheckConfigNamesNoPackages(t *testing.T) {
	key := write(t, "secret\n")
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	err := checkConfigs(&out, &problems, []string{write(t, "reflector: {key_file: "+key+"}")}, "", false)
	if want := "reflector.key_file cannot be used: " + key + " has mode 0644"; err == nil || !strings.Contains(problems.String(), want) {
		t.Errorf("got %v: %s, want %s", err, &problems, want)
	}
}

// TCP for one minute each hour, with mixed flows, and a two-way run each night, within the quota of their link.
func TestSchedulesOfTCPForWeeksAreAccepted(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := write(t, strings.ReplaceAll(`links: [{name: uplink, quota_bytes: 5GB}]
paths:
  - name: a
    peer: h
    probes:
      - {type: tcp, name: hourly, link: uplink, token_file: TOKEN, every: 1h, jitter: 5m, duration: 1m, max_bytes: 100MB, flows: 4, congestion_control: [cubic, reno], link_rate: {forward: 2.5Mbit, reverse: 10Mbit}}
      - {type: tcp, name: two-way, link: uplink, token_file: TOKEN, every: 24h, windows: ["02:00-05:00"], directions: [reverse, forward], duration: 5m, overlap_start: 1m, overlap_duration: 3m}
`, "TOKEN", token))
	var out, problems bytes.Buffer
	if err := checkConfigs(&out, &problems, []string{file}, "", false); err != nil || out.String() != file+": ok: 1 path, 2 probes\n" {
		t.Errorf("%v: %s%s", err, &out, &problems)
	}
}

func TestExitStatusDistinguishesUsageFromFailure(t *testing.T) {
	bad := write(t, "paths: [")
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"check-config", exampleFile}, 0},
		{[]string{"check-config", bad}, exitFailure},
		{[]string{"check-config"}, exitUsage},
		{[]string{"agent", "--config.file=" + bad}, exitUsage},
		{[]string{"agent", "--no-metrics.classic-histograms", "--no-metrics.native-histograms"}, exitUsage},
		{[]string{"agent", "--config.file=" + exampleFile, "--web.listen-address=203.0.113.1:0"}, exitFailure},
		{[]string{"agent", "--web.external-host=http://probe"}, exitUsage},
		{[]string{"agent", "--log.level=loud"}, exitUsage},
		{[]string{"agent", "--no-such-flag"}, exitUsage},
		{[]string{"targets", "--port=0", "../../../deploy/mesh/oneway.yml"}, exitUsage},
	} {
		app := kingpin.New("oneway", "").Terminate(func(int) { t.Errorf("%q: kingpin ended the program", c.args) })
		agentCommand(app)
		checkConfigCommand(app)
		targetsCommand(app)
		if got := run(app, c.args); got != c.want {
			t.Errorf("%q: status %d, want %d", c.args, got, c.want)
		}
	}
}

func TestAgentServesPort9862ByDefault(t *testing.T) {
	app := kingpin.New("oneway", "")
	agentCommand(app)
	flag := app.GetCommand("agent").GetFlag("web.listen-address")
	if at := flag.Model().Default; !slices.Equal(at, []string{":9862"}) {
		t.Errorf("the agent listens on %q, want port 9862 of all addresses", at)
	}
}

// TestAgentMeasuresItselfAndServesIt runs the complete program over the loopback interface.
func TestAgentMeasuresItselfAndServesIt(t *testing.T) {
	reflectorAt, webAt := freeport.Address(t), freeport.Address(t)
	f := &agentFlags{
		classic: true, native: true,
		config: write(t, fmt.Sprintf("clock: {source: static, bound: 20us}\nreflector: {listen: [%q]}\npaths:\n"+
			"  - {name: self, peer: %q, probes: [{type: stamp, interval: 5ms, window: 1s, loss_timeout: 200ms}]}\n", reflectorAt, reflectorAt)),
		web: &web.FlagConfig{WebListenAddresses: &[]string{webAt}, WebSystemdSocket: new(bool), WebConfigFile: new(string)},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx, slog.New(slog.DiscardHandler)) }()
	waitFor(t, "http://"+webAt+"/metrics", func(body string) bool {
		return strings.Contains(body, `oneway_delay_min_seconds{direction="reverse",path="self",probe="stamp"} `)
	})
	// Each part publishes at its own times.
	for _, want := range []string{
		`oneway_probe_up{path="self",probe="stamp"} 1`, `oneway_packets_lost_total{direction="forward",path="self",probe="stamp"} 0`,
		`oneway_remote_clock_synchronized{path="self",probe="stamp"} 1`, `oneway_config_last_reload_successful 1`, `oneway_clock_synchronized{clock="static"} 1`, `oneway_reflector_sessions 1`,
	} {
		waitFor(t, "http://"+webAt+"/metrics", func(body string) bool { return strings.Contains(body, want+"\n") })
	}
	waitFor(t, "http://"+webAt+"/", func(body string) bool { return strings.Contains(body, "The one probe is measuring") })
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("did not end")
	}
}

// waitFor gets a page until done accepts it.
func waitFor(t *testing.T, url string, wanted func(string) bool) string {
	t.Helper()
	var body string
	var err error
	if !await.Within(await.Timeout, func() bool { body, err = getPage(url); return err == nil && wanted(body) }) {
		t.Fatalf("%s is not as wanted after %v: %v\n%s", url, await.Timeout, err, body)
	}
	return body
}

func getPage(url string) (string, error) {
	resp, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(body), err
}

func TestSizeOfConfigurationCountsWatchers(t *testing.T) {
	if got, want := sizeOf(agent.Summary{Paths: 1, Probes: 2, Watchers: 2, Outputs: 1}), "1 path, 2 probes, 2 watchers, 1 output"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
