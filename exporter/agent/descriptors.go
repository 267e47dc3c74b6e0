package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"time"
)

// descriptorInterval is how often a file is opened to see whether any can be.
const descriptorInterval = 2 * time.Second

// watchDescriptors logs when there is no file descriptor left, in the process or the system, and
// when there is one again. It is said here, once, for all paths and connections that lack one.
// The channel is closed when ctx has ended it.
func watchDescriptors(ctx context.Context, log *slog.Logger, open func() error) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(descriptorInterval)
		defer ticker.Stop()
		for out := false; ; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			err := open()
			before := out
			out = errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
			switch {
			case out && !before:
				log.Error("No file descriptor is left: no file, name or connection can be opened; a service's limit is LimitNOFILE", "err", err)
			case !out && before:
				log.Info("There are file descriptors again")
			}
		}
	}()
	return ended
}

// openNull opens and closes a file that is always there.
func openNull() error {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	return f.Close()
}
