package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"oneway.example/exporter/sched"
)

// systemdNotify tells systemd, where NOTIFY_SOCKET says that it listens.
func systemdNotify(log *slog.Logger) func(string) {
	return func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Warn("The service manager was not told", "state", state, "err", err)
		}
	}
}

// reloadingState is what Type=notify-reload wants to be told (systemd 253).
func reloadingState() string { return daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec() }

// watchdog tells systemd, as often as WATCHDOG_USEC asks, that packets are still
// being sent: it does so only if the pacer's thread has come by since the last
// time.
func (a *Agent) watchdog(ctx context.Context) {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		a.log.Warn("The service manager's watchdog is not served", "err", err)
	}
	if err == nil && within > 0 {
		guard(ctx, a.pacer, within/2, a.notify)
	}
}

// guard notifies each interval in which the pacer fired.
func guard(ctx context.Context, pacer *sched.Pacer, interval time.Duration, notify func(string)) {
	var fired atomic.Bool
	remove := pacer.Add(sched.TaskFunc(func(due, now time.Duration) time.Duration {
		fired.Store(true)
		return max(due, now) + interval/2
	}), sched.Now())
	defer remove()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if fired.Swap(false) {
				notify(daemon.SdNotifyWatchdog)
			}
		}
	}
}

// descriptorInterval is how often a file is opened to see whether any can be.
const descriptorInterval = 2 * time.Second

// watchDescriptors logs when there is no file descriptor left, in the process or the system, and
// when there is one again. It is said here, once, for all paths and connections that lack one.
func watchDescriptors(ctx context.Context, log *slog.Logger, open func() error) {
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
}

// openNull opens and closes a file that is always there.
func openNull() error {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	return f.Close()
}
