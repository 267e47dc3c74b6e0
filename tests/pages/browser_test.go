package pages

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

//go:embed check.js
var check string

// pictures is the directory of the screenshots.
const pictures = "../../build/pages"

// widths are those of a phone, a notebook and a large screen, schemes the colors that a person prefers.
var (
	widths  = []int64{390, 1280, 1920}
	schemes = []string{"light", "dark"}
)

// browser is a tab of a Chromium.
type browser struct {
	context.Context
	mu sync.Mutex
	// faults are messages of the browser's console and log.
	faults []string
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	file, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("NOT TESTED: chromium is not installed (Debian package chromium)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(file), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(time.Minute))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end) // waits for the end of the process
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{Context: ctx}
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

// do is one action.
func do[T any](t *testing.T, b *browser, a chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(b, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// visit opens a page and checks it at each width in both colors. It keeps screenshots of the looks in shown, such as "390-dark";
// none: of all.
func (b *browser) visit(t *testing.T, name, url string, shown ...string) {
	t.Helper()
	begin := time.Now()
	defer func() { t.Logf("%s: %.1f s", name, time.Since(begin).Seconds()) }()
	do(t, b, chromedp.Navigate(url))
	for _, width := range widths {
		do(t, b, chromedp.EmulateViewport(width, 900))
		for i, scheme := range schemes {
			look := fmt.Sprintf("%d-%s", width, scheme)
			feature := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme}
			if _, err := chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{feature}}); err != nil {
				t.Fatal(err)
			}
			for _, fault := range do(t, b, chromedp.Evaluate[[]string](fmt.Sprintf("%s(%t)", strings.TrimSpace(check), i == 0))) {
				t.Errorf("%s at %s: %s", name, look, fault)
			}
			if len(shown) > 0 && !slices.Contains(shown, look) {
				continue
			}
			if err := os.WriteFile(filepath.Join(pictures, name+"-"+look+".png"), do(t, b, chromedp.FullScreenshot(100)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		t.Errorf("%s: %s", name, fault)
	}
	b.faults = nil
}
