package grafana

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"oneway.example/tests/browser"
)

// page is a page as Grafana makes it: the test ids are from @grafana/e2e-selectors.
func page(replace ...string) string {
	text := `<div data-testid="data-testid template variable"><label>Path</label><span>a-b</span></div>
<div data-testid="data-testid template variable"><label>Trains</label><span></span></div>
<a data-testid="data-testid Dashboard link" href="/d/other?from=now-1h&to=now&var-path=a-b">Other</a>
<section data-testid="data-testid Panel header Delay forward">12 ms</section>
<section data-testid="data-testid Panel header Loss"><div data-testid="data-testid Panel data error message">Nothing yet</div></section>`
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			panic(replace[i])
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return text
}

// example is the dashboard of page.
func example() board {
	b := board{UID: "one", Links: []link{{Title: "Other", Type: "link"}}}
	b.Templating.List = []variable{{Name: "path", Label: "Path"}, {Name: "train", Label: "Trains"}, {Name: "url", Hide: 2}}
	b.Panels = []panel{{Type: "row", Title: "Summary"}, {Type: "stat", Title: "Delay $direction"}, {Type: "table", Title: "Loss"}}
	b.Panels[2].FieldConfig.Defaults.NoValue = "Nothing yet"
	return b
}

func TestFaultsOfAPageAreFound(t *testing.T) {
	b := browser.New(t, time.Minute)
	broken := `<span data-testid="data-testid Panel status error" aria-label="bad query">!</span>`
	tests := map[string]struct{ body, want string }{
		"none":                        {page(), ""},
		"error of a query":            {page("12 ms", broken), `panel "Delay forward": error: bad query`},
		"exception in a panel":        {page("12 ms", `<div data-testid="data-testid Alert error">TypeError</div>`), `panel "Delay forward": exception: TypeError`},
		"exception outside of panels": {page() + `<div data-testid="data-testid Alert error">Dashboard not found</div>`, `panel "": Dashboard not found`},
		"absent panel":                {page("Panel header Loss", "Panel header Gain"), `panel "Loss" is not shown; panel "Gain" has "Nothing yet", which is not its text for no data`},
		"a field that does not exist": {page("Nothing yet", "Unable to find field"), `panel "Loss" has "Unable to find field", which is not its text for no data`},
		"the same in a trend":         {page("12 ms", `<div class="panel-empty">Unable to find field</div>`), `panel "Delay forward" has "Unable to find field", which is not its text for no data`},
		"variable without a value":    {page("a-b</span>", "</span>"), `variable "Path" has no value`},
		"absent variable":             {page("<label>Trains", "<label>Strains"), `variable "Trains" is not shown`},
		"hidden link":                 {page(">Other<", "><"), `link "Other" is not shown`},
		"link to nowhere":             {page("/d/other", "/d/no"), `link "Other" to /d/no?from=now-1h&to=now&var-path=a-b leads to a dashboard that does not exist`},
		"link without the time":       {page("from=now-1h&", ""), `link "Other" to /d/other?to=now&var-path=a-b loses the time range`},
		"link without the path":       {page("var-path=a-b", "var-path="), `link "Other" to /d/other?from=now-1h&to=now&var-path= loses the path`},
		"link without an address":     {page("12 ms", `<a href="/">Runbooks</a>`), `link "Runbooks" to / leads to the start page`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				fmt.Fprintf(w, "<!doctype html><title>%s</title>%s", html.EscapeString(name), test.body)
			}))
			defer server.Close()
			browser.Do(t, b, chromedp.Navigate(server.URL))
			s := site{strings.TrimPrefix(server.URL, "http://"), []string{"one", "other"}}
			got := strings.Join(s.faults(example(), browser.Do(t, b, chromedp.Evaluate[facts](script))), "; ")
			if got = strings.ReplaceAll(got, server.URL, ""); got != test.want {
				t.Errorf("faults: %s; want %s", got, test.want)
			}
		})
	}
}

func TestTextsOfThePageAreFoundWithValuesOfVariables(t *testing.T) {
	tests := []struct {
		text, template string
		want           bool
	}{
		{"Delay forward", "Delay forward", true},
		{"Delay, forward", "Delay, $direction", true},
		{"R, G.711-PLC", "R, ${codec}", true},
		{"Delay (p95)", "Delay (p95)", true},
		{"Delay x", "Delay", false},
		{"Delay Xp95)", "Delay (p95)", false},
	}
	for _, test := range tests {
		if got := shown(test.text, test.template); got != test.want {
			t.Errorf("shown(%q, %q) = %t", test.text, test.template, got)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(mayBeEmpty)))) != len(mayBeEmpty) {
		t.Error("a label is in mayBeEmpty twice")
	}
}
