package chronyconfig

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clocks/chrony"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/tests/await"
	"oneway.example/tests/precision"
	"oneway.example/tests/pulse"
	"oneway.example/tests/sandbox"
)

// machine is a sandbox that runs chronyd, gpsd and the agent's monitor.
type machine struct{ *sandbox.Sandbox }

func newMachine(t *testing.T, receiver, device string) *machine {
	t.Helper()
	return &machine{sandbox.New(t, receiver, device)}
}

// substitutes are the drivers for hardware that a test host lacks. chronyd loads the line with all its options and with
// a socket instead of the device; the guest kernels (tests/vmlab, make vmlab-pps) open the device itself.
var substitutes = map[string]string{
	"refclock PHC /dev/ptp0 ": "refclock SOCK /run/oneway.ptp0.sock ",
}

// substituted writes a copy of a file for the sandbox, and logs what it changed. Without a change it is the file
// itself.
func (s *machine) substituted(name string) string {
	s.Helper()
	content := read(s, name)
	changed := false
	for device, socket := range substitutes {
		for line := range strings.Lines(content) {
			if strings.HasPrefix(line, device) {
				s.Logf("NOT LOADED, NOT PASSED: %q of %s: no such device here; its options were, with %q", device, name, socket)
				content, changed = strings.Replace(content, line, socket+strings.TrimPrefix(line, device), 1), true
			}
		}
	}
	if !changed {
		return absolute(s, name)
	}
	to := filepath.Join(s.Dir, filepath.Base(name))
	if err := os.WriteFile(to, []byte(content), 0o644); err != nil {
		s.Fatal(err)
	}
	return to
}

// chronyd loads a file, unchanged except for substitutes, and does not set the clock (-x).
func (s *machine) chronyd(name string) *sandbox.Log {
	s.Helper()
	// The umask of systemd/chrony-group.conf, which sets the modes of the sockets.
	l := s.Daemon("sh", "-c", "umask 0007; exec chronyd -x -d -f \"$1\"", "sh", s.substituted(name))
	if !await.Within(20*time.Second, func() bool {
		_, err := os.Stat(s.Path("/run/chrony/chronyd.sock"))
		return err == nil
	}) {
		s.Fatalf("%s: chronyd does not reply:\n%s", name, l)
	}
	return l
}

// kind is that of the current reference, "" if there is none.
func kind(sink *metrictest.Sink) string {
	for labels := range sink.All(metric.ClockReferenceInfo) {
		return labels[strings.LastIndex(labels, ",")+1:]
	}
	return ""
}

// watch is the agent's clock monitor in the sandbox.
func (s *machine) watch(o chrony.Options) (*chrony.Monitor, *metrictest.Sink) {
	s.Helper()
	sink := &metrictest.Sink{}
	o.Address, o.SocketDir = "unix://"+s.Path("/run/chrony/chronyd.sock"), s.Path("client")
	o.Interval, o.Sink = 200*time.Millisecond, sink
	m, err := chrony.New(o)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	return m, sink
}

// loaded is the set-up of one folder.
type loaded struct {
	device string        // device file of gpsd
	late   time.Duration // lateness of the sentences; 0: usualLateness
	socket string        // SOCK refclock that the test feeds
	offset time.Duration // true time minus system time, as samples of that refclock report
	pulse  bool          // /dev/pps0 has pulses, which are simulated
}

var life = map[string]loaded{
	"serial-pps": {device: "/dev/ttyS0", socket: "/run/chrony.ttyS0.sock"},
	"gpio-pps":   {device: "/dev/ttyAMA0", pulse: true},
	"usb-nmea":   {device: "/dev/gnss-usb", late: 290 * time.Millisecond},
	"ptp-phc":    {socket: "/run/oneway.ptp0.sock", offset: 37 * time.Second}, // TAI
	"ntp":        {},
	"isolated":   {device: "/dev/ttyS0", socket: "/run/chrony.ttyS0.sock"},
}

// A whole folder runs: chronyd and gpsd with the unchanged files, a receiver on a pty, and the agent's monitor, which
// must report the kind and the bound of the README's table.
func TestEveryFolderGivesTheKindAndTheBoundOfTheTable(t *testing.T) {
	needDaemons(t)
	t.Parallel()
	// All start before the first wait: a clock takes a minute to settle.
	var all []*site
	for _, row := range table(t) {
		all = append(all, open(t, row))
	}
	for _, one := range all {
		t.Run(one.row.folder, one.judge)
	}
}

// site is a running folder.
type site struct {
	*machine
	row   row
	clock *chrony.Monitor
	sink  *metrictest.Sink
	log   *sandbox.Log
}

// open starts it and its sources.
func open(t *testing.T, row row) *site {
	t.Helper()
	how, ok := life[row.folder]
	if !ok {
		t.Fatalf("no set-up for folder %s", row.folder)
	}
	one := &site{row: row}
	one.machine, one.log = bringUp(t, row.folder, how)
	one.clock, one.sink = one.watch(chrony.Options{})
	if row.folder == "isolated" {
		one.expectIsland(t, one.clock)
	}
	if how.socket != "" {
		feed(t, one.Path(how.socket), how.offset)
	}
	return one
}

// judge waits for the values of the table.
func (one *site) judge(t *testing.T) {
	one.expect(t, one.clock, one.sink, one.row)
	if one.row.folder == "serial-pps" {
		one.calibrate(t, 0.2, usualLateness)
	}
	for _, bad := range []string{"failed leap second check", "Could not", "Wrong permissions", "Disabled command socket"} {
		if strings.Contains(one.log.String(), bad) {
			t.Errorf("chronyd logs %q:\n%s", bad, one.log)
		}
	}
}

// bringUp starts the programs of a folder.
func bringUp(t *testing.T, folder string, how loaded) (*machine, *sandbox.Log) {
	var receiver string
	if how.device != "" {
		receiver = openFIFO(t, cmp.Or(how.late, usualLateness))
	}
	s := newMachine(t, receiver, how.device)
	if how.pulse {
		s.Pulse(pulse.Settings{Jitter: time.Microsecond})
	}
	if folder == "ntp" {
		s.serveTime()
	}
	log := s.chronyd(filepath.Join(root, folder, "chrony.conf"))
	if how.device != "" {
		s.gpsd(filepath.Join(root, folder, "gpsd"))
	}
	return s, log
}

// serveTime is a stratum 1 server on loopback: a second chronyd with the addresses of the NTP servers.
func (s *machine) serveTime() {
	conf := filepath.Join(s.Dir, "server.conf")
	text := "local stratum 1\nallow 127.0.0.0/8\ncmdport 0\nbindcmdaddress /\npidfile " + s.Path("/run/server.pid") + "\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
	s.Daemon("chronyd", "-x", "-d", "-f", conf)
}

// expectIsland: before any pulse the site has a local time, which the agent does not accept unless configured to.
func (s *machine) expectIsland(t *testing.T, m *chrony.Monitor) {
	trusting, sink := s.watch(chrony.Options{TrustLocal: true})
	if !await.Within(20*time.Second, func() bool { return trusting.Quality(instant.Now()).Synchronized() }) {
		t.Errorf("a configuration that accepts local time reports %+v", trusting.Quality(instant.Now()))
	}
	if !await.Within(5*time.Second, func() bool { return kind(sink) == "local" }) {
		t.Errorf("kind %q, want local", kind(sink))
	}
	// The reason not to accept it: chronyd reports no error against UTC at all.
	tracking := strings.Split(s.Run("chronyc", "-c", "-n", "tracking"), ",")
	if tracking[0] != "7F7F0101" || tracking[10] != "0.000000000" || tracking[11] != "0.000000000" {
		t.Errorf("the island's reference, root delay and root dispersion: %q", tracking)
	}
	if q := m.Quality(instant.Now()); q.Synchronized() {
		t.Errorf("the agent accepts local time: %+v", q)
	}
}

// expect waits for the kind and the bound of a row, and then compares the bound with its lower end.
func (s *machine) expect(t *testing.T, m *chrony.Monitor, sink *metrictest.Sink, row row) {
	q := m.Quality(instant.Now())
	began := time.Now()
	ok := await.Within(150*time.Second, func() bool {
		q = m.Quality(instant.Now())
		return q.Synchronized() && kind(sink) == row.kind && q.Bound.Error <= row.most
	})
	sources := s.Run("chronyc", "-n", "sources")
	if !ok {
		t.Fatalf("%+v of kind %q after %v, want %s within %v\n%s%s%s", q, kind(sink), time.Since(began), row.kind, row.most,
			sources, s.Run("chronyc", "-n", "sourcestats"), s.Run("chronyc", "-n", "selectdata"))
	}
	t.Logf("kind %s, bound %v after %.0f s (table: %v .. %v)\n%s", row.kind, q.Bound.Error, time.Since(began).Seconds(), row.least, row.most, sources)
	if q.Bound.Error < row.least && row.kind != "ntp" { // loopback is shorter than any network
		t.Errorf("bound %v, want at least %v, the constant error of the table", q.Bound.Error, row.least)
	}
}

// calibrate is the procedure of calibrate-nmea.md: the lateness is the current offset plus that of sourcestats.
func (s *machine) calibrate(t *testing.T, inForce float64, late time.Duration) {
	var found float64
	if !await.Within(30*time.Second, func() bool {
		time.Sleep(50 * time.Millisecond) // each check is a process that queries chronyd
		for line := range strings.Lines(s.Run("chronyc", "-c", "-n", "sourcestats")) {
			// Name, NP, NR, span, frequency, skew, offset, standard deviation
			if f := strings.Split(strings.TrimSpace(line), ","); f[0] == "NMEA" && f[1] != "0" {
				shown, err := strconv.ParseFloat(f[6], 64)
				if err != nil {
					t.Fatal(err)
				}
				found = inForce + shown
			}
		}
		return found != 0
	}) {
		t.Fatal("no samples of NMEA")
	}
	t.Logf("lateness of the sentences %v, by the procedure %.4f s", late, found)
	// gpsd reads some milliseconds after the write, later on a busy machine.
	wrong := fmt.Errorf("lateness by the procedure %.4f s, want %v", found, late)
	if found < late.Seconds()-0.01 {
		t.Error(wrong)
	} else if found > late.Seconds()+0.1 {
		precision.Missed(t, wrong)
	}
}

// The fault that the pages warn of: sentences more than 0.6 s later than their offset give the pulse the number of the
// next second, without any error.
func TestPulseLockedToLateSentencesIsOffByAWholeSecond(t *testing.T) {
	needDaemons(t)
	t.Parallel()
	how := life["gpio-pps"]
	how.late = 1200 * time.Millisecond // 1 s more than the offset in the file
	s, _ := bringUp(t, "gpio-pps", how)
	m, sink := s.watch(chrony.Options{})
	if !await.Within(90*time.Second, func() bool { return kind(sink) == "pps" }) {
		t.Fatalf("the pulse is not used:\n%s", s.Run("chronyc", "-n", "sources"))
	}
	// makestep has set a wrong clock by now: the last measurement has the error.
	tracking := strings.Split(s.Run("chronyc", "-c", "-n", "tracking"), ",")
	last, err := strconv.ParseFloat(tracking[5], 64)
	if err != nil || math.Abs(math.Abs(last)-1) > 0.01 {
		t.Errorf("the last offset was %v, want 1 s: %v", last, err)
	}
	t.Logf("the clock is off by a second, and the bound is %v", m.Quality(instant.Now()).Bound.Error)
}

// A client of the island: its servers do not exist here, but the file loads.
func TestClientOfAnIslandLoads(t *testing.T) {
	needDaemons(t)
	t.Parallel()
	s := newMachine(t, "", "")
	s.chronyd(filepath.Join(root, "isolated", "client.conf"))
	if got := s.Run("chronyc", "-n", "sources"); !strings.Contains(got, "192.0.2.1") {
		t.Errorf("the island's server is not among the sources:\n%s", got)
	}
}
