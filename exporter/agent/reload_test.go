package agent

import (
	"errors"
	"testing"
	"time"
)

func TestReloadAnswersAllWhoHaveAskedBeforeItBegins(t *testing.T) {
	var r reloads
	one, first := r.join()
	again, second := r.join()
	if !first || second || again != one {
		t.Errorf("two who ask: first %v and %v, the same reload %v", first, second, again == one)
	}
	r.begin()
	if next, first := r.join(); !first || next == one {
		t.Errorf("who asks while it runs is answered by it: the file may have changed since it was read")
	}
}

func TestReloadThatIsAskedForWhileOneRunsReadsTheFileAfterIt(t *testing.T) {
	fake := newFake()
	r := newRig(t, fake, twoPaths)
	fake.expect(t, "start a", "start b")
	r.reloading.Lock() // one runs
	running, _ := r.asked.join()
	r.asked.begin()
	ended := make(chan error, 20)
	for range cap(ended) {
		go func() { ended <- r.Reload() }()
	}
	eventually(t, "somebody waits", func() bool {
		r.asked.mu.Lock()
		defer r.asked.mu.Unlock()
		return r.asked.next != nil && r.asked.next != running
	})
	r.write(twoPaths[:len(twoPaths)/2] + "[")
	r.write("paths: []\n") // the last
	r.reloading.Unlock()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	fake.expect(t, "stop a", "stop b")
}

func TestReloadThatWaitsForItsTurnEndsWithTheAgent(t *testing.T) {
	fake := newFake()
	r := newRigWith(t, fake, twoPaths, func(o *Options) { o.reloadPause = time.Hour })
	if err := r.Reload(); err != nil { // the first waits for nothing
		t.Fatal(err)
	}
	ended := make(chan error, 20)
	for range cap(ended) {
		go func() { ended <- r.Reload() }()
	}
	eventually(t, "somebody waits", func() bool {
		r.asked.mu.Lock()
		defer r.asked.mu.Unlock()
		return r.asked.next != nil
	})
	r.stop()
	for range cap(ended) {
		if err := <-ended; !errors.Is(err, ErrNotRunning) {
			t.Errorf("error is %v", err)
		}
	}
}
