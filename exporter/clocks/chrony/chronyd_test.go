package chrony

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
	"oneway.example/tests/standstill"
	"oneway.example/tests/testseed"
)

// realDaemon is a chronyd of this machine that does not discipline the clock (-x), with a reference clock of the test, so
// that the truth is known.
type realDaemon struct {
	testing.TB
	dir    string
	port   int
	origin instant.Time
	slope  float64 // of the true offset
	flags  []string
	cmd    *exec.Cmd
}

const trueOffset = 1500 * time.Microsecond // the system clock is slow by this

// truth is true time minus system time at an instant.
func (d *realDaemon) truth(at instant.Time) time.Duration {
	return trueOffset + time.Duration(d.slope*float64(at.Sub(d.origin)))
}

// startDaemon starts a chronyd that does not change the clock.
func startDaemon(t testing.TB, extra string) *realDaemon {
	t.Helper()
	return startDaemonWith(t, extra, "-d", "-x")
}

// startDaemonWith starts chronyd until the end of the test.
func startDaemonWith(t testing.TB, extra string, flags ...string) *realDaemon {
	t.Helper()
	if _, err := exec.LookPath("chronyd"); err != nil {
		t.Skip("SKIPPED: needs chronyd (package chrony)")
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: chronyd is started as root, to see it drop root")
	}
	// Short, since the path of a socket has at most 107 bytes, and accessible to chronyd's user.
	dir, err := os.MkdirTemp("", "chrony")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := &realDaemon{TB: t, dir: dir, port: int(freeport.Port(t)), origin: instant.Now(), slope: 20e-6, flags: flags}
	conf := fmt.Sprintf(`pidfile %[1]s/pid
port 0
cmdport %[2]d
bindcmdaddress 127.0.0.1
bindcmdaddress %[1]s/run/chronyd.sock
%[3]s
`, dir, d.port, strings.ReplaceAll(extra, "DIR", dir))
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	d.start()
	t.Cleanup(d.kill)
	return d
}

const sockRefclock = "refclock SOCK DIR/ref.sock poll 0 refid TEST precision 1e-6 delay 2e-4"

func (d *realDaemon) start() {
	d.Helper()
	d.cmd = exec.Command("chronyd", append(d.flags, "-f", filepath.Join(d.dir, "conf"))...)
	if err := d.cmd.Start(); err != nil {
		d.Fatal(err)
	}
}

func (d *realDaemon) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// feed sends samples of the true offset, +-20 us, until the end of the test.
func (d *realDaemon) feed() {
	seed := testseed.Of(d)
	d.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	stop := make(chan struct{})
	var fed sync.WaitGroup
	fed.Go(func() {
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			conn, err := net.Dial("unixgram", d.dir+"/ref.sock")
			if err != nil {
				continue // chronyd has not started yet, or restarts
			}
			noise := time.Duration(random.Int64N(40_000) - 20_000)
			_, _ = conn.Write(sockSample(d.truth, noise))
			_ = conn.Close()
		}
	})
	d.Cleanup(func() { close(stop); fed.Wait() })
}

func sockSample(truth func(instant.Time) time.Duration, noise time.Duration) []byte {
	now := instant.Now()
	return sockSampleAt(now, truth(now)+noise)
}

// sockSampleAt is struct sock_sample of chrony 4 (refclock_sock.c): at the system time at, true time was ahead by offset.
func sockSampleAt(at instant.Time, offset time.Duration) []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(at/1e9))
	b = binary.NativeEndian.AppendUint64(b, uint64(at%1e9/1e3))
	b = binary.NativeEndian.AppendUint64(b, math.Float64bits(offset.Seconds()))
	for _, v := range []uint32{0, 0, 0, 0x534f434b} { // pulse, leap, pad, magic
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}

func (d *realDaemon) addresses() map[string]string {
	return map[string]string{
		"udp":  fmt.Sprintf("udp://127.0.0.1:%d", d.port),
		"unix": "unix://" + d.dir + "/run/chronyd.sock",
	}
}

// watch runs a monitor until the end of the test.
func (d *realDaemon) watch(o Options) (*Monitor, *metrictest.Sink) {
	d.Helper()
	sink := &metrictest.Sink{}
	o.Sink, o.Interval = sink, 100*time.Millisecond
	m, err := New(o)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(clocktest.Start(d, m.Run, sink))
	return m, sink
}

func state(m *Monitor, want clock.State) func() bool {
	return func() bool { return m.Quality(instant.Now()).State == want }
}

func TestBoundCoversTheTruthOfARealChronyd(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, sockRefclock)
	monitors := map[string]*Monitor{}
	for name, address := range d.addresses() {
		monitors[name], _ = d.watch(Options{Address: address})
	}
	for name, m := range monitors {
		if !await.Within(10*time.Second, state(m, clock.Unsynchronized)) {
			t.Fatalf("%s: before any sample: %+v", name, m.Quality(instant.Now()))
		}
	}
	d.feed()
	for name, m := range monitors {
		if !await.Within(30*time.Second, state(m, clock.Synchronized)) {
			t.Fatalf("%s: never synchronized: %+v", name, m.Quality(instant.Now()))
		}
	}
	var largest, smallest time.Duration = 0, math.MaxInt64
	// For 4 s of real time, since chronyd is a real one.
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for name, m := range monitors {
			at := instant.Now()
			q := m.Quality(at)
			truth := d.truth(at)
			if q.Bound.Error < truth {
				t.Fatalf("%s: bound %v does not cover the truth %v: %+v", name, q.Bound.Error, truth, q)
			}
			if q.Offset > -time.Millisecond {
				t.Fatalf("%s: offset %v, want about %v: the clock is slow", name, q.Offset, -truth)
			}
			largest, smallest = max(largest, q.Bound.Error-truth), min(smallest, q.Bound.Error-truth)
		}
	}
	t.Logf("bound minus truth: %v to %v", smallest, largest)
	if smallest > time.Millisecond {
		t.Errorf("the bound is never within a millisecond of the truth")
	}
}

// chronyc is an independent implementation of the protocol.
func TestSignsAndUnitsAreThoseOfChronyc(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("chronyc"); err != nil {
		t.Skip("SKIPPED: needs chronyc (package chrony)")
	}
	d := startDaemon(t, sockRefclock)
	d.feed()
	m, _ := d.watch(Options{Address: d.addresses()["udp"]})
	if !await.Within(30*time.Second, state(m, clock.Synchronized)) {
		t.Fatalf("never synchronized: %+v", m.Quality(instant.Now()))
	}
	// The reply before and the reply after chronyc must be of one update.
	for range 100 {
		before := m.now.Load().last
		fields, sentence := chronyc(t, d.port)
		var after *report
		await.Within(5*time.Second, func() bool { after = m.now.Load().last; return after.at > before.at+150*time.Millisecond })
		if before.updated != after.updated {
			continue
		}
		if !strings.Contains(sentence, "seconds slow of NTP time") {
			t.Errorf("chronyc says %q, want slow", sentence)
		}
		for _, c := range []struct {
			name      string
			field     int
			got       float64
			tolerance float64
		}{
			{"stratum", 2, float64(after.stratum), 0},
			{"offset", 4, -after.offset, 1e-6 + 2*d.slope*(after.at-before.at).Seconds()},
			{"last offset", 5, after.lastOffset, 1e-9},
			{"frequency", 7, after.frequency * 1e6, 1e-3},
			{"residual frequency", 8, after.residual * 1e6, 1e-3},
			{"skew", 9, after.skew * 1e6, 1e-3},
			{"root delay", 10, after.delay, 1e-9},
			{"root dispersion", 11, after.dispersion, 1e-6 + (after.at-before.at).Seconds()*(after.skew+math.Abs(after.residual)+1e-6)},
			{"update interval", 12, after.interval, 0.1},
		} {
			want, err := strconv.ParseFloat(fields[c.field], 64)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(c.got-want) > c.tolerance {
				t.Errorf("%s: %v, chronyc says %v", c.name, c.got, want)
			}
		}
		if fields[1] != after.reference[0] || fields[0] != fmt.Sprintf("%08X", after.refID) {
			t.Errorf("reference %v, chronyc says %v", after.reference, fields[:2])
		}
		return
	}
	t.Fatal("no two replies of one update in 100 attempts")
}

// chronyc returns the fields of `chronyc -c tracking` and the line "System time" of the readable report.
func chronyc(t *testing.T, port int) (fields []string, sentence string) {
	t.Helper()
	run := func(args ...string) string {
		out, err := exec.Command("chronyc", append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(port)}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	fields = strings.Split(strings.TrimSpace(run("-c", "tracking")), ",")
	if len(fields) != 14 {
		t.Fatalf("chronyc: %q", fields)
	}
	for line := range strings.Lines(run("tracking")) {
		if strings.HasPrefix(line, "System time") {
			sentence = line
		}
	}
	return fields, sentence
}

// The monitor ages the bound as chronyd does: chronyd later reports the predicted value.
func TestAgingPredictsChronydsReply(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, strings.Replace(sockRefclock, "poll 0", "poll 2", 1))
	d.feed()
	m, _ := d.watch(Options{Address: d.addresses()["udp"]})
	if !await.Within(40*time.Second, state(m, clock.Synchronized)) {
		t.Fatalf("never synchronized: %+v", m.Quality(instant.Now()))
	}
	watch, undecided := standstill.Begin(t), ""
	for range 20 {
		begin, k := instant.Now(), m.now.Load()
		early := k.last
		var later *report
		await.Within(5*time.Second, func() bool { later = m.now.Load().last; return later.at-early.at > 2*time.Second })
		if later.updated != early.updated || k.previous.updated != early.updated {
			continue
		}
		got := early.boundAt(later.at-early.at, 0, defaultMaxClockError, k.drift)
		want := later.boundAt(0, 0, defaultMaxClockError, drift{})
		t.Logf("%.9f s now, predicted %.9f s, reported %.9f s", early.boundAt(0, 0, defaultMaxClockError, drift{}), got, want)
		if math.Abs(got-want) > 2e-6 {
			wrong := fmt.Sprintf("predicted %v s, chronyd reports %v s after %v", got, want, later.at-early.at)
			if watch.FoundFrom(begin).Spans > 0 { // a late reply is of another time
				undecided = wrong
				continue
			}
			t.Error(wrong)
		}
		return
	}
	if undecided != "" {
		standstill.CannotTell(t, watch.FoundFrom(0), undecided)
	}
	t.Fatal("no two replies of one update, 2 s apart")
}

func TestKilledChronydIsSilentAndFoundAgain(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, sockRefclock)
	d.feed()
	for name, address := range d.addresses() {
		m, sink := d.watch(Options{Address: address, silentAfter: 2 * time.Second, maxBackOff: 500 * time.Millisecond})
		if !await.Within(30*time.Second, state(m, clock.Synchronized)) {
			t.Fatalf("%s: never synchronized: %+v", name, m.Quality(instant.Now()))
		}
		d.kill()
		if q := m.Quality(instant.Now()); !q.Synchronized() {
			t.Errorf("%s: not valid right after the kill: %+v", name, q)
		}
		if !await.Within(10*time.Second, state(m, clock.Silent)) {
			t.Errorf("%s: not silent: %+v", name, m.Quality(instant.Now()))
		}
		if v, _ := sink.Value(metric.ClockQueryFailures, Name, "unreachable"); v == 0 {
			t.Errorf("%s: failures: %v", name, sink.Present(metric.ClockQueryFailures.Name))
		}
		d.start()
		if !await.Within(30*time.Second, state(m, clock.Synchronized)) {
			t.Errorf("%s: not found again: %+v", name, m.Quality(instant.Now()))
		}
	}
}

func TestLocalModeOfARealChronydIsUnsynchronized(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "local stratum 1")
	m, _ := d.watch(Options{Address: d.addresses()["udp"]})
	island, _ := d.watch(Options{Address: d.addresses()["unix"], TrustLocal: true})
	if !await.Within(10*time.Second, state(m, clock.Unsynchronized)) {
		t.Errorf("got %+v, want unsynchronized", m.Quality(instant.Now()))
	}
	if !await.Within(10*time.Second, state(island, clock.Synchronized)) {
		t.Errorf("got %+v, want an island in sync", island.Quality(instant.Now()))
	}
}

func TestSilentSourceOfARealChronydIsHoldover(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, sockRefclock)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var fed sync.WaitGroup
	fed.Go(func() { // until ctx ends
		for tick := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			if conn, err := net.Dial("unixgram", d.dir+"/ref.sock"); err == nil {
				_, _ = conn.Write(sockSample(d.truth, 0))
				_ = conn.Close()
			}
		}
	})
	m, _ := d.watch(Options{Address: d.addresses()["unix"]})
	if !await.Within(30*time.Second, state(m, clock.Synchronized)) {
		t.Fatalf("never synchronized: %+v", m.Quality(instant.Now()))
	}
	cancel()
	fed.Wait()
	if !await.Within(20*time.Second, state(m, clock.Holdover)) {
		t.Fatalf("no holdover: %+v", m.Quality(instant.Now()))
	}
	early := m.Quality(instant.Now())
	time.Sleep(time.Second) // real time: a real chronyd has lost its source, and its bound must grow
	if later := m.Quality(instant.Now()); !later.Synchronized() || later.Bound.Error <= early.Bound.Error {
		t.Errorf("the bound does not grow in holdover: %+v, then %+v", early, later)
	}
}
