package vmlab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Network is a bridge in a separate network namespace, which no packet can leave
// and which ends with the last process in it.
type Network struct{ space *os.File }

// NewNetwork makes one with a tap for each name.
func NewNetwork(captures ...string) (*Network, error) {
	n := &Network{}
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("vmlab: new network namespace: %w", err)
		}
		if n.space, err = os.Open(threadNamespace()); err != nil {
			return fmt.Errorf("vmlab: %w", err)
		}
		// No neighbor discovery, no multicast reports: only the guests send.
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0o644); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("vmlab: %w", err)
		}
		return bridge(captures)
	})
	return n, err
}

func bridge(captures []string) error {
	commands := []string{"link add br0 type bridge mcast_snooping 0", "link set br0 up"}
	for _, t := range captures {
		commands = append(commands, "tuntap add dev "+t+" mode tap", "link set "+t+" master br0 up")
	}
	for _, c := range commands {
		if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			return fmt.Errorf("vmlab: ip %s: %w: %s", c, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// Close releases the namespace.
func (n *Network) Close() error { return n.space.Close() }

// start starts a process inside.
func (n *Network) start(cmd *exec.Cmd) error {
	return onThread(func() error {
		if err := unix.Setns(int(n.space.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("vmlab: enter network namespace: %w", err)
		}
		return cmd.Start()
	})
}

// onThread runs f on a separate thread, which ends with f.
func onThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is in another namespace
		result <- f()
	}()
	return <-result
}

func threadNamespace() string { return fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()) }
