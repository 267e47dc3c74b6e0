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

var errTaken = errors.New("another agent has the lock")

// maxSocket is the longest path of a UNIX socket in bytes (unix(7)).
const maxSocket = 107

// listen opens the socket and replaces one that a terminated agent has left. An agent holds a lock
// on a file beside it; the kernel releases the lock when the process ends.
func listen(ctx context.Context, path, group string) (l *net.UnixListener, closeAll func(), err error) {
	if len(path) > maxSocket {
		return nil, nil, fmt.Errorf("socket %s: the path has %d bytes; it must have at most %d", path, len(path), maxSocket)
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
		_ = made.Close() // err is returned
		return nil, nil, err
	}
	l = made.(*net.UnixListener)
	return l, func() { _ = l.Close(); unlock() }, nil
}

// removeStale removes path if it is a socket; any other file is an error.
func removeStale(path string) error {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("socket %s: the file is no socket; remove it, or choose another path", path)
	}
	return os.Remove(path)
}

// groupID returns the number of a group; -1 for an empty name.
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

// lock locks a file until unlock or the end of the process.
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

// private makes the socket accessible to its owner only from its creation: on Linux the file gets
// the mode of the unbound socket.
func private(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) }) // permit sets the final mode
}
