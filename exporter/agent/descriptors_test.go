package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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
		ended := watchDescriptors(ctx, slog.New(slog.NewTextHandler(&said, nil)), func() error {
			if none.Load() {
				return fmt.Errorf("open: %w", syscall.EMFILE)
			}
			return errors.New("permission denied") // says nothing of descriptors
		})
		// The bubble's time: the agent looks on, and no real time passes.
		time.Sleep(time.Minute)
		for range 3 {
			none.Store(true)
			time.Sleep(time.Minute)
			none.Store(false)
			time.Sleep(time.Minute)
		}
		cancel()
		<-ended
		if out, again := strings.Count(said.String(), "No file descriptor is left"), strings.Count(said.String(), "descriptors again"); out != 3 || again != 3 || strings.Count(said.String(), "\n") != 6 {
			t.Errorf("after three times without descriptors it said\n%s", &said)
		}
	})
}
