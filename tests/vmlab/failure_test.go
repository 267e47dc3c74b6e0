package vmlab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// startKernel boots a guest of a script in place of a kernel, whose logs are not in its directory.
func startKernel(t *testing.T, script string) (o Options, err error) {
	t.Helper()
	kernel := filepath.Join(t.TempDir(), "kernel")
	if err := os.WriteFile(kernel, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	o = Options{Kernel: kernel, Name: "near", Dir: filepath.Join(t.TempDir(), "memory"), Logs: filepath.Join(t.TempDir(), "logs")}
	g, err := Start(o)
	if err == nil {
		t.Fatal("it is up", g.Close())
	}
	// Files in memory end with the run; the file in the error must stay.
	if err := os.RemoveAll(o.Dir); err != nil {
		t.Fatal(err)
	}
	return o, err
}

// wants checks the error of a guest, and the log that it names.
func wants(t *testing.T, o Options, err error, log string, texts ...string) {
	t.Helper()
	file := filepath.Join(o.Logs, "console.log")
	for _, want := range append(texts, "guest near", file) {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	text, readErr := os.ReadFile(file)
	if readErr != nil || !strings.Contains(string(text), log) {
		t.Errorf("%s: %q, %v; want %q", file, text, readErr, log)
	}
}

func TestKernelThatEndsAtOnceIsReportedWithItsStatus(t *testing.T) {
	o, err := startKernel(t, "exit 3")
	wants(t, o, err, "", "exit status 3", "said nothing")
	o, err = startKernel(t, "echo 'wake me' >&2; kill -SEGV $$")
	wants(t, o, err, "wake me", "signal: segmentation fault", "\twake me")
}

func TestKernelThatIsNoProgramIsAnError(t *testing.T) {
	if _, err := Start(Options{Kernel: "/nonexistent/linux.uml", Name: "near", Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "/nonexistent/linux.uml") {
		t.Error(err)
	}
}

// The consoles are those of Debian's linux.uml 6.1um4.
func TestKnownConsoleMessageComesWithARemedy(t *testing.T) {
	for _, c := range []struct{ file, say, do, not string }{
		{"amx.txt", "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b", "AMX", "Call Trace"},
		{"noexec.txt", "must be not mounted noexec", "remount,exec", "Kernel panic"},
		{"noinit.txt", "Requested init /nonexistent failed (error -2)", "Options.Init", "Call Trace"},
		{"init-fails.txt", "Attempted to kill init! exitcode=0x00000100", "said last", "Call Trace"},
	} {
		console, err := filepath.Abs(filepath.Join("testdata", c.file))
		if err != nil {
			t.Fatal(err)
		}
		o, err := startKernel(t, "cat "+console+"; exit 134")
		wants(t, o, err, c.say, "exit status 134", c.say, c.do)
		if strings.Contains(err.Error(), c.not) {
			t.Errorf("%q is in:\n%v", c.not, err)
		}
	}
}

func TestLongConsoleIsReportedByItsLastLines(t *testing.T) {
	o, err := startKernel(t, "for i in $(seq 100); do echo line $i; done")
	wants(t, o, err, "line 1\n", "line 89", "line 100")
	if strings.Contains(err.Error(), "line 88") {
		t.Errorf("more than %d lines:\n%v", lastLines, err)
	}
}

func TestRealKernelWhoseInitFailsIsReported(t *testing.T) {
	if _, err := exec.LookPath("linux.uml"); err != nil {
		if os.Getenv(inVMLab) != "" {
			t.Fatal(err)
		}
		t.Skip("NOT TESTED: linux.uml is not installed (Debian package user-mode-linux); make vmlab runs it")
	}
	memory, err := os.MkdirTemp("/dev/shm", "oneway-vmlab-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(memory)
	o := Options{Name: "near", Dir: memory, Logs: filepath.Join(t.TempDir(), "logs"), Init: "/nonexistent"}
	_, err = Start(o)
	if err == nil {
		t.Fatal("it is up")
	}
	wants(t, o, err, "Kernel panic", "Requested init /nonexistent failed", "Options.Init")
}
