package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"oneway.example/exporter/core/ctxtime"
)

// stateLock is the directory of state that this agent uses. Two agents with one directory would overwrite each other's usage of
// quotas and delete each other's reports.
type stateLock struct {
	path string
	dir  *os.File // nil: the directory is not locked
	// failing: the log has that the directory cannot be locked again.
	failing bool
}

const (
	// stateMode is the mode of a directory of state that does not exist.
	stateMode fs.FileMode = 0o750
	// stateInterval is the interval at which the directory is looked for.
	stateInterval = 2 * time.Second
)

// take makes and locks the directory instead of the former one, until release or the end of the process. It is an error if another agent
// uses it; then the former one remains. A directory that cannot be made or opened is not locked: those who write to it report that.
func (l *stateLock) take(path string) error {
	if path == l.path && l.dir != nil {
		return nil
	}
	dir, err := lockState(path)
	if errors.Is(err, errStateTaken) {
		return err
	}
	l.release()
	l.path, l.dir = path, dir
	return nil
}

var errStateTaken = errors.New("another running agent uses it; give each agent a directory of its own")

// lockState makes and locks a directory; nil without a path.
func lockState(path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	if err := os.MkdirAll(path, stateMode); err != nil {
		return nil, fmt.Errorf("agent: state_dir: %w", err)
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("agent: state_dir: %w", err)
	}
	err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return dir, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = errStateTaken
	}
	_ = dir.Close() // it was not read
	return nil, fmt.Errorf("agent: state_dir %s: %w", path, err)
}

// lost reports whether the path leads to no directory that is locked: it was never locked, or was removed, renamed or replaced since.
func (l *stateLock) lost() bool {
	if l.path == "" {
		return false
	}
	if l.dir == nil {
		return true
	}
	own, err := l.dir.Stat()
	now, missing := os.Stat(l.path)
	return err != nil || missing != nil || !os.SameFile(own, now)
}

func (l *stateLock) release() {
	if l.dir != nil {
		_ = l.dir.Close() // it was not written
	}
	l.dir = nil
}

// watchState locks the directory of state again when it is lost, until ctx ends: else another agent could start with it.
func (a *Agent) watchState(ctx context.Context) {
	for ctxtime.Sleep(ctx, stateInterval) { // inotify(7) does not report a renamed parent, nor a file system mounted over it
		a.reloading.Lock()
		a.relock()
		a.reloading.Unlock()
	}
}

// relock locks the directory of state if it is lost. The caller holds reloading.
func (a *Agent) relock() {
	l := &a.state
	if !l.lost() {
		return
	}
	dir, err := lockState(l.path)
	switch {
	case err != nil && !l.failing:
		a.log.Error("The directory of state cannot be used; it is tried again", "err", err)
	case err == nil && l.dir != nil:
		a.log.Warn("The directory of state was removed, renamed or replaced while this agent ran; it is locked again, and the usage of quotas saved", "state_dir", l.path)
	case err == nil:
		a.log.Info("The directory of state is locked", "state_dir", l.path)
	}
	l.failing = err != nil
	var taken error
	if errors.Is(err, errStateTaken) {
		taken = errStateTaken
	}
	a.shared.quota.Forbid(taken)
	if err == nil {
		l.release()
		l.dir = dir
		a.shared.quota.Keep()
		a.shared.reports.Rescan()
	}
}
