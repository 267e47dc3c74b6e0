package httpd

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"oneway.example/exporter/serve/runbook"
)

func TestRunbooksAreServedToPeopleAndPrograms(t *testing.T) {
	h := newHandler(t, &fakeSource{status: sample()})
	browser := []string{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}
	for _, c := range []struct {
		path, contentType string
		header, contains  []string
	}{
		{"/runbooks/OnewayProbeFailing", "text/html; charset=utf-8", browser, []string{"<h1>OnewayProbeFailing</h1>", `<link rel="stylesheet" href="../style.css">`, "<pre><code>", `<a href="../runbooks/">`}},
		{"/runbooks/OnewayProbeFailing", "text/markdown; charset=utf-8", []string{"Accept", "*/*"}, []string{runbook.Text("OnewayProbeFailing")}},
		{"/runbooks/OnewayProbeFailing", "text/markdown; charset=utf-8", []string{"Accept", "text/markdown, text/html;q=0.5"}, nil},
		{"/runbooks/OnewayProbeFailing", "text/markdown; charset=utf-8", []string{"Accept", "text/html;q=0"}, nil},
		{"/runbooks/", "text/html; charset=utf-8", browser, []string{`<a href="OnewayProbeFailing">`, `<a href="OnewayTargetDown">`}},
		{"/runbooks/", "text/markdown; charset=utf-8", nil, []string{"runbooks/OnewayProbeFailing\n"}},
	} {
		w := get(t, h, http.MethodGet, c.path, c.header...)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != c.contentType || w.Header().Get("Vary") != "Accept" {
			t.Errorf("%s: status %d, headers %v", c.path, w.Code, w.Header())
		}
		for _, want := range c.contains {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s %v: %q is missing in\n%s", c.path, c.header, want, w.Body)
			}
		}
	}
	if w := get(t, h, http.MethodGet, "/runbooks"); w.Code != http.StatusMovedPermanently && w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != "/runbooks/" {
		t.Errorf("/runbooks: status %d to %s, want the list", w.Code, w.Header().Get("Location"))
	}
	for _, path := range []string{"/runbooks/OnewayUnknown", "/runbooks/%2e%2e%2frunbook"} {
		if w := get(t, h, http.MethodGet, path); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "/runbooks/") {
			t.Errorf("%s: status %d %s, want 404 that names the list", path, w.Code, w.Body)
		}
	}
}

// Each word in capital letters that a command has in place of a name of the site is explained, on its page or below all pages.
func TestPlaceholdersOfRunbooksAreExplained(t *testing.T) {
	command, word := regexp.MustCompile(`(?m)^    .*$`), regexp.MustCompile(`(?://|=?"|=')([A-Z][A-Z-]{3,})\b`)
	seen := 0
	for _, name := range runbook.Names() {
		text := runbook.Text(name)
		for _, line := range command.FindAllString(text, -1) {
			for _, m := range word.FindAllStringSubmatch(line, -1) {
				if seen++; !strings.Contains(placeholders, m[1]+" ") && !strings.Contains(text, m[1]+" is ") {
					t.Errorf("%s: %s is not explained", name, m[1])
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d placeholders", seen)
	}
}
