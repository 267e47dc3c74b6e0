package tests

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
)

// clockConf is the shortest configuration that delivers points.
const clockConf = "[[inputs.oneway_clock]]\ninterval = \"1s\"\n[inputs.oneway_clock.clock]\nsource = \"static\"\nbound = \"1ms\"\n"

// ends waits until a process that is no child of the test has ended.
func ends(t *testing.T, pid int) {
	t.Helper()
	begin := time.Now()
	await.That(t, fmt.Sprintf("process %d ends", pid), func() bool { return !running(pid) })
	t.Logf("it ended after %v", time.Since(begin).Round(time.Millisecond))
}

func TestPluginEndsWithTelegraf(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		w := telegrafWith(t, clockBinary, clockConf)
		await.That(t, "points", func() bool { return len(w.metrics(t)) > 0 }, &w.log)
		pid := w.plugin(t)
		w.end(t, s)
		ends(t, pid)
		// Telegraf itself logs errors, if it closes the pipes before it has read their end.
		if s == syscall.SIGTERM && (!strings.Contains(w.log.String(), "oneway-clock-telegraf shut down") || strings.Contains(w.log.String(), "[inputs.execd] stderr: ")) {
			t.Errorf("the plugin did not end as requested:\n%s", &w.log)
		}
	}
}

func TestTelegrafStartsAPluginAgainThatIsKilled(t *testing.T) {
	t.Parallel()
	w := telegrafWith(t, clockBinary, clockConf)
	await.That(t, "points", func() bool { return len(w.metrics(t)) > 0 }, &w.log)
	pid := w.plugin(t)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ends(t, pid)
	await.That(t, "another process", func() bool { c := w.children(t); return len(c) == 1 && c[0] != pid }, &w.log)
	before := len(w.metrics(t))
	await.That(t, "more points", func() bool { return len(w.metrics(t)) > before }, &w.log)
	// Telegraf reads its configuration again on SIGHUP, and then starts all of its plugins again.
	pid = w.plugin(t)
	if err := w.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	ends(t, pid)
	await.That(t, "another process", func() bool { c := w.children(t); return len(c) == 1 && c[0] != pid }, &w.log)
	before = len(w.metrics(t))
	await.That(t, "more points", func() bool { return len(w.metrics(t)) > before }, &w.log)
}

func TestPluginEndsWithStandardInputAndBySignal(t *testing.T) {
	t.Parallel()
	config := write(t, "plugin.conf", clockConf)
	for _, byHand := range []func(*exec.Cmd, io.Closer) error{
		func(_ *exec.Cmd, in io.Closer) error { return in.Close() },
		func(c *exec.Cmd, _ io.Closer) error { return c.Process.Signal(syscall.SIGTERM) },
		func(c *exec.Cmd, _ io.Closer) error { return c.Process.Signal(syscall.SIGINT) },
	} {
		c := exec.Command(clockBinary, "-config", config)
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var out await.Text
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		await.That(t, "points", func() bool { return strings.Contains(out.String(), "oneway_clock,") }, &out)
		if err := byHand(c, in); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("%v\n%s", err, &out)
		}
	}
}

// TestATelegrafThatDoesNotReadStopsNothing stops Telegraf: the pipes fill, and the agent inside of the plugin must measure on.
func TestATelegrafThatDoesNotReadStopsNothing(t *testing.T) {
	t.Parallel()
	a, b, nobody := int(freeport.Port(t)), int(freeport.Port(t)), int(freeport.Port(t))
	_, url := agent(t, fmt.Sprintf("clock: {source: static, bound: 1ms}\nreflector: {listen: [\"127.0.0.1:%d\"]}\n", b))
	// Telegraf's store is away, and its buffer too small: it drops metrics, which the plugin does not notice.
	w := telegrafWith(t, pluginBinary, fmt.Sprintf("[[inputs.oneway]]\nconfig_file = %q\ninterval = \"1s\"\n", write(t, "oneway.yml", pathsConf(a, b, nobody))),
		"[[outputs.influxdb]]\nurls = [\"http://127.0.0.1:1\"]\nmetric_buffer_limit = 100\n")
	await.That(t, "points", func() bool { return len(named(w.metrics(t), "oneway_delay", "path", "there")) > 0 }, &w.log)
	pid := w.plugin(t)
	before := residentBytes(t, pid)
	stop := func() {
		t.Helper()
		if err := w.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	begin, first := time.Now(), reflected(t, url)
	time.Sleep(8 * time.Second) // a second of points fills the pipe's 64 KiB by half; then the plugin waits
	packets, elapsed := reflected(t, url)-first, time.Since(begin)
	if want := 0.8 * elapsed.Seconds() / 0.02; packets < want {
		t.Errorf("%.0f packets in %v while Telegraf did not read, want %.0f: it stopped the prober", packets, elapsed, want)
	}
	after := residentBytes(t, pid)
	t.Logf("%.0f packets in %v; resident %d kB before, %d kB after", packets, elapsed.Round(time.Millisecond), before>>10, after>>10)
	if after > before+20<<20 {
		t.Errorf("resident memory grew from %d to %d bytes while Telegraf did not read", before, after)
	}
	have := len(w.metrics(t))
	if err := w.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await.That(t, "points again", func() bool { return len(w.metrics(t)) > have+1000 }, &w.log)
	stop()
	time.Sleep(4 * time.Second) // the pipe fills again
	begin = time.Now()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ends(t, pid)
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("the plugin ended after %v", took)
	}
}

// reflected is the number of packets that the agent at a URL has reflected.
func reflected(t *testing.T, url string) float64 {
	t.Helper()
	r, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all["oneway_reflector_packets_total"].GetMetric() {
		if m.GetLabel()[0].GetValue() == "reflected" {
			return m.GetCounter().GetValue()
		}
	}
	t.Fatal("the agent reports no reflected packets")
	return 0
}

func TestWrongConfigurationIsOneLineWithThePlace(t *testing.T) {
	t.Parallel()
	agentFile := write(t, "oneway.yml", "paths:\n  - name: a\n    peer: b\n    probes: [{type: stamp, interval: 0s}]\n")
	for _, c := range []struct{ plugin, config, want string }{
		{pluginBinary, fmt.Sprintf("[[inputs.oneway]]\nconfig_file = %q\n", agentFile), "FILE: inputs.oneway: " + agentFile + ":4:38: paths[0].probes[0].interval is 0s; it must be between 100µs and 1h0m0s"},
		{pluginBinary, "[[inputs.oneway]]\nconfig_file = \"/nowhere/oneway.yml\"\n", "FILE: inputs.oneway: config: open /nowhere/oneway.yml: no such file or directory"},
		{pluginBinary, "[[inputs.oneway]]\nurl = \"agent.example\"\n", `FILE: inputs.oneway: url is "agent.example"; it must be the address of an agent, such as http://127.0.0.1:9862`},
		{pluginBinary, "[[inputs.oneway]]\nurl = \"http://127.0.0.1:9862\"\nusername = \"x\"\n", "FILE: inputs.oneway: username and password_file need each other"},
		{pluginBinary, "[[inputs.oneway]]\nurl = \"http://127.0.0.1:9862\"\nusername = \"x\"\npassword_file = \"/nowhere\"\n", "FILE: inputs.oneway: password_file cannot be used: open /nowhere: no such file or directory"},
		{pluginBinary, "[[inputs.oneway]]\nurls = \"http://127.0.0.1:9862\"\n", "FILE: inputs.oneway.urls is no option of inputs.oneway; -sample_config prints all"},
		{pluginBinary, "[[inputs.oneway]]\ninterval = 1x\n", `FILE: line 2 (last key "inputs.oneway"): expected a top-level item to end with a newline`},
		{pluginBinary, "[[inputs.cpu]]\n", "FILE: has no [[inputs.oneway]]"},
		{pluginBinary, "[[inputs.oneway]]\n[[inputs.oneway]]\n", "FILE: has 2 [[inputs.oneway]]; one process runs one of them"},
		{clockBinary, "[[inputs.oneway_clock]]\n[inputs.oneway_clock.clock]\nsource = \"sun\"\n", `FILE: inputs.oneway_clock: clock.source is "sun"; it must be chrony, static or none`},
		{clockBinary, "[[inputs.oneway_clock]]\n[inputs.oneway_clock.clock.pps]\nedge = \"rising\"\n", `FILE: inputs.oneway_clock: clock.pps.edge is "rising"; it must be assert or clear`},
	} {
		file := write(t, "plugin.conf", c.config)
		out, err := exec.Command(c.plugin, "-config", file).CombinedOutput()
		got := string(out)
		if want := "E! " + strings.ReplaceAll(c.want, "FILE", file); err == nil || !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%q: %v, %q, want %q", c.config, err, got, want)
		}
	}
	w := telegrafWith(t, pluginBinary, "[[inputs.oneway]]\ninterval = \"0s\"\n")
	await.That(t, "Telegraf's log has the error", func() bool {
		return strings.Contains(w.log.String(), "E! [inputs.execd] ") && strings.Contains(w.log.String(), "inputs.oneway: interval is 0s; it must be between 1s and 1h0m0s")
	}, &w.log)
}

func TestAnAttachedAgentThatIsDownIsAPointAndAnError(t *testing.T) {
	t.Parallel()
	port := int(freeport.Port(t))
	address := fmt.Sprintf("127.0.0.1:%d", port)
	w := telegrafWith(t, pluginBinary, fmt.Sprintf("[[inputs.oneway]]\nurl = \"http://%s\"\ninterval = \"1s\"\n", address))
	up := func() any {
		return last(named(w.metrics(t), "oneway_scrape", "url", "http://"+address+"/metrics"), "up")
	}
	await.That(t, "up is 0", func() bool { return up() == 0.0 }, &w.log)
	if !strings.Contains(w.log.String(), "E! [inputs.execd] oneway: the agent cannot be read: ") {
		t.Errorf("no error in the log:\n%s", &w.log)
	}
	p := start(t, onewayBinary, "agent", "--config.file="+write(t, "oneway.yml", "clock: {source: static, bound: 1ms}"), "--web.listen-address="+address, "--test.socket=")
	await.That(t, "up is 1", func() bool { return up() == 1.0 && len(named(w.metrics(t), "oneway_clock")) > 0 }, &w.log, &p.log)
	p.end(t, syscall.SIGKILL)
	await.That(t, "up is 0 again", func() bool { return up() == 0.0 }, &w.log)
}

// TestClockPluginDeliversTheTrack has a receiver that reports its positions with their times.
func TestClockPluginDeliversTheTrack(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go receiver(c)
		}
	}()
	w := telegrafWith(t, clockBinary, clockConf+fmt.Sprintf("[inputs.oneway_clock.clock.gpsd]\naddress = %q\nname = \"roof\"\n[inputs.oneway_clock.clock.pps]\ndevice = %q\n",
		l.Addr(), filepath.Join(t.TempDir(), "pps0")))
	await.That(t, "the fix and the positions", func() bool {
		all := w.metrics(t)
		return last(named(all, "oneway_gnss", "receiver", "roof"), "gnss_fix") == 3.0 && len(named(all, "oneway_track")) >= 3 && last(named(all, "oneway_track"), "speed_meters_per_second") != nil
	}, &w.log)
	all := w.metrics(t)
	if bound, on := last(named(all, "oneway_clock", "clock", "static"), "clock_error_bound_seconds"), last(named(all, "oneway_clock_state", "state", "synchronized"), "clock_state"); bound != 0.001 || on != 1.0 {
		t.Errorf("bound %v, synchronized %v; want 0.001, 1", bound, on)
	}
	if missed := last(named(all, "oneway_pps", "pps", "pps0"), "pps_pulses_total"); missed != int64(0) {
		t.Errorf("%v pulses of no device, want 0", missed)
	}
	if own := named(all, "oneway_agent"); len(own) > 0 {
		t.Errorf("%v would replace that of inputs.oneway on the same host", own[0])
	}
	// The receiver may report the first position before the output listens.
	track := named(all, "oneway_track")
	missed := 5 - len(track)
	for i, m := range track {
		f := m.Fields()
		// A millisecond apart, as in the reports of the receiver, and not at the interval.
		if want := trackBegin.Add(time.Duration(missed+i) * time.Millisecond); !m.Time().Equal(want) {
			t.Errorf("point %d is of %v, want %v", i, m.Time(), want)
		}
		if f["latitude_degrees"] != 37.387458333 || f["longitude_degrees"] != -121.97236 || f["speed_meters_per_second"] != 13.5 {
			t.Errorf("%v", m)
		}
	}
}

// trackBegin is the time of the first position; a receiver whose time is far from that of this host is not used.
var trackBegin = time.Now().UTC().Truncate(time.Millisecond)

// receiver is a gpsd with a receiver that has a fix.
func receiver(c net.Conn) {
	defer c.Close()
	fmt.Fprintln(c, `{"class":"VERSION","release":"3.22","rev":"3.22","proto_major":3,"proto_minor":14}`)
	if _, err := c.Read(make([]byte, 1000)); err != nil {
		return
	}
	fmt.Fprintln(c, `{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/ttyS0","activated":"2026-11-21T14:44:51.630Z"}]}`)
	fmt.Fprintln(c, `{"class":"SKY","device":"/dev/ttyS0","nSat":14,"uSat":9}`)
	for i := range 5 {
		at := trackBegin.Add(time.Duration(i) * time.Millisecond).Format("2006-01-02T15:04:05.000Z")
		fmt.Fprintf(c, `{"class":"TPV","device":"/dev/ttyS0","mode":3,"time":%q,"lat":37.387458333,"lon":-121.972360000,"speed":13.5}`+"\n", at)
	}
	_, _ = io.Copy(io.Discard, c) // until the plugin ends
}

// TestAThousandPaths logs the processor time and the memory that the plugin needs.
func TestAThousandPaths(t *testing.T) {
	t.Parallel()
	const paths = 1000
	port := int(freeport.Port(t))
	agent(t, fmt.Sprintf("clock: {source: static, bound: 1ms}\nreflector: {listen: [\"127.0.0.1:%d\"]}\n", port))
	var config strings.Builder
	fmt.Fprint(&config, "clock: {source: static, bound: 1ms}\nprofile: slim\npaths:\n")
	for i := range paths {
		fmt.Fprintf(&config, "  - {name: path%04d, peer: \"127.0.0.1:%d\", probes: [{type: stamp}]}\n", i, port)
	}
	w := telegrafWith(t, pluginBinary, fmt.Sprintf("[[inputs.oneway]]\nconfig_file = %q\ninterval = \"5s\"\n", write(t, "oneway.yml", config.String())))
	await.That(t, "points of all paths at two instants", func() bool {
		per := map[time.Time]int{}
		for _, m := range named(w.metrics(t), "oneway_packets", "direction", "forward") {
			per[m.Time()]++
		}
		complete := 0
		for _, n := range per {
			if n == paths {
				complete++
			}
		}
		return complete >= 2
	}, &w.log)
	pid := w.plugin(t)
	begin, used := time.Now(), processorTime(t, pid)
	time.Sleep(5 * time.Second) // one interval
	share := (processorTime(t, pid) - used).Seconds() / time.Since(begin).Seconds()
	resident := residentBytes(t, pid)
	t.Logf("%d paths, one packet a second each: %.1f %% of a processor, %d MB resident; Telegraf %d MB", paths, 100*share, resident>>20, residentBytes(t, w.Process.Pid)>>20)
	if resident > 250<<20 {
		t.Errorf("%d MB resident, want at most 250", resident>>20)
	}
}

// processorTime is the processor time of a process, in steps of 10 ms.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var user, system int64
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
