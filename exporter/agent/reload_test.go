package agent

import (
	"errors"
	"testing"
	"time"

	"oneway.example/tests/await"
)

func TestReloadServesAllRequestsMadeBeforeItBegins(t *testing.T) {
	r := newRig(t, newFake(), "paths: []\n")
	var later func() error // requested while the first runs
	r.notify = func(state string) {
		if later == nil {
			later = r.nextReload()
		}
		r.states <- state
	}
	one, again := r.nextReload(), r.nextReload()
	for range 2 { // served by one reload
		if err := errors.Join(one(), again()); err != nil {
			t.Fatal(err)
		}
		r.expectState("RELOADING=1")
		r.expectState("READY=1")
		if len(r.states) > 0 {
			t.Errorf("two requests before its start got two reloads: %q", <-r.states)
		}
		one, again = later, later
	}
}

func TestReloadRequestedDuringAReloadReadsTheFileAfterIt(t *testing.T) {
	fake := newFake()
	r := newRig(t, fake, twoPaths)
	fake.expect(t, "start a", "start b")
	r.reloading.Lock() // a reload runs
	ended := make(chan error, 20)
	for range cap(ended) {
		go func() { ended <- r.Reload() }()
	}
	await.That(t, "somebody waits", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.next != nil
	})
	r.write(twoPaths[:len(twoPaths)/2] + "[")
	r.write("paths: []\n") // last content
	r.reloading.Unlock()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	fake.expect(t, "stop a", "stop b")
}

func TestWaitingReloadEndsWithTheAgent(t *testing.T) {
	fake := newFake()
	r := newRigWith(t, fake, twoPaths, func(o *Options) { o.reloadPause = time.Hour })
	if err := r.Reload(); err != nil { // the first does not wait
		t.Fatal(err)
	}
	ended := make(chan error, 20)
	for range cap(ended) {
		go func() { ended <- r.Reload() }()
	}
	await.That(t, "somebody waits", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.next != nil
	})
	r.stop()
	for range cap(ended) {
		if err := <-ended; !errors.Is(err, ErrNotRunning) {
			t.Errorf("error is %v", err)
		}
	}
}
