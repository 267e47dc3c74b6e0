package agent

import (
	"errors"
	"sync"
	"time"

	"oneway.example/exporter/config"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/wait"
)

// reloadPause is the least between the end of a reload and the beginning of the next.
const reloadPause = time.Second

// ErrNotRunning is returned by Reload before and after Run.
var ErrNotRunning = errors.New("agent: not running")

// reloads has those who ask at one time answered by one reload, which begins after the
// last of them has asked. The zero value is right.
type reloads struct {
	mu   sync.Mutex
	next *reload // has not begun; nil: nobody waits for one
}

// reload is one of all who wait for it.
type reload struct {
	done chan struct{} // closed at its end
	err  error         // the result; set before that
}

// join returns the reload that answers whoever asks now, and whether he is the first, who must
// begin and finish it.
func (r *reloads) join() (one *reload, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if first = r.next == nil; first {
		r.next = &reload{done: make(chan struct{})}
	}
	return r.next, first
}

// begin says that who asks from now on is answered by another.
func (r *reloads) begin() {
	r.mu.Lock()
	r.next = nil
	r.mu.Unlock()
}

// Reload reads the configuration again and puts it in force. On an error the one before stays
// in force, untouched. One reload runs at a time, and the next begins a second after its end:
// all who have asked by then are answered by that one, which reads the file after each of them
// has asked.
func (a *Agent) Reload() error {
	one, first := a.asked.join()
	if first {
		a.lead(one)
	}
	<-one.done
	return one.err
}

// lead does a reload for all who wait for it.
func (a *Agent) lead(one *reload) {
	defer close(one.done)
	a.reloading.Lock()
	defer a.reloading.Unlock()
	a.mu.Lock()
	ctx := a.ctx
	a.mu.Unlock()
	if ctx != nil {
		wait.For(ctx, time.Until(a.reloaded.Add(a.options.reloadPause)))
	}
	a.asked.begin()
	if ctx == nil || ctx.Err() != nil {
		one.err = ErrNotRunning
		return
	}
	one.err = a.reload()
	a.reloaded = time.Now()
}

// reload does one; reloading is held.
func (a *Agent) reload() error {
	a.notify(reloadingState())
	defer a.notify("READY=1")
	c, err := config.Load(a.options.ConfigFile)
	var p *plan
	if err == nil {
		p, err = a.plan(c)
	}
	if err != nil {
		a.reloadFailed(err)
		return err
	}
	kept := a.apply(p)
	a.log.Info("Configuration reloaded", "paths", len(c.Paths), "probes", len(p.jobs), "probes_kept", kept)
	return nil
}

func (a *Agent) reloadFailed(err error) {
	a.mu.Lock()
	a.reloadErr = err
	a.mu.Unlock()
	a.setGauge(metric.ConfigReloadSuccess, 0)
	a.log.Error("Configuration not reloaded, the one before stays in force", "err", err)
}
