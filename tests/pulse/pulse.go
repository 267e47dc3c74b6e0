package pulse

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Device is a simulated PPS device. Its pulses begin with Create.
type Device struct {
	*device
	path string
	node unix.Stat_t
	log  *slog.Logger

	stop    context.CancelFunc
	serving sync.WaitGroup
	mu      sync.Mutex
	closing map[*func()]struct{} // nil after Close
}

// Create makes the node and begins to pulse. The path must not exist, or lead to a node that a killed process has left.
func Create(path string, s Settings, seed uint64, log *slog.Logger) (*Device, error) {
	l, err := newLine(s, seed)
	if err != nil {
		return nil, err
	}
	if err := removeLeft(path); err != nil {
		return nil, err
	}
	// Programs open it for reading and writing, and it never blocks.
	if err := unix.Mknod(path, unix.S_IFCHR|0o660, int(null)); err != nil {
		return nil, fmt.Errorf("pulse: make the node %s: %w", path, err)
	}
	d := &Device{device: newDevice(l), path: path, log: log, closing: map[*func()]struct{}{}}
	// By the umask it may be less.
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, fmt.Errorf("pulse: %w", err)
	}
	if err := unix.Stat(path, &d.node); err != nil {
		return nil, fmt.Errorf("pulse: stat %s: %w", path, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.stop = cancel
	d.serving.Go(func() { l.run(ctx) })
	return d, nil
}

// null is the null device.
const null = 1<<8 | 3

// removeLeft removes a node of an earlier Create.
func removeLeft(path string) error {
	var node unix.Stat_t
	if err := unix.Lstat(path, &node); err == nil && node.Mode&unix.S_IFMT == unix.S_IFCHR && node.Rdev == null && filepath.Base(path) != "null" {
		return os.Remove(path)
	}
	return nil
}

// Close removes the node, ends the pulses, and leaves the programs alone: their PPS ioctls fail with ENOSYS.
func (d *Device) Close() error {
	d.stop()
	d.mu.Lock()
	for f := range d.closing {
		(*f)()
	}
	d.closing = nil
	d.mu.Unlock()
	d.serving.Wait()
	return os.Remove(d.path)
}

// onClose has f called by Close, unless done was called before; done calls it, too.
func (d *Device) onClose(f func()) (done func()) {
	f = sync.OnceFunc(f)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing == nil {
		f()
		return f
	}
	d.closing[&f] = struct{}{}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.closing, &f)
		f()
	}
}

// Set changes the settings from the next pulse on.
func (d *Device) Set(s Settings) error { return d.set(s) }

// State is the settings and the last pulse.
type State struct {
	Settings
	// Pulses is the sequence number of the last pulse, At its timestamp; zero before the first.
	Pulses uint32
	At     time.Time
}

// State returns it.
func (d *Device) State() State {
	s, last := d.state()
	return State{s, last.sequence, last.at}
}
