package pages

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"oneway.example/tests/await"
	"oneway.example/tests/browser"
)

// TestPagesAreReadableAtAnyWidth looks at all pages of agents with thirty paths, one, none and a thousand.
func TestPagesAreReadableAtAnyWidth(t *testing.T) {
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		t.Fatal(err)
	}
	b := browser.New(t, limit)
	s, ids := thirty(t)
	one, none, many := newSite(t), newSite(t), newSite(t)
	none.serve(t, "")
	one.serve(t, fmt.Sprintf("paths:\n  - {name: calgary-to-seoul, peer: %q, probes: [{type: stamp}]}\n", one.reflector))
	var thousand strings.Builder
	for i := range 1000 {
		peer := many.reflector
		if i == 700 {
			peer = many.silent
		}
		fmt.Fprintf(&thousand, "  - {name: site-%d, peer: %q, probes: [{type: stamp, profile: slim, loss_timeout: 500ms}]}\n", i, peer)
	}
	many.serve(t, "paths:\n"+thousand.String())
	visit(t, b, "none", none.url, "390-light", "1280-light")
	// The address that does not resolve has no state as long as this host's resolver waits.
	await.That(t, "the states of the paths are decided", func() bool {
		page := get(t, s.url+"/")
		return strings.Count(page, `class="row down"`) >= 3 && strings.Contains(page, `class="row impaired"`) && strings.Count(page, "waiting for the first reply") == 0
	})
	page := get(t, s.url+"/")
	for _, quantity := range []string{"throughput", "highest rate", "capacity", "TCP throughput", "best throughput, bbr", "completion of 10 kB", "UDP"} {
		if n := strings.Count(page, "<dt>"+quantity+"</dt>"); n != 2 {
			t.Errorf("%d values of %s, want one in each direction", n, quantity)
		}
	}
	visit(t, b, "thirty", s.url)
	visit(t, b, "runs", s.url+"/runs", "390-dark", "1280-light", "1920-dark")
	visit(t, b, "runs-filtered", s.url+"/runs?kind=message&page=2", "390-light", "1280-dark")
	for _, kind := range slices.Sorted(maps.Keys(ids)) {
		visit(t, b, "run-"+kind, s.url+"/runs/"+ids[kind]+"/view", "390-light", "1280-dark")
	}
	visit(t, b, "runbook", s.url+"/runbooks/OnewayProbeFailing", "390-dark", "1280-light")
	visit(t, b, "one", one.url, "1280-light")
	visit(t, b, "many", many.url, "1280-light")
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
