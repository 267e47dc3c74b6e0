package host

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"oneway.example/exporter/core/hostport"
	"oneway.example/tests/await"
	"oneway.example/tests/namespace"
	"oneway.example/tests/oneway"
	"oneway.example/tests/sandbox"
)

const (
	agentAddress   = "127.0.0.1:" + hostport.Agent
	controlAddress = "127.0.0.1:9863"
)

// site is a host that start.sh has started in a sandbox.
type site struct {
	*sandbox.Sandbox
	client *http.Client
	log    *sandbox.Log
}

// need skips without root, or without one of the programs.
func need(t *testing.T, programs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, NOT PASSED: chronyd and gpsd are started as root")
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED, NOT PASSED: needs %s", program)
		}
	}
}

// start builds the programs and starts them, with these settings.
func start(t *testing.T, options string) *site {
	t.Helper()
	need(t, "chronyd", "gpsd")
	dir := t.TempDir()
	program, err := oneway.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "oneway.example/tests/pulse/cmd/oneway-pulse")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	for _, name := range []string{"start.sh", "chrony.conf", "oneway.yml"} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := &site{Sandbox: sandbox.New(t, "", "")}
	network, err := netns.GetFromPid(s.Pid)
	namespace.Check(t, err)
	t.Cleanup(func() { network.Close() })
	s.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(_ context.Context, kind, address string) (c net.Conn, err error) {
			namespace.Do(t, network, func() { c, err = net.Dial(kind, address) })
			return c, err
		},
	}}
	s.log = s.Daemon("env", "PULSE_OPTIONS="+options, filepath.Join(dir, "start.sh"), program, "agent",
		"--config.file="+filepath.Join(dir, "oneway.yml"), "--web.listen-address="+agentAddress)
	return s
}

// get returns what an address replies; "" if it does not reply.
func (s *site) get(url string) string {
	r, err := s.client.Get(url)
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body) // a reply that ends early lacks what the test waits for
	return string(text)
}

// set changes settings of receiver and pulse.
func (s *site) set(query string) {
	s.Helper()
	r, err := s.client.Post("http://"+controlAddress+"/set?"+query, "", nil)
	if err != nil {
		s.Fatal(err)
	}
	defer r.Body.Close()
	if text, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusOK {
		s.Fatalf("set %s: %s: %s", query, r.Status, text)
	}
}

// value is that of the first series of the agent that begins with this name and labels.
func (s *site) value(series string) (v float64, ok bool) {
	for line := range strings.Lines(s.get("http://" + agentAddress + "/metrics")) {
		if strings.HasPrefix(line, series) {
			f := strings.Fields(line)
			v, err := strconv.ParseFloat(f[len(f)-1], 64)
			return v, err == nil
		}
	}
	return 0, false
}

// until waits until a series has a value for which f is true.
func (s *site) until(what, series string, f func(v float64) bool) {
	s.Helper()
	began := time.Now()
	var last string
	if !await.Within(2*await.Timeout, func() bool {
		time.Sleep(200 * time.Millisecond) // each check is a scrape
		v, ok := s.value(series)
		last = fmt.Sprint(v, ok)
		return ok && f(v)
	}) {
		s.Fatalf("%s: %s is %s after %v\n%s%s", what, series, last, 2*await.Timeout, s.Run("chronyc", "-n", "sources"), s.log)
	}
	s.Logf("%s: %s is %s after %.1f s", what, series, last, time.Since(began).Seconds())
}

func is(want float64) func(float64) bool { return func(v float64) bool { return v == want } }

func atLeast(want float64) func(float64) bool { return func(v float64) bool { return v >= want } }

func between(low, high float64) func(float64) bool {
	return func(v float64) bool { return v >= low && v <= high }
}

const pulseReference = `oneway_clock_reference_info{clock="chrony",kind="pps",`

func TestLossesOfPulseAndFixAreSeenByAllThreePrograms(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	s.until("chronyd locks to the pulse", pulseReference, is(1))
	s.until("its bound is that of a pulse", "oneway_clock_error_bound_seconds", between(2e-5, 2e-4))
	s.until("the agent counts pulses", "oneway_pps_pulses_total", atLeast(12))
	s.until("and checks the clock by them", "oneway_pps_fit_offset_seconds", between(-1e-4, 1e-4))
	s.until("gpsd has a fix", "oneway_gnss_fix", is(3))
	s.until("of this many satellites", "oneway_gnss_satellites_used", is(8))

	s.set("receiver.fix=1")
	s.until("the fix is lost", "oneway_gnss_fix", is(1))
	s.set("receiver.fix=2&receiver.used=3")
	s.until("a fix without height", "oneway_gnss_fix", is(2))
	s.until("of fewer satellites", "oneway_gnss_satellites_used", is(3))

	s.set("pulse.stopped=true")
	before, _ := s.value("oneway_pps_pulses_total")
	s.until("chronyd has lost its reference", `oneway_clock_state{clock="chrony",state="holdover"}`, is(1))
	if after, _ := s.value("oneway_pps_pulses_total"); after > before+1 {
		t.Errorf("%v pulses, then %v, while there are none", before, after)
	}
	if v, ok := s.value("oneway_pps_fit_offset_seconds"); ok {
		t.Errorf("the clock's offset by the pulses is %v without pulses", v)
	}
	s.set("pulse.stopped=false")
	s.until("chronyd locks again", `oneway_clock_state{clock="chrony",state="synchronized"}`, is(1))
	s.until("the agent has counted the seconds without a pulse", "oneway_pps_missed_total", atLeast(5))

	s.set("pulse.jitter=2ms")
	s.until("irregular pulses", "oneway_pps_jitter_seconds", between(1e-3, 8e-3))
}

func TestPulseThatIsLateMovesTheClocksOffset(t *testing.T) {
	t.Parallel()
	s := start(t, "-pulse.offset=3ms")
	s.until("chronyd locks to the pulse", pulseReference, is(1))
	// The pulse is at the second: a clock that reads 3 ms then is fast. chronyd (-x) corrects a clock of its own, which only it
	// reads; the agent reads the host's.
	s.until("the offset by the pulses", "oneway_pps_fit_offset_seconds", between(2.9e-3, 3.1e-3))
}
