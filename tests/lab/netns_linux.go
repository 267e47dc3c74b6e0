package lab

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace without a name: it exists while the
// descriptor is open or a thread or process is in it, so that nothing can remain
// after this process.
type namespace struct{ file *os.File }

// errExited is what Do returns when its function ended by runtime.Goexit, as
// t.FailNow does.
var errExited = errors.New("lab: the function called runtime.Goexit; return an error instead")

// newNamespace makes an empty namespace.
func newNamespace() (namespace, error) {
	var n namespace
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare: %w", err)
		}
		var err error
		n.file, err = os.Open(threadNamespace())
		return err
	})
	if err != nil {
		return namespace{}, fmt.Errorf("lab: new network namespace: %w", err)
	}
	return n, nil
}

func (n namespace) close() error { return n.file.Close() }

// do runs f on a thread inside the namespace.
func (n namespace) do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("lab: enter network namespace: %w", err)
		}
		return f()
	})
}

// onThread runs f in a separate goroutine on a locked thread and returns the
// thread to its namespace. If that fails the thread remains locked: the
// runtime ends it with the goroutine, and no other code ever runs on it.
func onThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := errExited
		defer func() { result <- err }()
		home, openErr := os.Open(threadNamespace())
		if openErr != nil {
			err = openErr
			return
		}
		defer func() {
			if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
				runtime.UnlockOSThread()
			}
			home.Close()
		}()
		err = f()
	}()
	return <-result
}

// threadNamespace is the calling thread's; /proc/self would be the main thread's.
func threadNamespace() string {
	return fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())
}
