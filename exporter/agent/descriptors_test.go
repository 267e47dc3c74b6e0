package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestDescriptorsThatRunOutAreOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		var none atomic.Bool
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() {
			watchDescriptors(ctx, slog.New(slog.NewTextHandler(&said, nil)), func() error {
				if none.Load() {
					return fmt.Errorf("open: %w", syscall.EMFILE)
				}
				return errors.New("permission denied") // no sign of exhausted descriptors
			})
		})
		// Time of the synctest bubble, which advances when all goroutines wait for it.
		const aWhile = time.Minute // several checks
		// simulated time (synctest)
		time.Sleep(aWhile)
		for range 3 {
			none.Store(true)
			time.Sleep(aWhile) // simulated time (synctest)
			none.Store(false)
			time.Sleep(aWhile) // simulated time (synctest)
		}
		cancel()
		watching.Wait()
		if out, again := strings.Count(said.String(), "No file descriptor is left"), strings.Count(said.String(), "descriptors again"); out != 3 || again != 3 || strings.Count(said.String(), "\n") != 6 {
			t.Errorf("log after descriptors ran out three times:\n%s", &said)
		}
	})
}
