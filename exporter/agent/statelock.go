package agent

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// stateLock is the directory of state that this agent uses. Two agents with one directory would overwrite each other's usage of
// quotas and delete each other's reports.
type stateLock struct {
	path string
	dir  *os.File // nil: the directory is not locked
}

// take locks the directory instead of the former one, until release or the end of the process. It is an error if another agent uses
// it; then the former one remains. A directory that does not exist, or cannot be opened, is not locked: those who write to it report that.
func (l *stateLock) take(path string) error {
	if path == l.path && l.dir != nil {
		return nil
	}
	var dir *os.File
	if path != "" {
		dir, _ = os.Open(path)
	}
	if dir != nil {
		if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
			_ = dir.Close() // it was not read
			return fmt.Errorf("agent: state_dir %s: another running agent uses it; give each agent a directory of its own", path)
		}
	}
	l.release()
	l.path, l.dir = path, dir
	return nil
}

func (l *stateLock) release() {
	if l.dir != nil {
		_ = l.dir.Close() // it was not written
	}
	l.dir = nil
}
