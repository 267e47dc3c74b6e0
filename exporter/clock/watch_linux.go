package clock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// systemSlew: Linux slews REALTIME and MONOTONIC together, see StepDetector.
const systemSlew = -1

// watchSystem calls cancelled at each discontinuous change of CLOCK_REALTIME.
//
// The timer is absolute and set for a moment that never comes; what it is for
// is to be cancelled (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET). The read that
// returns ECANCELED arms the notice again. It waits in the runtime's poller, so
// that no thread is held.
func watchSystem(ctx context.Context, cancelled func()) error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("clock: timerfd_create: %w", err)
	}
	timer := os.NewFile(uintptr(fd), "timerfd")
	defer timer.Close() // a second Close after the one below is harmless
	never := unix.ItimerSpec{Value: unix.NsecToTimespec(math.MaxInt64)}
	if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &never, nil); err != nil {
		return fmt.Errorf("clock: timerfd_settime: %w", err)
	}
	defer context.AfterFunc(ctx, func() { timer.Close() })()
	var expirations [8]byte
	for {
		switch _, err := timer.Read(expirations[:]); {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.ECANCELED):
			cancelled()
		case err != nil:
			return fmt.Errorf("clock: timerfd: %w", err)
		}
		// Without an error the clock has reached the year 2262; that, too, is read once.
	}
}
