package abuse

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/tests/await"
	"oneway.example/tests/remoteend"
)

// damaged are contents that a file system may leave of a file, and one with a wrong checksum.
var damaged = map[string]string{
	"empty": "", "half": `{"version":1,"days":[{"da`, "zeros": strings.Repeat("\x00", 512), "of another version": `{"version":2,"days":[]}`,
	"changed": `{"version":1,"days":[{"date":"2026-11-22","used":{"client":5}}],"crc32":1}`,
}

// If the usage file of a load server is damaged, the usage of its tokens today is unknown: tokens with a daily quota
// are refused until the operator removes the file.
func TestDamagedUsageFileRefusesTokensWithADailyQuota(t *testing.T) {
	for name, content := range damaged {
		t.Run(name, func(t *testing.T) {
			f := startLoadServer(t, loadcontrol.Limits{BytesPerDay: 100})
			if _, err := f.visit(90); err != nil {
				t.Fatal(err)
			}
			f.stop()
			file := filepath.Join(f.o.StateDir, "load-server-usage.json")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // a restart does not change that
				f.run()
				switch v, err := f.visit(90); {
				case err == nil:
					v.close()
					t.Fatal("granted 90 of 100 bytes a day twice")
				case remoteend.Refusal(t, err).Reason != loadcontrol.Unsaved:
					t.Errorf("got refusal %v", err)
				}
				f.stop()
			}
			if kept, err := os.ReadFile(file + ".damaged"); err != nil || string(kept) != content {
				t.Errorf("the kept file is %q, %v", kept, err)
			}
			f.run()
			if err := os.Remove(file + ".damaged"); err != nil {
				t.Fatal(err)
			}
			if _, err := f.visit(90); err != nil {
				t.Errorf("after the removal of the file: %v", err)
			}
		})
	}
}

// The agent reports it: one log line with the remedy, and the gauge of an alert.
func TestDamagedUsageFileOfLinksIsReported(t *testing.T) {
	binary := buildProgram(t)
	for name, content := range damaged {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "links.json")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			s := startAgent(t, binary, "state_dir: "+dir+"\nlinks: [{name: uplink, quota_bytes: 500MB}]\n"+manyPaths(1, ""))
			saved := func() float64 { return value(t, s.served(here), `oneway_data_quota_saved{kind="links"}`) }
			if n := saved(); n != 0 {
				t.Errorf("oneway_data_quota_saved is %v", n)
			}
			if err := os.Remove(file + ".damaged"); err != nil {
				t.Fatal(err)
			}
			s.eventually("the usage is saved again", func() bool { return saved() == 1 })
			if all := s.lines("level=ERROR"); len(all) != 1 || !strings.Contains(all[0], "file="+file) || !strings.Contains(all[0], "remove="+file+".damaged") {
				t.Errorf("want one log line with the file to remove, got\n%s", strings.Join(all, ""))
			}
			if n := len(s.lines("is kept again")); n != 1 {
				t.Errorf("%d log lines of the end of the error, want 1", n)
			}
		})
	}
}

// toBeKilled is the environment variable with a program's name; the process with it becomes that program, which the
// kernel kills at its first rename of a file.
const toBeKilled = "ONEWAY_ABUSE_KILLED_AT_RENAME"

// dieAtRename becomes a program, with the arguments after "--".
func dieAtRename(t *testing.T, binary string) {
	t.Helper()
	runtime.LockOSThread() // the filter is the thread's
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_RENAMEAT, Jt: 1},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_RENAMEAT2, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	}
	if err == nil {
		err = syscall.Exec(binary, append([]string{binary}, flag.Args()...), os.Environ())
	}
	t.Fatal(err)
}

// A process killed between writing its state and renaming it leaves no file behind permanently.
func TestUnfinishedFileOfAKilledAgentIsRemoved(t *testing.T) {
	if binary := os.Getenv(toBeKilled); binary != "" {
		dieAtRename(t, binary)
	}
	binary, dir := buildProgram(t), t.TempDir()
	state := filepath.Join(dir, "state")
	configuration := "state_dir: " + state + "\nlinks: [{name: uplink, quota_bytes: 500MB}]\n" + manyPaths(1, "")
	file := filepath.Join(dir, "oneway.yml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	unfinished := func() (names []string) {
		entries, err := os.ReadDir(state)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".links.json") {
				names = append(names, e.Name())
			}
		}
		return names
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), await.Timeout)
		c := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "--", "agent", "--config.file="+file, "--web.listen-address=127.0.0.1:0", "--test.socket=")
		c.Env = append(os.Environ(), toBeKilled+"="+binary)
		out, err := c.CombinedOutput()
		cancel()
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGSYS {
			t.Fatalf("want a process killed at the rename, got %v\n%.300s", err, out)
		}
		if names := unfinished(); len(names) != 1 {
			t.Errorf("files after the kill: %q", names)
		}
	}
	s := startAgent(t, binary, configuration)
	s.eventually("the state is saved", func() bool { _, err := os.Stat(filepath.Join(state, "links.json")); return err == nil })
	if names := unfinished(); len(names) != 0 {
		t.Errorf("files after the next start: %q", names)
	}
}
