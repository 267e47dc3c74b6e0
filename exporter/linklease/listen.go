package linklease

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

var errTaken = errors.New("another agent has it")

// maxSocket is the longest path that a socket's address holds, in bytes (unix(7)).
const maxSocket = 107

// listen opens the socket, and takes the place of one that a dead agent has left. A lock
// beside it, which dies with its agent, says that one lives.
func listen(ctx context.Context, path, group string) (l *net.UnixListener, closeAll func(), err error) {
	if len(path) > maxSocket {
		return nil, nil, fmt.Errorf("socket %s: its path has %d bytes; it must have %d at the most", path, len(path), maxSocket)
	}
	gid, err := groupID(group)
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, nil, err
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	if err := removeStale(path); err != nil {
		return nil, nil, err
	}
	c := net.ListenConfig{Control: private}
	made, err := c.Listen(ctx, "unix", path)
	if err != nil {
		return nil, nil, err
	}
	if err := permit(path, gid); err != nil {
		_ = made.Close() // what is wrong is told
		return nil, nil, err
	}
	l = made.(*net.UnixListener)
	return l, func() { _ = l.Close(); unlock() }, nil
}

// removeStale removes a socket, and nothing else.
func removeStale(path string) error {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("socket %s: there is a file that is no socket; remove it, or choose another place", path)
	}
	return os.Remove(path)
}

// groupID is a group's number; -1 for none.
func groupID(name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return -1, err
	}
	return strconv.Atoi(g.Gid)
}

func permit(path string, gid int) error {
	if gid < 0 {
		return os.Chmod(path, 0o600)
	}
	return errors.Join(os.Chown(path, -1, gid), os.Chmod(path, 0o660))
}

// lock takes a file for this process, as long as it lives or until unlock.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errTaken
		}
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return func() { _ = f.Close() }, nil
}

// private keeps a socket from all but its owner, from its first moment on: Linux gives the
// file the mode that the unbound socket has.
func private(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) }) // others have the mode set below
}
