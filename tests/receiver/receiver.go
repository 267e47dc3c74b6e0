package receiver

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/ctxtime"
)

// Receiver writes sentences every second.
type Receiver struct {
	// Path is that of the pty or of the FIFO, for gpsd.
	Path string

	mu       sync.Mutex
	settings Settings
	files    []*os.File // the first is written
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// OpenPTY starts a receiver on a pty. gpsd takes a pty for a test and does not export its time; it reports all else.
func OpenPTY(s Settings) (*Receiver, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("receiver: open a pty: %w", err)
	}
	r := &Receiver{files: []*os.File{master}, settings: s}
	// Fd makes the file blocking, and Close must be able to end a Read.
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, fmt.Errorf("receiver: open a pty: %w", err)
	}
	r.Path = fmt.Sprintf("/dev/pts/%d", number)
	slave, err := os.OpenFile(r.Path, os.O_RDWR|unix.O_NOCTTY, 0) // kept open, so that the pty remains when gpsd closes it
	if err != nil {
		return nil, fmt.Errorf("receiver: %w", err)
	}
	r.files = append(r.files, slave)
	go func() { _, _ = io.Copy(io.Discard, master) }() // discards gpsd's queries
	return r, r.start()
}

// OpenFIFO starts a receiver without a return channel: gpsd 3.22 exports the time of a FIFO to SHM 0, as that of a real port. The
// path may exist, if it is a FIFO. gpsd needs a symbolic link: it refuses a path that another process has open.
func OpenFIFO(path string, s Settings) (*Receiver, error) {
	if err := unix.Mkfifo(path, 0o666); err != nil && !isFIFO(path) {
		return nil, fmt.Errorf("receiver: make the FIFO %s: %w", path, err)
	}
	fifo, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("receiver: %w", err)
	}
	r := &Receiver{Path: path, files: []*os.File{fifo}, settings: s}
	return r, r.start()
}

func isFIFO(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == os.ModeNamedPipe
}

func (r *Receiver) start() error {
	if err := os.Chmod(r.Path, 0o666); err != nil { // gpsd drops root
		return fmt.Errorf("receiver: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	r.running.Go(func() { r.run(ctx) })
	return nil
}

// Set changes the settings from the next second on.
func (r *Receiver) Set(s Settings) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settings = s
}

// State is the settings.
func (r *Receiver) State() Settings {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settings
}

// Close unplugs it: the sentences and the pty end; a FIFO's node remains.
func (r *Receiver) Close() {
	r.stop()
	for _, f := range r.files {
		_ = f.Close()
	}
	r.running.Wait()
}

func (r *Receiver) run(ctx context.Context) {
	late := func() time.Duration { return r.State().Late }
	EverySecond(ctx, late, func(second time.Time) {
		if s := r.State(); !s.Silent && !r.unread() {
			_ = r.files[0].SetWriteDeadline(time.Now().Add(time.Second)) // nobody reads: the sentences are lost
			_, _ = io.WriteString(r.files[0], s.Sentences(second))
		}
	})
}

// unread: nobody has read the last second's sentences from a FIFO. A later reader must not get old ones.
func (r *Receiver) unread() bool {
	raw, err := r.files[0].SyscallConn()
	if err != nil || len(r.files) > 1 { // a pty
		return false
	}
	n := 0
	err = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return err == nil && n > 0
}

// EverySecond calls f late after each second of the clock, until ctx ends. late is called before each wait.
func EverySecond(ctx context.Context, late func() time.Duration, f func(second time.Time)) {
	for {
		after := late()
		second := time.Now().Add(-after).Truncate(time.Second).Add(time.Second)
		if !ctxtime.Sleep(ctx, time.Until(second.Add(after))) { // the time of the next sentences
			return
		}
		f(second.UTC())
	}
}
