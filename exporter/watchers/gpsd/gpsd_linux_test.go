package gpsd

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/watcher"
	gnss "oneway.example/tests/receiver"
)

// serialLine is a pseudo terminal: a receiver writes to one end, gpsd opens the
// other by a name of our own, since the kernel gives the same number to the next.
type serialLine struct {
	receiver *os.File
	path     string
}

// unplug takes the line away.
func (l *serialLine) unplug(t *testing.T) {
	t.Helper()
	if err := errors.Join(os.Remove(l.path), l.receiver.Close()); err != nil {
		t.Fatal(err)
	}
}

func openSerialLine(t *testing.T) *serialLine {
	t.Helper()
	receiver, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = receiver.Close() })
	fd := int(receiver.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	terminal, path := "/dev/pts/"+strconv.Itoa(number), filepath.Join(t.TempDir(), "gnss")
	// gpsd gives up root, and opens the device again after that.
	if err := errors.Join(os.Chmod(terminal, 0o666), os.Symlink(terminal, path)); err != nil {
		t.Fatal(err)
	}
	return &serialLine{receiver: receiver, path: path}
}

// realDaemon is a gpsd of this machine on a serial line of the test's making.
type realDaemon struct {
	testing.TB
	address string
	device  string
	cmd     *exec.Cmd
}

func startGpsd(t *testing.T, device string) *realDaemon {
	t.Helper()
	path, err := exec.LookPath("gpsd")
	if err != nil {
		path = "/usr/sbin/gpsd" // not in everybody's PATH
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("SKIPPED, NOT PASSED: needs gpsd (package gpsd)")
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, NOT PASSED: gpsd is started as root, in a name space of its own")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	_ = listener.Close()
	d := &realDaemon{TB: t, address: address.String(), device: device}
	d.cmd = exec.Command(path, "-N", "-n", "-S", strconv.Itoa(address.Port), device)
	// gpsd tells NTP daemons the time through shared memory: not this host's.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWIPC}
	d.start()
	return d
}

func (d *realDaemon) start() {
	d.Helper()
	if err := d.cmd.Start(); err != nil {
		d.Fatal(err)
	}
	d.Cleanup(d.kill)
}

// kill ends gpsd, also one that is stopped.
func (d *realDaemon) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// again starts a gpsd like the one that was killed.
func (d *realDaemon) again() {
	d.Helper()
	attributes := d.cmd.SysProcAttr
	d.cmd = exec.Command(d.cmd.Path, d.cmd.Args[1:]...)
	d.cmd.SysProcAttr = attributes
	d.start()
}

// moving has a fix from 3 of 4 satellites.
func moving() gnss.Settings {
	s := gnss.Default()
	s.Used, s.Seen, s.Late = 3, 4, lateness
	s.Track.Radius, s.Track.Speed = 500, 20
	return s
}

// lateness is how long after the second the fake receiver's sentences come.
const lateness = 200 * time.Millisecond

// write makes the line a receiver that reports every second, until the test ends.
func (l *serialLine) write(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	settings := moving()
	var speaking sync.WaitGroup
	speaking.Go(func() {
		gnss.EverySecond(ctx, func() time.Duration { return lateness }, func(second time.Time) {
			_, _ = l.receiver.WriteString(settings.Sentences(second))
		})
	})
	t.Cleanup(func() { stop(); speaking.Wait() })
}

// watch runs a client until the test ends.
func (d *realDaemon) watch(o Options) (*Client, *metrictest.Sink) {
	d.Helper()
	sink := &metrictest.Sink{}
	o.Address, o.Sink = d.address, sink
	c, err := New(o)
	if err != nil {
		d.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	d.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			d.Errorf("Run = %v", err)
		}
	})
	return c, sink
}

// until waits for a condition of the real world.
func until(t *testing.T, what string, limit time.Duration, c *Client, condition func(State) bool) State {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) { // polls the client, which reads a real gpsd
		s := c.State()
		if condition(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %+v", what, limit, s)
		}
	}
}

func complete(s State) bool {
	return s.Fix == Fix3D && s.Seen.Known && s.Used.N > 0 && !s.Sentence.At.IsZero()
}

func TestRealGpsdReportsFixSatellitesAndTime(t *testing.T) {
	t.Parallel()
	line := openSerialLine(t)
	d := startGpsd(t, line.path)
	recorder := &record.Recorder{}
	track := recorder.Tables().Listen(100)
	any, sink := d.watch(Options{Env: watcher.Env{Recorder: recorder}})
	named, _ := d.watch(Options{Device: line.path})
	until(t, "an idle device", 20*time.Second, any, func(s State) bool { return s.Connected })
	line.write(t)
	for name, c := range map[string]*Client{"any device": any, "this device": named} {
		s := until(t, name, 30*time.Second, c, complete)
		if s.Device != line.path || s.Release == "" || s.Seen != (Count{4, true}) || s.Used != (Count{3, true}) {
			t.Errorf("%s: %+v, want 3 of 4 satellites of %s", name, s, line.path)
		}
		// Not before the sentence was sent; a loaded machine reads it some time later.
		if late := s.Sentence.Offset; late < lateness || late > lateness+2*time.Second {
			t.Errorf("%s: the sentence is %v late, want %v", name, late, lateness)
		}
		if age := time.Since(s.Sentence.At.Time()); age < 0 || age > pulseFor+3*time.Second {
			t.Errorf("%s: the sentence is of %v", name, s.Sentence.At)
		}
		t.Logf("%s: gpsd %s: %v, %v of %v satellites, sentence %v late", name, s.Release, s.Fix, s.Used, s.Seen, s.Sentence.Offset)
	}
	time.Sleep(publishEvery) // a real gpsd: the client publishes its state once in this time
	for desc, want := range map[*metric.Desc]float64{
		metric.GNSSConnected: 1, metric.GNSSFix: 3, metric.GNSSSatellitesSeen: 4, metric.GNSSSatellitesUsed: 3, metric.GNSSConnections: 1,
	} {
		if got, ok := sink.Value(desc, DefaultName); !ok || got != want {
			t.Errorf("%s = %v (%v), want %v", desc.Name, got, ok, want)
		}
	}
	points := make([]record.Table, 100)
	n, _ := track.Take(points)
	if n == 0 {
		t.Error("no point of the track was recorded")
	}
	circle := moving().Track
	for _, p := range points[:n] { // of a whole second, and where the receiver was then
		element := func(column int) float64 { return record.OfReal(p.Rows[0][column]) }
		want := circle.At(p.Begin.Time())
		off := math.Hypot(element(record.TrackLatitude)-want.Latitude, element(record.TrackLongitude)-want.Longitude)
		if off > 1e-5 || p.Begin%1e9 != 0 || math.Abs(element(record.TrackSpeed)-circle.Speed) > 1e-2 {
			t.Errorf("recorded %+v, of %v", p, p.Begin)
		}
	}
	for _, m := range malformations() {
		if n, _ := sink.Value(metric.GNSSMalformed, DefaultName, string(m)); n != 0 {
			t.Errorf("%v lines of a real gpsd are %v", n, m)
		}
	}
}

func TestRealGpsdIsFoundAgain(t *testing.T) {
	t.Parallel()
	line := openSerialLine(t)
	d := startGpsd(t, line.path)
	line.write(t)
	c, _ := d.watch(Options{maxBackOff: 200 * time.Millisecond, timeout: 6 * time.Second})
	until(t, "at first", 30*time.Second, c, complete)
	ended := func(what string) {
		t.Helper()
		s := until(t, what, 20*time.Second, c, func(s State) bool { return !s.Replying })
		if want := (State{LastMessage: s.LastMessage}); s != want || want.LastMessage.IsZero() {
			t.Errorf("%s: %+v, want %+v", what, s, want)
		}
	}
	d.kill()
	ended("killed")
	d.again()
	until(t, "restarted", 30*time.Second, c, complete)
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ended("stopped")
	if err := d.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "resumed", 30*time.Second, c, complete)
}

func TestUnplugIsDetectedThroughARealGpsd(t *testing.T) {
	t.Parallel()
	line := openSerialLine(t)
	d := startGpsd(t, line.path)
	settings := moving()
	if _, err := line.receiver.WriteString(settings.Sentences(time.Now().Truncate(time.Second))); err != nil {
		t.Fatal(err)
	}
	c, sink := d.watch(Options{timeout: 6 * time.Second}) // gpsd sends no reply while it probes a new line
	until(t, "plugged", 20*time.Second, c, func(s State) bool { return s.Connected })
	line.unplug(t)
	// gpsd 3.22 sends no report; it does after a request, or never if it was still probing the line.
	until(t, "unplugged", time.Minute, c, func(s State) bool { return !s.Connected && s.Replying })
	if n, _ := sink.Value(metric.GNSSConnections, DefaultName); n != 1 {
		t.Errorf("%v connections, want 1: gpsd was there all the while", n)
	}
}
