// Package tests runs the plugins by a real Telegraf, which telegraf.sh builds, and measures with real agents on the loopback interface.
package tests

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/influxdata/telegraf"
	"github.com/influxdata/telegraf/plugins/parsers/influx"

	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
)

// Programs under test.
var telegrafBinary, onewayBinary, pluginBinary, clockBinary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		out, err := exec.Command("../telegraf.sh").Output()
		if err != nil {
			fmt.Fprintf(os.Stderr, "telegraf.sh: %v\n", err)
			return 1
		}
		telegrafBinary = strings.TrimSpace(string(out))
		dir, err := os.MkdirTemp("", "oneway-telegraf")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		onewayBinary, pluginBinary, clockBinary = filepath.Join(dir, "oneway"), filepath.Join(dir, "oneway-telegraf"), filepath.Join(dir, "oneway-clock-telegraf")
		for _, args := range [][]string{
			{"build", "-C", "../..", "-o", onewayBinary, "./exporter/cmd/oneway"},
			{"build", "-C", "..", "-o", dir, "./cmd/..."},
		} {
			if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "go %s: %v\n%s", args, err, out)
				return 1
			}
		}
		return m.Run()
	}())
}

// process is a started program.
type process struct {
	*exec.Cmd
	log  await.Text
	done chan struct{}
}

// start starts a program, which is killed when the test ends, or this process does.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(name, args...), done: make(chan struct{})}
	p.Stdout, p.Stderr = &p.log, &p.log
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel sends the signal at the end of the thread
		defer runtime.UnlockOSThread()
		err := p.Start()
		started <- err
		if err == nil {
			_ = p.Wait() // the status is in ProcessState
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(t, syscall.SIGKILL) })
	return p
}

// end sends a signal and waits for the end.
func (p *process) end(t *testing.T, s syscall.Signal) {
	t.Helper()
	_ = p.Process.Signal(s) // an error means that it has ended
	await.That(t, "the program ends", func() bool {
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	}, &p.log)
}

// children are the processes that p has started.
func (p *process) children(t *testing.T) (pids []int) {
	t.Helper()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.Process.Pid))
	for _, task := range tasks {
		content, _ := os.ReadFile(task) // a thread may have ended
		for word := range strings.FieldsSeq(string(content)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// plugin waits for the only child of a Telegraf.
func (p *process) plugin(t *testing.T) (pid int) {
	t.Helper()
	await.That(t, "Telegraf runs the plugin", func() bool {
		pids := p.children(t)
		if len(pids) == 1 {
			pid = pids[0]
		}
		return len(pids) == 1
	}, &p.log)
	return pid
}

// running reports whether a process runs; one that has ended and is not waited for does not.
func running(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !bytes.Contains(status, []byte("State:\tZ"))
}

// residentBytes is the memory of a process.
func residentBytes(t *testing.T, pid int) int {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(content))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// write writes a file of the test.
func write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// agent starts an agent, and returns its URL.
func agent(t *testing.T, config string) (p *process, url string) {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", int(freeport.Port(t)))
	p = start(t, onewayBinary, "agent", "--config.file="+write(t, "oneway.yml", config), "--web.listen-address="+address, "--test.socket=")
	url = "http://" + address
	await.That(t, "the agent serves", func() bool {
		r, err := http.Get(url + "/-/healthy")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	}, &p.log)
	return p, url
}

// withPlugin is a Telegraf that runs a plugin with this configuration and writes to a file and to more outputs.
type withPlugin struct {
	*process
	config, out string
}

const telegrafConf = `
[agent]
  interval = "1s"
  flush_interval = "1s"
  hostname = "collector"
  metric_buffer_limit = 200000
[[inputs.execd]]
  command = [%q, "-config", %q, "-poll_interval_disabled"]
  signal = "none"
  restart_delay = "1s"
[[outputs.file]]
  files = [%q]
  data_format = "influx"
`

func telegrafWith(t *testing.T, plugin, config string, outputs ...string) *withPlugin {
	t.Helper()
	w := &withPlugin{out: filepath.Join(t.TempDir(), "out.influx")}
	w.config = write(t, "telegraf.conf", fmt.Sprintf(telegrafConf, plugin, write(t, "plugin.conf", config), w.out)+strings.Join(outputs, "\n"))
	w.process = start(t, telegrafBinary, "--config", w.config)
	return w
}

// metrics are the complete lines that Telegraf has written, as Telegraf's own parser reads them.
func (w *withPlugin) metrics(t *testing.T) []telegraf.Metric {
	t.Helper()
	content, err := os.ReadFile(w.out)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &influx.Parser{}
	if err := p.Init(); err != nil {
		t.Fatal(err)
	}
	all, err := p.Parse(content[:bytes.LastIndexByte(content, '\n')+1])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// named are those of a measurement with these tags.
func named(all []telegraf.Metric, measurement string, tags ...string) (found []telegraf.Metric) {
	for _, m := range all {
		ok := m.Name() == measurement
		for i := 0; i+1 < len(tags); i += 2 {
			ok = ok && m.Tags()[tags[i]] == tags[i+1]
		}
		if ok {
			found = append(found, m)
		}
	}
	return found
}

// last is the newest value of a field; nil: none.
func last(all []telegraf.Metric, field string) (value any) {
	for _, m := range all {
		if v, ok := m.GetField(field); ok {
			value = v
		}
	}
	return value
}
