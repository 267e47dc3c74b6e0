// Package browser opens pages in a headless Chromium.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Tab is a tab of a Chromium, and the context of chromedp's functions.
type Tab struct {
	context.Context
	mu     sync.Mutex
	faults []string
}

// New starts a Chromium, which ends with the test, and after limit. The test skips where Chromium is not installed.
func New(t *testing.T, limit time.Duration) *Tab {
	t.Helper()
	file, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("NOT TESTED: chromium is not installed (Debian package chromium)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(file), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(time.Minute))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end) // waits for the end of the process
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &Tab{Context: ctx}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.faults = append(b.faults, fmt.Sprintf("%s: %s %s", m.Type, m.Text, m.URL))
			b.mu.Unlock()
		}
	}()
	return b
}

// Faults returns the messages of the browser's console and log since the last call.
func (b *Tab) Faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	faults := b.faults
	b.faults = nil
	return faults
}

// Do is one action, whose error ends the test.
func Do[T any](t *testing.T, b *Tab, a chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(b, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
