package agent

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/sched"
	"oneway.example/tests/await"
)

const twoPaths = `clock: {source: static, bound: 1ms}
paths:
  - {name: a, peer: h, probes: [{type: fake}]}
  - {name: b, peer: h, probes: [{type: fake, interval: 2s}]}
`

func TestReloadKeepsProbersOfTheSameMeaning(t *testing.T) {
	fake := newFake()
	r := newRig(t, fake, twoPaths)
	fake.expect(t, "start a", "start b")
	kept := r.job(1)
	r.write(`clock: {source: static, bound: 1ms}
paths:
  - name: c
    peer: h
    probes: [{type: fake}]
  - name: b # a comment, another place, other quotes
    peer: "h"
    probes:
      - interval: "2s"
        type: fake
`)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	fake.expect(t, "stop a", "start c")
	if r.job(1) != kept {
		t.Error("the job of path b was replaced")
	}
	if _, found := r.value("oneway_probe_up", "a"); found {
		t.Error("the removed path still has a series")
	}
	for _, path := range []string{"b", "c"} {
		if v, _ := r.value("oneway_probe_up", path); v != 1 {
			t.Errorf("path %s has no series", path)
		}
	}
	status := r.Status()
	if len(status.Paths) != 2 || status.Paths[0].Name != "c" || status.Paths[1].Probes[0].Health != Up {
		t.Errorf("status is %+v", status.Paths)
	}
	r.expectState("RELOADING=1\nMONOTONIC_USEC=")
	r.expectState("READY=1")
	r.stop()
	fake.expect(t, "stop b", "stop c")
	r.expectState("STOPPING=1")
}

func TestChangedPeerOrOptionsRestartTheProber(t *testing.T) {
	fake := newFake()
	r := newRig(t, fake, twoPaths)
	fake.expect(t, "start a", "start b")
	r.write(strings.Replace(strings.Replace(twoPaths, "name: a, peer: h", "name: a, peer: h2", 1), "2s", "3s", 1))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	fake.expect(t, "stop a", "start a", "stop b", "start b")
	if why := fake.cause("a"); !errors.Is(why, context.Canceled) || why.Error() != "a reload of the configuration changed or removed it" {
		t.Errorf("the reload ended it with the cause %v", why)
	}
	r.stop()
	fake.expect(t, "stop a", "stop b")
	if why := fake.cause("a"); errors.Is(why, reloaded{}) {
		t.Errorf("the end of the agent ended it with the cause %v", why)
	}
}

func TestFailedReloadChangesNothing(t *testing.T) {
	fake := newFake()
	r := newRig(t, fake, twoPaths)
	fake.expect(t, "start a", "start b")
	if v, _ := r.value("oneway_config_last_reload_successful"); v != 1 {
		t.Errorf("reload_successful is %v after the start", v)
	}
	for _, c := range []struct{ yaml, want string }{
		{strings.Replace(twoPaths, "2s", "0s", 1), ":4:56: paths[1].probes[0].interval is 0s; it must be above zero"},
		{strings.Replace(twoPaths, "2s", "soon", 1), ":4:56: paths[1].probes[0].interval is \"soon\"; it must be a duration with a unit, such as 20ms, 10s or 1h30m"},
		{strings.Replace(twoPaths, "type: fake,", "type: fkae,", 1), ":4:40: paths[1].probes[0].type is \"fkae\"; did you mean \"fake\"?"},
		{strings.Replace(twoPaths, "name: b, peer: h", "name: b, peer: refused", 1), ":4:39: paths[1].probes[0] cannot be used: fake: this peer is refused"},
		{twoPaths + "reflector: {key_file: absent.key}", ":5:23: reflector.key_file is \"absent.key\"; "},
		{"paths: [", ":1:8: the bracket '[' is not closed"},
	} {
		r.write(c.yaml)
		err := r.Reload()
		if err == nil || !strings.HasPrefix(err.Error(), r.file+c.want) {
			t.Errorf("error is %v\nwant %s", err, r.file+c.want)
		}
		if got := r.Status().Config.Error; err == nil || got != err.Error() {
			t.Errorf("status says %q", got)
		}
	}
	fake.expect(t) // nothing has started or stopped
	if v, _ := r.value("oneway_config_last_reload_successful"); v != 0 {
		t.Errorf("reload_successful is %v after a failed reload", v)
	}
	r.write(twoPaths)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if v, _ := r.value("oneway_config_last_reload_successful"); v != 1 || r.Status().Config.Error != "" {
		t.Errorf("reload_successful is %v, status %+v after a good reload", v, r.Status().Config)
	}
	fake.expect(t)
	r.stop()
	fake.expect(t, "stop a", "stop b")
}

func TestNewKeyInItsFileRestartsThePath(t *testing.T) {
	fake := newFake()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, fake, strings.Replace(twoPaths, "interval: 2s", "key_file: "+key, 1))
	fake.expect(t, "start a", "start b")
	if err := os.WriteFile(key, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	fake.expect(t, "stop b", "start b")
}

func TestFailingProberIsShownAndRetried(t *testing.T) {
	for name, set := range map[string]func(*fakeType){
		"error": func(f *fakeType) { f.fails["a"] = errors.New("fake: no socket") },
		"panic": func(f *fakeType) { f.panics["a"] = true },
	} {
		t.Run(name, func(t *testing.T) {
			fake := newFake()
			set(fake)
			r := newRig(t, fake, twoPaths)
			await.That(t, "path a failed twice", func() bool { return r.Status().Paths[0].Probes[0].Restarts >= 2 })
			await.That(t, "path a has the status failed", func() bool {
				s := r.Status().Paths[0].Probes[0]
				return s.Health == Failed && s.Reason != ""
			})
			await.That(t, "path a has no series", func() bool { _, found := r.value("oneway_probe_up", "a"); return !found })
			fake.mu.Lock()
			clear(fake.fails)
			clear(fake.panics)
			fake.mu.Unlock()
			await.That(t, "path a is up again", func() bool { return r.Status().Paths[0].Probes[0].Health == Up })
			if s := r.Status().Paths[1].Probes[0]; s.Health != Up || s.Restarts != 0 {
				t.Errorf("path b was changed: %+v", s)
			}
		})
	}
}

func TestAgentStartsWithFailingParts(t *testing.T) {
	taken, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	fake := newFake()
	fake.fails["a"] = errors.New("fake: no socket")
	r := newRig(t, fake, strings.Replace(twoPaths, "clock: {source: static, bound: 1ms}",
		"clock: {address: \"unix:///nonexistent/chronyd.sock\"}\nreflector: {listen: [\""+taken.LocalAddr().String()+"\"]}", 1))
	await.That(t, "path b is measured", func() bool { return r.Status().Paths[1].Probes[0].Health == Up })
	await.That(t, "the status has the reflector's failure", func() bool {
		s := r.Status().Reflector
		return s != nil && !s.Listening && strings.Contains(s.Error, "another program")
	})
	if s := r.Status().Clock; s.Trusted || s.State != "silent" || s.Reason == "" {
		t.Errorf("clock is %+v", s)
	}
	taken.Close()
	await.That(t, "the reflector runs when the port is free", func() bool { return r.Status().Reflector.Listening })
}

func TestServersListenWhereTheyCan(t *testing.T) {
	r := newRig(t, newFake(), twoPaths+"reflector: {listen: [\"127.0.0.1:0\", \"192.0.2.77:862\"]}\n")
	await.That(t, "the reflector listens, and the status has the address without a socket", func() bool {
		s := r.Status().Reflector
		if s == nil || !s.Listening {
			return false
		}
		health, words := s.Brief()
		return health == Impaired && words == "running, not on all addresses" && strings.Contains(s.Error, "192.0.2.77:862: bind: cannot assign requested address: this host does not have this address")
	})
}

func TestReflectorWithoutHardwareTimestampsIsShownAndTheRestRuns(t *testing.T) {
	r := newRig(t, newFake(), twoPaths+"reflector: {listen: [\"127.0.0.1:0\"], hardware: lo}\n")
	await.That(t, "path b is measured", func() bool { return r.Status().Paths[1].Probes[0].Health == Up })
	await.That(t, "the status has the reason", func() bool {
		s := r.Status().Reflector
		return s != nil && !s.Listening && strings.Contains(s.Error, "interface lo has no PTP clock")
	})
	r.write(twoPaths + "reflector: {listen: [\"127.0.0.1:0\"]}\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	await.That(t, "the reflector runs without hardware timestamps", func() bool { return r.Status().Reflector.Listening })
}

func TestClockAndReflectorAreRestartedOnlyIfTheyChange(t *testing.T) {
	fake := newFake()
	base := twoPaths + "reflector: {listen: [\"127.0.0.1:0\"]}\n"
	r := newRig(t, fake, base)
	await.That(t, "the reflector runs", func() bool { return r.Status().Reflector.Listening })
	fake.expect(t, "start a", "start b")
	clockUnit, reflectorUnit := r.unit("clock"), r.unit("reflector")
	reload := func(yaml string) {
		t.Helper()
		r.write(yaml)
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	reload(strings.Replace(base, "2s", "3s", 1))
	if r.unit("clock") != clockUnit || r.unit("reflector") != reflectorUnit {
		t.Error("a change of a path restarted the clock or the reflector")
	}
	reload(strings.Replace(base, "bound: 1ms", "bound: 2ms", 1))
	if r.unit("clock") == clockUnit || r.unit("reflector") != reflectorUnit {
		t.Error("a change of the clock did not restart the clock alone")
	}
	if got := r.Status().Clock.Bound; got.Duration() != 2*time.Millisecond {
		t.Errorf("bound is %v", got)
	}
	reload(base)
	reload(base + "\n# a comment")
	changed := strings.Replace(base, "reflector: {", "reflector: {stateless: true, ", 1)
	reload(changed)
	if r.unit("reflector") == reflectorUnit {
		t.Error("a change of the reflector did not restart it")
	}
	await.That(t, "the reflector runs again", func() bool { return r.Status().Reflector.Listening })
	reload(twoPaths)
	if r.Status().Reflector != nil {
		t.Error("the status still has the reflector")
	}
}

func TestNewKeyOfTheReflectorKeepsItsSessions(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, newFake(), twoPaths+"reflector: {listen: [\"127.0.0.1:0\"], key_file: "+key+"}\n")
	await.That(t, "the reflector runs", func() bool { return r.Status().Reflector.Listening })
	unit := r.unit("reflector")
	if err := os.WriteFile(key, []byte("new\nold\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if r.unit("reflector") != unit || len(r.running["reflector"].secrets) != 2 {
		t.Error("the reflector was restarted, or does not have the new keys")
	}
}

func TestMonitorOfTheAgentIsNotRunByProbers(t *testing.T) {
	r := newRig(t, newFake(), twoPaths)
	if err := r.clock.Run(context.Background()); !errors.Is(err, errNotYours) {
		t.Errorf("got %v", err)
	}
	if q := r.clock.Quality(instant.Now()); !q.Synchronized() {
		t.Errorf("quality is %+v", q)
	}
}

func TestAgentDoesNotStartWithABadConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "oneway.yml")
	if err := os.WriteFile(file, []byte("paths: [{name: a, peer: h, probes: [{type: fake, interval: 0s}]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	types := typesWith(newFake())
	want := file + ":1:60: paths[0].probes[0].interval is 0s; it must be above zero"
	if _, err := New(Options{ConfigFile: file, Types: types}); err == nil || err.Error() != want {
		t.Errorf("New: got %v, want %s", err, want)
	}
	if _, _, err := Check(Options{ConfigFile: file, Types: types}); err == nil || err.Error() != want {
		t.Errorf("Check: got %v, want %s", err, want)
	}
}

func TestCheckCounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "oneway.yml")
	if err := os.WriteFile(file, []byte(twoPaths), 0o600); err != nil {
		t.Fatal(err)
	}
	got, _, err := Check(Options{ConfigFile: file, Types: typesWith(newFake())})
	if err != nil || !reflect.DeepEqual(got, Summary{Paths: 2, Probes: 2}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestReloadOutsideOfRunIsRefused(t *testing.T) {
	r := newRig(t, newFake(), twoPaths)
	r.stop()
	if err := r.Reload(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v", err)
	}
}

func TestWatchdogIsNotifiedWhileThePacerFires(t *testing.T) {
	pacer, err := sched.NewPacer()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	pacing, stopPacing := context.WithCancel(context.Background())
	states := make(chan string, 100)
	paced, guarded := make(chan error, 1), make(chan struct{})
	go func() { paced <- pacer.Run(pacing) }()
	go func() { guard(ctx, pacer, 5*time.Millisecond, func(s string) { states <- s }); close(guarded) }()
	for range 3 {
		if got := <-states; got != "WATCHDOG=1" {
			t.Fatalf("notified %q", got)
		}
	}
	stopPacing()
	if err := <-paced; err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * 5 * time.Millisecond) // ten intervals of the guard, in which nothing must be sent: no event marks that
	// After the end of the thread one more notification can follow, for a firing before its end.
	if len(states) > 1 {
		t.Error("the watchdog was notified while no packets were sent")
	}
	cancel()
	<-guarded
}

// A file of hosts in the place of the configuration, or a text.
func TestConfigurationThatIsNoMappingIsRefused(t *testing.T) {
	r := newRig(t, newFake(), twoPaths)
	for text, want := range map[string]string{
		"- {name: a, address: 192.0.2.1}": "oneway.yml:1:1: is a list; it must be a mapping",
		"paths":                           `oneway.yml:1:1: is "paths"; it must be a mapping`,
		"owt_6JJV3UHiU5bbNDmhiVg8t0O8Cf":  "oneway.yml:1:1: is text, as of a token or a key; it must be a mapping",
	} {
		r.write(text)
		if err := r.Reload(); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
		if _, _, err := Check(Options{ConfigFile: r.file, Types: typesWith(newFake())}); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: check: got %v, want %s", text, err, want)
		}
	}
	r.stop()
}
