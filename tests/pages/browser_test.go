package pages

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"oneway.example/tests/browser"
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

// limit ends the browser of a test.
const limit = 10 * time.Minute

// visit opens a page and checks it at each width in both colors. It keeps screenshots of the looks in shown, such as "390-dark";
// none: of all.
func visit(t *testing.T, b *browser.Tab, name, url string, shown ...string) {
	t.Helper()
	begin := time.Now()
	defer func() { t.Logf("%s: %.1f s", name, time.Since(begin).Seconds()) }()
	browser.Do(t, b, chromedp.Navigate(url))
	for _, width := range widths {
		browser.Do(t, b, chromedp.EmulateViewport(width, 900))
		for i, scheme := range schemes {
			look := fmt.Sprintf("%d-%s", width, scheme)
			feature := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme}
			if _, err := chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{feature}}); err != nil {
				t.Fatal(err)
			}
			for _, fault := range browser.Do(t, b, chromedp.Evaluate[[]string](fmt.Sprintf("%s(%t)", strings.TrimSpace(check), i == 0))) {
				t.Errorf("%s at %s: %s", name, look, fault)
			}
			if len(shown) > 0 && !slices.Contains(shown, look) {
				continue
			}
			if err := os.WriteFile(filepath.Join(pictures, name+"-"+look+".png"), browser.Do(t, b, chromedp.FullScreenshot(100)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, fault := range b.Faults() {
		t.Errorf("%s: %s", name, fault)
	}
}
