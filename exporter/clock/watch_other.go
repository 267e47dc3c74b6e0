//go:build !linux

package clock

import "context"

// systemSlew: elsewhere slewing may move REALTIME alone; see StepDetector.
const systemSlew = 83333e-6

// watchSystem has nothing to listen to here; the comparison does the work.
func watchSystem(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}
