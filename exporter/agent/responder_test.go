package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneway.example/exporter/control"
	"oneway.example/exporter/responder"
	"oneway.example/tests/await"
)

// withResponder is a configuration whose responder has a token, and that token.
func withResponder(t *testing.T) (yaml, text string) {
	t.Helper()
	dir := t.TempDir()
	token, text, err := responder.NewToken("a", control.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "tokens")
	if err := responder.AppendToken(file, token); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%sstate_dir: %s\nresponder: {listen: [\"127.0.0.1:0\"], tokens_file: %s}\n", twoPaths, dir, file), text
}

func TestResponderRunsAndEndsWithItsSection(t *testing.T) {
	yaml, text := withResponder(t)
	r := newRig(t, newFake(), yaml)
	await.That(t, "the responder runs", func() bool { return r.Status().Responder.Running })
	unit := r.unit("responder")
	if pin := r.Status().Responder.Pin; !strings.HasPrefix(pin, "sha256:") {
		t.Errorf("pin %q", pin)
	}
	c, err := control.Dial(t.Context(), control.ClientOptions{
		Address: r.running["responder"].running().(*responder.Responder).Addrs()[0].String(), Pin: r.Status().Responder.Pin, Token: text,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r.write("# a comment\n" + yaml)
	if err := r.Reload(); err != nil || r.unit("responder") != unit {
		t.Fatalf("the same section began anew, %v", err)
	}
	if v, ok := r.value("oneway_responder_sessions"); !ok || v != 0 {
		t.Errorf("sessions are %v, %t", v, ok)
	}
	r.write(strings.Replace(yaml, "{listen", "{max_sessions: 3, listen", 1))
	if err := r.Reload(); err != nil || r.unit("responder") == unit {
		t.Fatalf("another section did not begin anew, %v", err)
	}
	<-c.Done()
	await.That(t, "the responder runs again", func() bool { return r.Status().Responder.Running })
	r.write(twoPaths)
	if err := r.Reload(); err != nil || r.Status().Responder != nil {
		t.Errorf("the section is gone, the responder is not: %v", err)
	}
	if _, ok := r.value("oneway_responder_sessions"); ok {
		t.Error("its series are still there")
	}
}

func TestResponderThatCannotBeIsRefusedWithItsPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("a certificate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, newFake(), twoPaths)
	for yaml, want := range map[string]string{
		"responder: {tokens_file: absent}\nstate_dir: /nonexistent\n":                 ":5:12: responder cannot be used: responder: tokens file: open ",
		"responder: {tokens_file: " + file + "}\n":                                    ":5:12: responder cannot be used: responder: without a certificate it needs a state directory (state_dir)",
		"responder: {tokens_file: " + file + ", cert_file: absent, key_file: absent}": ":5:12: responder cannot be used: responder: certificate: keyfile: open ",
	} {
		r.write(twoPaths + yaml)
		if err := r.Reload(); err == nil || !strings.HasPrefix(err.Error(), r.file+want) {
			t.Errorf("%s: %v, want %s", yaml, err, want)
		}
	}
}
