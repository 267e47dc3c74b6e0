package agent

import (
	"context"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/net/sched"
)

// SystemdNotify sends states, such as READY=1, to systemd's NOTIFY_SOCKET.
func SystemdNotify(log *slog.Logger) func(string) {
	return func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Warn("The service manager was not notified", "state", state, "err", err)
		}
	}
}

// reloadingState is the notification that Type=notify-reload requires (systemd 253).
func reloadingState() string { return daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec() }

// watchdog notifies systemd at half of WATCHDOG_USEC that packets are being sent: only if the pacer's thread has fired since
// the last notification.
func (a *Agent) watchdog(ctx context.Context) {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		a.log.Warn("The service manager's watchdog is not notified", "err", err)
	}
	if err == nil && within > 0 {
		guard(ctx, a.pacer, within/2, a.notify)
	}
}

// guard notifies after each interval in which the pacer fired.
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

// descriptorInterval is the interval at which a file is opened as a test.
const descriptorInterval = 2 * time.Second

// watchDescriptors logs when the process or the system has no file descriptor left, and when there is one again: once for
// all paths and connections that lack one.
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
		out = errtext.NoDescriptors(err)
		switch {
		case out && !before:
			log.Error("No file descriptor is left: no file, name or connection can be opened; a service's limit is LimitNOFILE", "err", err)
		case !out && before:
			log.Info("There are file descriptors again")
		}
	}
}

// openNull opens and closes a file that always exists.
func openNull() error {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	return f.Close()
}
