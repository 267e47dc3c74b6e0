package agent

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/tests/await"
)

// withLoadServer is a configuration whose load server has a token, and that token.
func withLoadServer(t *testing.T) (yaml, text string) {
	t.Helper()
	dir := t.TempDir()
	token, text, err := loadserver.NewToken("a", loadcontrol.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "tokens")
	if err := loadserver.AppendToken(file, token); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%sstate_dir: %s\nload_server: {listen: [\"127.0.0.1:0\"], tokens_file: %s}\n", twoPaths, dir, file), text
}

// TestAgentIsReadyWhenItsServersListen: what systemd starts after the agent may reach them at once.
func TestAgentIsReadyWhenItsServersListen(t *testing.T) {
	yaml, _ := withLoadServer(t)
	yaml += "reflector: {listen: [\"127.0.0.1:0\"]}\n"
	r := newRig(t, newFake(), yaml) // it waits for READY=1
	listening := func(when string) {
		t.Helper()
		if s := r.Status(); !s.Reflector.Listening || !s.LoadServer.Running {
			t.Errorf("%s: reflector %+v, load server %+v", when, s.Reflector, s.LoadServer)
		}
	}
	listening("at the start")
	r.write(strings.ReplaceAll(yaml, "{listen", "{allow: [127.0.0.0/8], listen"))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	listening("after a reload")
}

// TestAgentIsReadyWhenItsReflectorListens: no load server, whose key takes longer.
func TestAgentIsReadyWhenItsReflectorListens(t *testing.T) {
	for range 20 {
		r := newRig(t, newFake(), twoPaths+"reflector: {listen: [\"127.0.0.1:0\"]}\n")
		if !r.Status().Reflector.Listening {
			t.Fatal("the agent is ready before its reflector listens")
		}
		r.stop()
	}
}

// TestAgentIsReadyWithAPortThatIsTaken: the server is tried again, and the agent measures meanwhile.
func TestAgentIsReadyWithAPortThatIsTaken(t *testing.T) {
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	begin := time.Now()
	r := newRig(t, newFake(), fmt.Sprintf("%sreflector: {listen: [%q]}\n", twoPaths, taken.LocalAddr()))
	if since := time.Since(begin); since > listenTimeout/2 || r.Status().Reflector.Listening {
		t.Errorf("ready after %v, reflector %+v", since, r.Status().Reflector)
	}
}

func TestLoadServerRunsAndEndsWithItsSection(t *testing.T) {
	yaml, text := withLoadServer(t)
	r := newRig(t, newFake(), yaml)
	await.That(t, "the load server runs", func() bool { return r.Status().LoadServer.Running })
	unit := r.unit("load_server")
	if pin := r.Status().LoadServer.Pin; !strings.HasPrefix(pin, "sha256:") {
		t.Errorf("pin %q", pin)
	}
	c, err := loadcontrol.Dial(t.Context(), loadcontrol.ClientOptions{
		Address: r.running["load_server"].running().(*loadserver.LoadServer).Addrs()[0].String(), Pin: r.Status().LoadServer.Pin, Token: text,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r.write("# a comment\n" + yaml)
	if err := r.Reload(); err != nil || r.unit("load_server") != unit {
		t.Fatalf("an unchanged section restarted the load server, %v", err)
	}
	await.That(t, "the number of sessions is published", func() bool { v, ok := r.value("oneway_load_server_sessions"); return ok && v == 0 })
	r.write(strings.Replace(yaml, "{listen", "{max_sessions: 3, listen", 1))
	if err := r.Reload(); err != nil || r.unit("load_server") == unit {
		t.Fatalf("a changed section did not restart the load server, %v", err)
	}
	<-c.Done()
	await.That(t, "the load server runs again", func() bool { return r.Status().LoadServer.Running })
	r.write(twoPaths)
	if err := r.Reload(); err != nil || r.Status().LoadServer != nil {
		t.Errorf("the load server runs without its section: %v", err)
	}
	if _, ok := r.value("oneway_load_server_sessions"); ok {
		t.Error("its series still exist")
	}
}

func TestInvalidLoadServerIsRefusedWithItsPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("a certificate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, newFake(), twoPaths)
	for yaml, want := range map[string]string{
		"load_server: {tokens_file: absent}\nstate_dir: /nonexistent\n":                 ":5:28: load_server.tokens_file is \"absent\"; ",
		"load_server: {tokens_file: " + file + "}\n":                                    ":5:14: load_server cannot be used: state_dir is missing; without cert_file",
		"load_server: {tokens_file: " + file + ", cert_file: absent, key_file: absent}": fmt.Sprintf(":5:%d: load_server.cert_file is \"absent\"; ", len("load_server: {tokens_file: , cert_file: ")+len(file)+1),
	} {
		r.write(twoPaths + yaml)
		if err := r.Reload(); err == nil || !strings.HasPrefix(err.Error(), r.file+want) {
			t.Errorf("%s: %v, want %s", yaml, err, want)
		}
	}
}
