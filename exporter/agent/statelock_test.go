package agent

import (
	"strings"
	"testing"
)

// TestTwoAgentsDoNotShareAStateDirectory: the second one does not start with it, or keeps its configuration at a reload.
func TestTwoAgentsDoNotShareAStateDirectory(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	first := newRig(t, newFake(), noPaths+"state_dir: "+dir+"\n")
	want := "agent: state_dir " + dir + ": another running agent uses it"
	second, err := New(Options{ConfigFile: first.file, Types: typesWith(newFake())})
	if err != nil {
		t.Fatalf("the check of the configuration: %v", err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the second agent: %v, want %q", err, want)
	}
	third := newRig(t, newFake(), noPaths+"state_dir: "+other+"\n")
	third.write(noPaths + "state_dir: " + dir + "\n")
	if err := third.Reload(); err == nil || !strings.HasPrefix(err.Error(), want) || third.inForce.shared.stateDir != other {
		t.Errorf("a reload: %v, state_dir %s", err, third.inForce.shared.stateDir)
	}
	if err := first.Reload(); err != nil {
		t.Errorf("a reload with the same directory: %v", err)
	}
	first.stop()
	if err := third.Reload(); err != nil || third.inForce.shared.stateDir != dir {
		t.Errorf("after the end of the first agent: %v, state_dir %s", err, third.inForce.shared.stateDir)
	}
}
