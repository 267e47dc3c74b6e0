package clocktest

import (
	"context"
	"testing"
)

// Start runs a monitor until stop is called, which wants it to end without an error
// and, if sink is not nil, to have closed all its series.
func Start(t testing.TB, run func(context.Context) error, sink *Sink) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		if sink != nil && sink.Open() != 0 {
			t.Errorf("%d series are left: %v", sink.Open(), sink.Present(""))
		}
	}
}
