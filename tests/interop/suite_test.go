package interop

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// suiteVersion is the version of stamp-suite to build.
const suiteVersion = "1.0.0"

// suite is the path of stamp-suite, or a reason to skip.
var suite = sync.OnceValues(findSuite)

func requireSuite(t *testing.T) string {
	t.Helper()
	path, err := suite()
	if err != nil && os.Getenv("ONEWAY_INTEROP") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("SKIPPED, NOT PASSED: %v: set ONEWAY_INTEROP=1 to have it built (some minutes), or run make interop", err)
	}
	return path
}

func findSuite() (string, error) {
	if path := os.Getenv("STAMP_SUITE"); path != "" {
		return exec.LookPath(path)
	}
	if path, err := exec.LookPath("stamp-suite"); err == nil {
		return path, nil
	}
	root, err := filepath.Abs("../../build/tools")
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", "stamp-suite")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if os.Getenv("ONEWAY_INTEROP") == "" {
		return "", fmt.Errorf("find stamp-suite: not installed")
	}
	cargo, err := findCargo()
	if err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "interop: building stamp-suite %s into %s; this takes some minutes\n", suiteVersion, root)
	cmd := exec.Command(cargo, "install", "--locked", "--version", suiteVersion, "--root", root, "stamp-suite")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("cargo install stamp-suite: %w", err)
	}
	return path, nil
}

// findCargo also searches rustup's directory.
func findCargo() (string, error) {
	path, err := exec.LookPath("cargo")
	if err == nil {
		return path, nil
	}
	home, homeErr := os.UserHomeDir()
	if homeErr == nil {
		if p, homeErr := exec.LookPath(filepath.Join(home, ".cargo", "bin", "cargo")); homeErr == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("neither stamp-suite nor cargo to build it is installed: %w", err)
}

// serve starts stamp-suite as a reflector and returns when it listens; it is stopped at the end of the test.
func serve(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // the child ends with the thread that started it
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		text := &bytes.Buffer{}
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			fmt.Fprintln(text, lines.Text())
			if strings.Contains(lines.Text(), "listening on") {
				started <- nil
				break
			}
		}
		_, _ = io.Copy(text, log)
		if err := cmd.Wait(); err != nil {
			started <- fmt.Errorf("stamp-suite: %w\n%s", err, text)
		}
	}()
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Signal(os.Interrupt)
		}
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	select {
	case err := <-started:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("stamp-suite does not listen within 10 s")
	}
}
