package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// module is one whose packages fail in each of the ways that there are.
var module = map[string]string{
	"go.mod":              "module m\n\ngo 1.26\n",
	"broken/b_test.go":    "package b\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) { undefined() }\n",
	"panics/p_test.go":    "package p\n\nimport \"testing\"\n\nfunc TestBefore(t *testing.T) {}\nfunc TestP(t *testing.T) { t.Run(\"sub\", func(*testing.T) { panic(\"no good\") }) }\n",
	"exits/e_test.go":     "package e\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestE(t *testing.T) { fmt.Print(\"last words\"); os.Exit(3) }\n",
	"fails/f_test.go":     "package f\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {\n\tt.Run(\"good\", func(t *testing.T) { t.Log(\"unheard\") })\n\tt.Run(\"bad\", func(t *testing.T) { for i := range 100 { t.Errorf(\"wrong %d\", i) } })\n}\nfunc TestGood(t *testing.T) { t.Log(\"fine\") }\n",
	"skips/s_test.go":     "package s\n\nimport \"testing\"\n\nfunc TestS(t *testing.T) { t.Skip(\"no\") }\nfunc TestKnown(t *testing.T) { t.Skip(\"no\") }\nfunc TestParent(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { t.Skip(\"no\") }) }\n",
	"prints/p_test.go":    "package p\n\nimport (\n\t\"fmt\"\n\t\"testing\"\n)\n\nfunc TestPrints(t *testing.T) { fmt.Print(\"no end of line\"); t.Error(\"wrong\") }\n",
	"untested/u.go":       "package u\n",
	"tested/t_test.go":    "package t\n\nimport \"testing\"\n\nfunc TestT(t *testing.T) { t.Log(\"told by show\") }\n",
	"hangs/h_test.go":     "package h\n\nimport \"testing\"\n\nfunc TestH(t *testing.T) { select {} }\nfunc TestNever(t *testing.T) {}\n",
	"badmain/m_test.go":   "package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) { m.Run(); println(\"left over\"); os.Exit(1) }\nfunc TestM(t *testing.T) {}\n",
	"twice/twice_test.go": "package twice\n\nimport \"testing\"\n\nfunc TestTwice(t *testing.T) {}\n",
}

// once makes a test fail in its first run only.
const once = `package p

import (
	"os"
	"testing"
)

func first(name string) bool {
	_, err := os.Stat(name)
	return err != nil && os.WriteFile(name, nil, 0o644) == nil
}
`

// unstable is a module whose packages fail in their first run only, but for one test.
var unstable = map[string]string{
	"go.mod":            "module m\n\ngo 1.26\n",
	"fails/f_test.go":   once + "\nfunc TestGood(t *testing.T) {}\nfunc TestF(t *testing.T) { t.Run(\"good\", func(*testing.T) {}); t.Run(\"sub\", func(t *testing.T) { if first(\"f\") { t.Error(\"by chance\") } }) }\n",
	"panics/p_test.go":  once + "\nfunc TestA(t *testing.T) {}\nfunc TestP(t *testing.T) { if first(\"p\") { panic(\"by chance\") } }\nfunc TestZ(t *testing.T) {}\n",
	"victim/v_test.go":  once + "\nfunc TestP(t *testing.T) { if first(\"p\") { panic(\"by chance\") } }\nfunc TestZ(t *testing.T) { t.Error(\"always\") }\n",
	"exits/e_test.go":   once + "\nfunc TestA(t *testing.T) {}\nfunc TestE(t *testing.T) { if first(\"e\") { os.Exit(3) } }\n",
	"hangs/h_test.go":   once + "\nfunc TestH(t *testing.T) { if first(\"h\") { select {} } }\nfunc TestNever(t *testing.T) {}\n",
	"badmain/m_test.go": once + "\nfunc TestMain(m *testing.M) { m.Run(); if first(\"m\") { println(\"left over\"); os.Exit(1) } }\nfunc TestM(t *testing.T) {}\n",
	"skips/s_test.go":   once + "\nfunc TestS(t *testing.T) { if first(\"s\") { t.Error(\"by chance\") }; t.Skip(\"then\") }\n",
	"many/m_test.go":    once + "\nfunc TestA(t *testing.T) { if first(\"a\") { t.Error(1) } }\nfunc TestB(t *testing.T) { if first(\"b\") { t.Error(2) } }\nfunc TestC(t *testing.T) { if first(\"c\") { t.Error(3) } }\nfunc TestD(t *testing.T) { if first(\"d\") { t.Error(4) } }\n",
	"environ/e_test.go": once + "\nfunc TestE(t *testing.T) { if first(\"e\") || os.Getenv(\"GIVEN\") != \"x\" || !testing.Short() { t.Error(\"by chance\") } }\n",
	"races/r_test.go":   once + "\nfunc TestR(t *testing.T) { if first(\"r\") { t.Error(\"WARNING: DATA RACE\") } }\n",
	"beside/b_test.go":  once + "\nfunc TestOther(t *testing.T) { t.Log(\"WARNING: DATA RACE\") }\nfunc TestR(t *testing.T) { if first(\"r\") { t.Error(\"found\") } }\n",
	"told/t_test.go":    once + "\nfunc TestR(t *testing.T) { if first(\"r\") { t.Error(\"race detected during execution of test\") } }\n",
	"maps/m_test.go":    once + "\nfunc TestM(t *testing.T) { if first(\"m\") { println(\"fatal error: concurrent map writes\"); os.Exit(2) } }\n",
	"late/l_test.go":    "package l\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestA(t *testing.T) { time.AfterFunc(30*time.Millisecond, func() { panic(\"of A, each time\") }) }\nfunc TestB(t *testing.T) { time.Sleep(5 * time.Second) } // the crash of TestA ends it\n",
	"slow/s_test.go":    "package s\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestA(t *testing.T) { time.Sleep(1500 * time.Millisecond) }\nfunc TestB(t *testing.T) { time.Sleep(1500 * time.Millisecond) } // both together exceed the time limit\n",
	"held/h_test.go":    once + "\nfunc TestH(t *testing.T) { if first(\"h\") { select {} }; t.Skip(\"a lock is held\") }\n",
	"still/s_test.go":   once + "\nfunc TestS(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { if first(\"s\") { t.Skip(\"cannot tell: this host stood still\") } }) }\n",
	"always/a_test.go":  "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Skip(\"cannot tell: this host stood still\") }\n",
	"wrong/w_test.go":   once + "\nfunc TestW(t *testing.T) { if first(\"w\") { t.Skip(\"cannot tell: this host stood still\") }; t.Error(\"always\") }\n",
	"both/b_test.go":    once + "\nfunc TestB(t *testing.T) { t.Run(\"still\", func(t *testing.T) { t.Skip(\"cannot tell: this host stood still\") }); if first(\"b\") { t.Error(\"by chance\") } }\n",
	"stood/s_test.go":   "package s\n\nimport \"testing\"\n\nfunc skip(t *testing.T) { t.Skip(\"cannot tell: this host stood still\") }\nfunc TestA(t *testing.T) { skip(t) }\nfunc TestB(t *testing.T) { skip(t) }\nfunc TestC(t *testing.T) { skip(t) }\nfunc TestD(t *testing.T) { skip(t) }\n",
	"slash/s_test.go":   once + "\nfunc TestS(t *testing.T) { t.Run(\"of\", func(t *testing.T) { t.Run(\"a kind/0\", func(t *testing.T) { if first(\"s\") { t.Error(\"by chance\") } }) }) }\n",
	"quiet/q_test.go":   "package q\n\nimport \"testing\"\n\nfunc TestQ(t *testing.T) {}\n",
	"quits/q_test.go":   "package q\n\nimport (\n\t\"syscall\"\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) {}\nfunc TestQ(t *testing.T) { syscall.Exit(0) }\nfunc TestZ(t *testing.T) { t.Error(\"never seen\") }\n",
}

func write(t *testing.T, module map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range module {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// events are the events of a stage of packages of the module.
func events(t *testing.T, args ...string) string {
	t.Helper()
	return stageEvents(t, write(t, module), args...)
}

func stageEvents(t *testing.T, dir string, args ...string) string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	command := append([]string{"env", "GIVEN=x", "go", "test", "-C", dir, "-json", "-vet=off"}, args[:len(args)-1]...)
	if _, err := runStage(io.Discard, log, "a title", command, strings.Fields(args[len(args)-1])); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func output(t *testing.T, events string) (text string, failed bool) {
	t.Helper()
	r, err := read(strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	r.rerunFailed(func(command []string) ([]byte, error) { return execute(command, io.Discard) })
	dir := t.TempDir()
	if err := r.keepFlaky(dir, "test"); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	failed = r.report("# TestS is expected elsewhere\nTestKnown why\n", &b)
	return strings.ReplaceAll(b.String(), dir, "DIR"), failed
}

func TestEachKindOfFailureIsReportedAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []string
		last string
	}{
		"a package that does not build": {[]string{"./broken"}, []string{"failed: the package itself (m/broken)\n", "undefined: undefined"}, "0 passed, 0 flaky, 0 failed, 0 skipped"},
		"a panic":                       {[]string{"./panics"}, []string{"failed: TestP (m/panics)\npanic: no good"}, "1 passed, 0 flaky, 1 failed, 0 skipped"},
		"a test that ends the process":  {[]string{"./exits"}, []string{"failed: TestE (m/exits)\nlast words", "(it did not end)\n"}, "0 passed, 0 flaky, 1 failed, 0 skipped"},
		"a subtest": {[]string{"./fails"}, []string{
			"failed: TestF/bad (m/fails)\n    f_test.go:7: wrong 0\n", "(41 lines are left out)\n    f_test.go:7: wrong 61\n", "wrong 99\n",
		}, "1 passed, 0 flaky, 1 failed, 0 skipped"},
		"a line without an end": {[]string{"./prints"}, []string{"failed: TestPrints (m/prints)\n", "wrong\n"}, "0 passed, 0 flaky, 1 failed, 0 skipped"},
		"a time limit":          {[]string{"-timeout=1s", "./hangs"}, []string{"failed: TestH (m/hangs)\npanic: test timed out after 1s\n"}, "0 passed, 0 flaky, 1 failed, 0 skipped"},
		"the process alone":     {[]string{"./badmain"}, []string{"failed: the package itself (m/badmain)\nleft over\n"}, "1 passed, 0 flaky, 0 failed, 0 skipped"},
		"nothing that runs":     {[]string{"-run=TestRenamed", "./tested"}, []string{"failed: the package itself (m/tested)\ntesting: warning: no tests to run\n"}, "0 passed, 0 flaky, 0 failed, 0 skipped"},
		"a skip":                {[]string{"./skips"}, []string{"(tests/expected-skips.txt): TestParent/sub\n", "(tests/expected-skips.txt): TestS\n"}, "1 passed, 0 flaky, 0 failed, 2 skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, failed := output(t, events(t, c.args...))
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not reported", want)
				}
			}
			if !failed || !strings.HasSuffix(text, "\n"+c.last+"\n") || strings.Contains(text, "TestKnown") {
				t.Errorf("failed %v, want a last line %q", failed, c.last)
			}
			if lines := strings.Count(text, "\n"); lines > maxLines+maxAgainLines+12 || strings.Count(text, "failed: ") > 1 {
				t.Errorf("%d lines", lines)
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// TestStagesAreCountedApart: a package may be in two stages, and fail in the first.
func TestStagesAreCountedApart(t *testing.T) {
	good := events(t, "./twice ./untested")
	if text, failed := output(t, good+good); failed || text != "\n2 passed, 0 flaky, 0 failed, 0 skipped\n" {
		t.Errorf("failed %v: %s", failed, text)
	}
	bad := strings.ReplaceAll(good, `"Action":"pass"`, `"Action":"fail"`)
	if text, failed := output(t, bad+good); failed || !strings.HasSuffix(text, "\n1 passed, 1 flaky, 0 failed, 0 skipped\n") {
		t.Errorf("failed %v: %s", failed, text)
	}
	cut := good[:strings.Index(good, "--- PASS")]
	cut = cut[:strings.LastIndex(cut, "\n")+1] // killed while the test ran, and so were packages that would have followed
	if text, failed := output(t, good+cut+"signal: killed\n"); !failed || !strings.Contains(text, "TestTwice (m/twice)\n(it did not end)\n") || !strings.Contains(text, "signal: killed\n") {
		t.Errorf("failed %v: %s", failed, text)
	}
}

func TestFailedTestsRunOnceMoreAlone(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []string
		last string
		fail bool
	}{
		"a subtest": {[]string{"./fails"}, []string{
			"FLAKY: TestF (m/fails) passed when run alone: env GIVEN=x go test ", " -count=1 -run=^TestF$/^(sub)$ m/fails\n", "kept in DIR/test-a-title-m-fails.TestF.txt:\n", "by chance",
		}, "1 passed, 1 flaky, 0 failed, 0 skipped", false},
		"a panic, which keeps another test from starting": {[]string{"./panics"}, []string{"FLAKY: the package itself (m/panics) ", "panic: by chance"}, "3 passed, 1 flaky, 0 failed, 0 skipped", false},
		"a panic, which hides another failure":            {[]string{"./victim"}, []string{"failed: TestP (m/victim)\n", "and again, alone: the package itself (m/victim): ", "always"}, "0 passed, 0 flaky, 1 failed, 0 skipped", true},
		"an exit":                                         {[]string{"./exits"}, []string{"FLAKY: the package itself (m/exits) "}, "2 passed, 1 flaky, 0 failed, 0 skipped", false},
		"a time limit":                                    {[]string{"-timeout=2s", "./hangs"}, []string{"panic: test timed out after 2s"}, "2 passed, 1 flaky, 0 failed, 0 skipped", false},
		"a failure after the tests":                       {[]string{"./badmain"}, []string{"FLAKY: the package itself (m/badmain) ", "left over"}, "1 passed, 1 flaky, 0 failed, 0 skipped", false},
		"a skip is not a pass":                            {[]string{"./skips"}, []string{"failed: TestS (m/skips)"}, "0 passed, 0 flaky, 1 failed, 0 skipped", true},
		"too many":                                        {[]string{"./many"}, []string{"\n4 flaky tests: at most 3 are accepted\n"}, "0 passed, 4 flaky, 0 failed, 0 skipped", true},
		"environment and flags are the same":              {[]string{"-short", "./environ"}, []string{"FLAKY: TestE (m/environ) "}, "0 passed, 1 flaky, 0 failed, 0 skipped", false},
		"a data race is a fault whenever it is":           {[]string{"./races"}, []string{"failed: TestR (m/races)\n", "WARNING: DATA RACE"}, "0 passed, 0 flaky, 1 failed, 0 skipped", true},
		"a data race in the output of another test":       {[]string{"./beside"}, []string{"failed: TestR (m/beside)\n"}, "1 passed, 0 flaky, 1 failed, 0 skipped", true},
		"a data race without its report":                  {[]string{"./told"}, []string{"failed: TestR (m/told)\n"}, "0 passed, 0 flaky, 1 failed, 0 skipped", true},
		"a map without a lock":                            {[]string{"./maps"}, []string{"fatal error: concurrent map writes\n"}, "0 passed, 0 flaky, 1 failed, 0 skipped", true},
		"a crash each time, by a test that had passed":    {[]string{"./late"}, []string{"panic: of A, each time\n", "and again, alone: the package itself (m/late): "}, "1 passed, 0 flaky, 1 failed, 0 skipped", true},
		"a time limit that is always too short":           {[]string{"-timeout=2s", "./slow"}, []string{"panic: test timed out after 2s\n"}, "1 passed, 0 flaky, 1 failed, 0 skipped", true},
		"a time limit, then a skip":                       {[]string{"-timeout=1s", "./held"}, []string{"panic: test timed out after 1s\n"}, "0 passed, 0 flaky, 1 failed, 0 skipped", true},
		"an exit without a failure":                       {[]string{"./quits"}, []string{"failed: the package itself (m/quits)\n(it did not end)\n"}, "2 passed, 0 flaky, 0 failed, 0 skipped", true},
		"cannot tell, then passes":                        {[]string{"./still"}, []string{"TestS (m/still) could not tell beside other tests, and passed when run alone: "}, "1 passed, 0 flaky, 0 failed, 0 skipped", false},
		"never can tell":                                  {[]string{"./always"}, []string{"CANNOT TELL: TestA (m/always), nor alone: ", "\n1 tests cannot tell: "}, "0 passed, 0 flaky, 0 failed, 0 skipped", false},
		"cannot tell, then fails":                         {[]string{"./wrong"}, []string{"failed: TestW (m/wrong)\n", "and again, alone: ", "always"}, "0 passed, 0 flaky, 1 failed, 0 skipped", true},
		"fails, then cannot tell":                         {[]string{"./both"}, []string{"failed: TestB (m/both)\n"}, "0 passed, 0 flaky, 1 failed, 0 skipped", true},
		"too many cannot tell":                            {[]string{"./stood"}, []string{"\n4 tests cannot tell: at most 3 are accepted\n"}, "0 passed, 0 flaky, 0 failed, 0 skipped", true},
		"a slash in the name of a subtest":                {[]string{"./slash"}, []string{"FLAKY: TestS (m/slash) passed when run alone: "}, "0 passed, 1 flaky, 0 failed, 0 skipped", false},
		"a stage without a package cannot be run":         {[]string{"./missing"}, nil, "0 passed, 0 flaky, 0 failed, 0 skipped", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, failed := output(t, stageEvents(t, write(t, unstable), c.args...))
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not reported", want)
				}
			}
			if failed != c.fail || !strings.HasSuffix(text, "\n"+c.last+"\n") {
				t.Errorf("failed %v, want %v and a last line %q", failed, c.fail, c.last)
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// TestNoRerunExcusesABrokenStage: a flaky test of the same stage does not hide packages that never ran.
func TestNoRerunExcusesABrokenStage(t *testing.T) {
	good := stageEvents(t, write(t, unstable), "./fails ./quiet")
	without := func(text string) string {
		return strings.Join(slices.DeleteFunc(slices.Collect(strings.Lines(good)), func(l string) bool { return strings.Contains(l, text) }), "")
	}
	for want, events := range map[string]string{
		"":                             good,
		"exit status -1, want 0 or 1":  strings.Replace(good, `"Code":1`, `"Code":-1`, 1),
		"exit status 2, want 0 or 1":   strings.Replace(good, `"Code":1`, `"Code":2`, 1),
		"no result of package m/quiet": without(`"Package":"m/quiet"`),
		"its command did not end":      without(`"Action":"stage-end"`),
	} {
		text, failed := output(t, events)
		if failed != (want != "") || want != "" && !strings.Contains(text, "\nfailed: stage a title, "+want+"\n") || !strings.Contains(text, "FLAKY: TestF (m/fails)") {
			t.Errorf("failed %v, want %q: %s", failed, want, text)
		}
	}
	if code, err := start([]string{"sh", "-c", "kill -9 $$"}, io.Discard); code != -1 || err != nil {
		t.Errorf("exit status %d, %v after a signal; want -1", code, err)
	}
}

// TestFailureWhileThisMachineStoodStillIsNotFlaky: only in that time, and only if it passes alone.
func TestFailureWhileThisMachineStoodStillIsNotFlaky(t *testing.T) {
	for _, c := range []struct {
		name, packages, want, last string
		later                      time.Duration
		fail                       bool
	}{
		{"in the time of the test", "./fails", "TestF (m/fails) failed while this machine stood still for 600ms, and passed when run alone: ", "2 passed, 0 flaky, 0 failed, 0 skipped", 0, false},
		{"after the test", "./fails", "FLAKY: TestF (m/fails)", "1 passed, 1 flaky, 0 failed, 0 skipped", time.Hour, false},
		{"four tests", "./many", "TestD (m/many) failed while", "4 passed, 0 flaky, 0 failed, 0 skipped", 0, false},
		{"a crash", "./panics", "the package itself (m/panics) failed while", "3 passed, 0 flaky, 0 failed, 0 skipped", 0, false},
		{"a test that fails again", "./victim", "failed: TestP (m/victim)", "0 passed, 0 flaky, 1 failed, 0 skipped", 0, true},
		{"a data race", "./races", "failed: TestR (m/races)", "0 passed, 0 flaky, 1 failed, 0 skipped", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now().Add(c.later)
			events := stageEvents(t, write(t, unstable), c.packages)
			var still strings.Builder
			for at := begin; at.Before(time.Now().Add(c.later)); at = at.Add(600 * time.Millisecond) { // whenever it failed
				if err := writeEvent(&still, event{Action: stoodStill, Time: at, Elapsed: 0.6}); err != nil {
					t.Fatal(err)
				}
			}
			text, failed := output(t, events+still.String())
			if failed != c.fail || !strings.Contains(text, c.want) || !strings.HasSuffix(text, "\n"+c.last+"\n") {
				t.Errorf("failed %v, want %v, %q and %q: %s", failed, c.fail, c.want, c.last, text)
			}
		})
	}
}

// The command stops this process, as a hypervisor stops a machine.
func TestTimesInWhichThisMachineStoodStillAreInTheLog(t *testing.T) {
	for stop, want := range map[string]bool{"0.7": true, "0.1": false} {
		var log strings.Builder
		if _, err := startWatched([]string{"sh", "-c", "sleep 0.1; kill -STOP $PPID; sleep " + stop + "; kill -CONT $PPID; sleep 0.1"}, &log); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), `"Action":"stood-still"`); got != want {
			t.Errorf("stopped for %s s: in the log %v, want %v: %s", stop, got, want, &log)
		}
	}
}

// TestStagesKeepTheirFilesApart: one test that is flaky in two stages is two flaky tests.
func TestStagesKeepTheirFilesApart(t *testing.T) {
	events := stageEvents(t, write(t, unstable), "./fails")
	r, err := read(strings.NewReader(events + strings.Replace(events, "a title", "another", 1)))
	if err != nil {
		t.Fatal(err)
	}
	r.rerunFailed(func(command []string) ([]byte, error) { return execute(command, io.Discard) })
	dir := t.TempDir()
	if err := r.keepFlaky(dir, "test"); err != nil {
		t.Fatal(err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 2 {
		t.Errorf("%q, %v; want two files", files, err)
	}
}

func TestShowOmitsPassedTests(t *testing.T) {
	var b strings.Builder
	if err := show(strings.NewReader("go: downloading\n"+events(t, "./tested")+events(t, "./fails")), &b); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"go: downloading\n": true, "told by show\n": true, "--- FAIL: TestF ": true, "f_test.go:7: wrong 50\n": true, "ok  \tm/tested\t": true, "FAIL\tm/fails\t": true,
		"=== RUN": false, "--- PASS": false,
	} {
		if strings.Contains(b.String(), text) != want {
			t.Errorf("%q is shown: %v, want %v\n%s", text, !want, want, &b)
		}
	}
}
