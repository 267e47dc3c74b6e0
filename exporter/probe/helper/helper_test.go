package helper

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/tests/await"
)

// newHelper makes a helper whose program is this test binary. The end of the test closes it, and nothing of it may be left.
func newHelper(t *testing.T, as string, change func(*Options)) *Helper {
	t.Helper()
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors(t)
	o := Options{Program: "/proc/self/exe", Environment: []string{role + "=" + as}, firstPause: time.Millisecond, longestPause: time.Millisecond}
	o.Program, _ = os.Executable()
	if change != nil {
		change(&o)
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var pid int
		if h.process != nil {
			pid = h.process.cmd.Process.Pid
		}
		h.Close()
		if pid != 0 && alive(pid) {
			t.Errorf("process %d runs after Close", pid)
		}
		await.That(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
		if n := openDescriptors(t); n > descriptors {
			t.Errorf("%d descriptors are open, %d were before", n, descriptors)
		}
	})
	return h
}

// limitMemory limits the memory of the program. With the race detector it is a test binary without it.
func limitMemory(t *testing.T, o *Options) {
	t.Helper()
	if o.Memory = 256 << 20; !race {
		return
	}
	o.Program = filepath.Join(t.TempDir(), "program")
	build := exec.Command("go", "test", "-c", "-o", o.Program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// alive reports whether a process runs; one that nobody has waited for does not.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := bytes.Cut(text, []byte(") "))
	return err == nil && !bytes.HasPrefix(state, []byte("Z"))
}

// echoes fails unless a request succeeds, after the pause of a failure.
func echoes(t *testing.T, h *Helper) {
	t.Helper()
	var got string
	var err error
	await.That(t, "the program replies", func() bool {
		err = h.Call(t.Context(), "echo", "hello", &got)
		wrong, _ := errors.AsType[*Error](err)
		return wrong == nil || wrong.Reason != Waiting
	})
	if err != nil || got != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestReplyThatIsTooLongIsAnErrorOfItsRequest(t *testing.T) {
	h := newHelper(t, "serve", nil)
	echoes(t, h)
	first := h.process.cmd.Process.Pid
	for _, method := range []string{"long", "long refusal"} {
		err := h.Call(t.Context(), method, nil, nil)
		if wrong, ok := errors.AsType[*Error](err); !ok || wrong.Reason != Refused || !strings.Contains(err.Error(), "bytes; it must have at most 1048575") {
			t.Errorf("%s: error is %.300v", method, err)
		}
	}
	echoes(t, h)
	if h.process.cmd.Process.Pid != first {
		t.Error("the program was started again")
	}
}

func TestReplyOfTheLargestLengthArrives(t *testing.T) {
	for _, length := range []int{MaxLine - 1, MaxLine} {
		frame, _ := json.Marshal(message{ID: 1, Result: json.RawMessage(`""`)})
		text, err := encoded(message{ID: 1, Result: json.RawMessage(`"` + strings.Repeat("x", length-len(frame)) + `"`)})
		_, why := readLine(bufio.NewReader(bytes.NewReader(append(text, '\n'))))
		if refused := bytes.Contains(text, []byte("error")); err != nil || why != "" || refused != (length == MaxLine) {
			t.Errorf("%d bytes: %.100s, %q, %v", length, text, why, err)
		}
	}
}

func TestTextsOfTheProgramAreShortenedToOneLineOfRunes(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"the URL has no host":           "the URL has no host",
		"a\nb\x1b[31m\x00":              "a b [31m ",
		"a\xffb":                        "a\uFFFDb",
		strings.Repeat("x", 300):        strings.Repeat("x", 300),
		strings.Repeat("x", 301):        strings.Repeat("x", 300) + "...",
		strings.Repeat("x", 299) + "€":  strings.Repeat("x", 299) + "...",
		strings.Repeat("x", 297) + "€€": strings.Repeat("x", 297) + "€...",
		strings.Repeat("\xbf", 2000):    "\uFFFD...",
	} {
		if got := shortened(text); got != want {
			t.Errorf("%.20q of %d bytes: got %q, want %q", text, len(text), got, want)
		}
	}
}

func TestRequestsAreAnsweredByOneProcess(t *testing.T) {
	h := newHelper(t, "serve", nil)
	echoes(t, h)
	first := h.process.cmd.Process.Pid
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			var got []int
			if err := h.Call(t.Context(), "echo", []int{i}, &got); err != nil || !slices.Equal(got, []int{i}) {
				t.Errorf("%d: got %v, %v", i, got, err)
			}
		})
	}
	all.Wait()
	if h.process.cmd.Process.Pid != first {
		t.Error("the program was started again")
	}
}

// TestEachFaultOfAProgramEndsWithItsReason covers the faults in a request; afterwards the program is started again.
func TestEachFaultOfAProgramEndsWithItsReason(t *testing.T) {
	for method, c := range map[string]struct {
		reason Reason
		text   string
	}{
		"crash":        {Crashed, "it ended: exit status 2"},
		"exit":         {Crashed, "it ended: exit status 0"},
		"close output": {Crashed, "it closed its output"},
		"hang":         {Timeout, "it did not reply in time"},
		"flood errors": {Timeout, "it did not reply in time"},
		"long error":   {Timeout, "it did not reply in time"},
		"flood output": {Unexpected, "nothing asked for"},
		"late":         {Unexpected, "nothing asked for"},
		"malformed":    {Malformed, `"this is no JSON" is no message: invalid character`},
		"giant":        {TooLong, "longer than 1048576 bytes"},
		"leak":         {OutOfMemory, "it ended at its memory limit of 268435456 bytes"},
	} {
		t.Run(method, func(t *testing.T) {
			var log bytes.Buffer
			h := newHelper(t, "serve", func(o *Options) {
				if o.Log = slog.New(slog.NewTextHandler(&log, nil)); c.reason == OutOfMemory {
					limitMemory(t, o)
				}
				if c.reason == Timeout {
					o.Timeout = 500 * time.Millisecond
				}
			})
			echoes(t, h)
			var before, after runtime.MemStats
			var pids []int
			if method != "close output" { // the child keeps it open
				if err := h.Call(t.Context(), "child", false, &pids); err != nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&before)
			err := h.Call(t.Context(), method, nil, nil)
			runtime.ReadMemStats(&after)
			wrong, ok := errors.AsType[*Error](err)
			if !ok || wrong.Reason != c.reason || !strings.Contains(wrong.Text, c.text) {
				t.Errorf("got %v (%+v), want %s: %s", err, wrong, c.reason, c.text)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
				t.Errorf("the agent used %d bytes", used)
			}
			for _, pid := range pids {
				await.That(t, fmt.Sprintf("process %d of %v has ended", pid, pids), func() bool { return !alive(pid) })
			}
			if n := strings.Count(log.String(), "wrote to its standard error"); n > maxLogged {
				t.Errorf("%d lines were logged", n)
			}
			h.options.Timeout = time.Minute
			echoes(t, h)
		})
	}
}

func TestEachFaultOfAStartEndsWithItsReason(t *testing.T) {
	for as, c := range map[string]struct {
		reason Reason
		text   string
	}{
		"silent":   {Timeout, "it did not reply in time"},
		"exit":     {Crashed, "it ended: exit status 3"},
		"older":    {WrongVersion, "test 9 speaks version 0 of the protocol, this agent version 1; install the release of the agent"},
		"newer":    {WrongVersion, "test 9 speaks version 2 of the protocol, this agent version 1; install the release of the agent"},
		"no hello": {Unexpected, "its first message is no hello"},
		"missing":  {NotStarted, "it cannot be started: "},
	} {
		t.Run(as, func(t *testing.T) {
			h := newHelper(t, as, func(o *Options) {
				if o.StartTimeout = 10 * time.Second; as == "silent" {
					o.StartTimeout = 200 * time.Millisecond
				}
				if as == "missing" {
					o.Program = "/nonexistent/program"
				}
			})
			err := h.Call(t.Context(), "echo", nil, nil)
			if wrong, ok := errors.AsType[*Error](err); !ok || wrong.Reason != c.reason || !strings.Contains(wrong.Text, c.text) {
				t.Errorf("got %v, want %s: %s", err, c.reason, c.text)
			}
			if h.process != nil {
				t.Error("it still runs")
			}
		})
	}
}

func TestRefusedRequestKeepsTheProgram(t *testing.T) {
	h := newHelper(t, "serve", nil)
	echoes(t, h)
	pid := h.process.cmd.Process.Pid
	for method, text := range map[string]string{"refuse": "the URL has no host", "nothing": `the method "nothing" is unknown`} {
		if wrong, ok := errors.AsType[*Error](h.Call(t.Context(), method, nil, nil)); !ok || wrong.Reason != Refused || wrong.Text != text {
			t.Errorf("%s: got %+v", method, wrong)
		}
	}
	if wrong, ok := errors.AsType[*Error](h.Call(t.Context(), "echo", strings.Repeat("x", MaxLine), nil)); !ok || wrong.Reason != TooLong {
		t.Errorf("a request that is too long: %+v", wrong)
	}
	if echoes(t, h); h.process.cmd.Process.Pid != pid {
		t.Error("it was started again")
	}
}

func TestCanceledRequestEndsTheProgramWithoutAPause(t *testing.T) {
	h := newHelper(t, "serve", func(o *Options) { o.firstPause, o.longestPause = time.Hour, time.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	err := h.Call(ctx, "hang", nil, nil)
	if wrong, ok := errors.AsType[*Error](err); !ok || wrong.Reason != Canceled || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	echoes(t, h)
}

func TestPauseAfterAFailureDoublesAndEndsWithASuccess(t *testing.T) {
	h := newHelper(t, "serve", func(o *Options) { o.firstPause, o.longestPause = 10*time.Millisecond, 30*time.Millisecond })
	for _, want := range []time.Duration{10, 20, 30, 30} {
		await.That(t, "the pause has ended", func() bool { return time.Now().After(h.retry) })
		if wrong, _ := errors.AsType[*Error](h.Call(t.Context(), "crash", nil, nil)); wrong == nil || wrong.Reason != Crashed {
			t.Errorf("got %v", wrong)
		}
		if h.pause != want*time.Millisecond {
			t.Errorf("the pause is %v, want %v ms", h.pause, int64(want))
		}
	}
	h.retry = time.Now().Add(time.Hour)
	err := h.Call(t.Context(), "echo", nil, nil)
	if wrong, _ := errors.AsType[*Error](err); wrong == nil || wrong.Reason != Waiting || !strings.Contains(wrong.Text, "it ended: exit status 2") {
		t.Errorf("within the pause: %v", err)
	}
	h.retry = time.Time{}
	if echoes(t, h); h.pause != 0 {
		t.Errorf("after a success the pause is %v", h.pause)
	}
}

func TestProgramThatEndedBetweenRequestsIsStartedAgain(t *testing.T) {
	h := newHelper(t, "serve", nil)
	echoes(t, h)
	if err := unix.Kill(h.process.cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-h.process.exited
	echoes(t, h)
}

func TestProgramHasAMinimalEnvironmentAndNoDescriptors(t *testing.T) {
	t.Setenv("ONEWAY_SECRET", "secret")
	// A descriptor as a parent may have left it to the agent: without the flag close-on-exec.
	leaked, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leaked)
	h := newHelper(t, "serve", nil)
	var environment, targets []string
	if err := errors.Join(h.Call(t.Context(), "environment", nil, &environment), h.Call(t.Context(), "descriptors", nil, &targets)); err != nil {
		t.Fatal(err)
	}
	slices.Sort(environment)
	if want := []string{"LANG=C.UTF-8", role + "=serve", "PATH=/usr/local/bin:/usr/bin:/bin"}; !slices.Equal(environment, want) {
		t.Errorf("the environment is %q", environment)
	}
	pipes := 0
	for _, target := range targets {
		switch {
		case strings.HasPrefix(target, "pipe:"):
			pipes++
		case strings.HasPrefix(target, "anon_inode:"), strings.HasSuffix(target, "/fd"): // its own
		case strings.HasPrefix(target, "/sys/fs/cgroup/"): // opened by Go's runtime
		default:
			t.Errorf("it has the descriptor %s", target)
		}
	}
	if pipes != 3 {
		t.Errorf("it has %d pipes: %q", pipes, targets)
	}
}

// startAgent starts an agent with a helper and its child, and returns the numbers of both. The end of the test kills it.
func startAgent(t *testing.T, environment ...string) (agent *exec.Cmd, pids []int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agent = exec.Command(self)
	agent.Env = append(append(os.Environ(), role+"=agent"), environment...)
	out, err := agent.StdoutPipe()
	if err = errors.Join(err, agent.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Kill() // unless the test has ended it
		_ = agent.Wait()
	})
	text, err := bufio.NewReader(out).ReadString('\n')
	if wrong := json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimSpace(text), " <nil>")), &pids); err != nil || wrong != nil || len(pids) != 2 {
		t.Fatalf("the agent wrote %q: %v", text, errors.Join(err, wrong))
	}
	return agent, pids
}

func TestKilledAgentLeavesNoProcess(t *testing.T) {
	agent, pids := startAgent(t)
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait() // it was killed
	for _, pid := range pids {
		await.That(t, fmt.Sprintf("process %d has ended", pid), func() bool { return !alive(pid) })
	}
}

func TestWrongOptionsAreRejected(t *testing.T) {
	for want, o := range map[string]Options{
		`program is "sh"; it must be an absolute path`: {Program: "sh"},
		`memory is -1; it must not be negative`:        {Program: "/bin/sh", Memory: -1},
	} {
		if _, err := New(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestClosedHelperStartsNothing(t *testing.T) {
	h := newHelper(t, "serve", nil)
	echoes(t, h)
	h.Close()
	if wrong, ok := errors.AsType[*Error](h.Call(t.Context(), "echo", nil, nil)); !ok || wrong.Reason != NotStarted || h.process != nil {
		t.Errorf("got %+v", wrong)
	}
}
