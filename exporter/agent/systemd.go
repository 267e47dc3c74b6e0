package agent

import (
	"context"
	"log/slog"
	"sync/atomic"
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
// time. The channel is closed when it has ended.
func (a *Agent) watchdog(ctx context.Context, pacer *sched.Pacer) <-chan struct{} {
	ended := make(chan struct{})
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		a.log.Warn("The service manager's watchdog is not served", "err", err)
	}
	if err != nil || within <= 0 {
		close(ended)
		return ended
	}
	go func() {
		defer close(ended)
		guard(ctx, pacer, within/2, a.notify)
	}()
	return ended
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
