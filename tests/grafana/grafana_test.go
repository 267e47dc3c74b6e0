package grafana

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"oneway.example/tests/browser"
)

const (
	// period is long enough for the runs of the demo.
	period = "from=now-30m&to=now"
	// timeout ends the wait for a page.
	timeout = 60 * time.Second
	// checked is the time between two checks of a page that loads.
	checked = 500 * time.Millisecond
	// All panels of the longest page are within this window: Grafana loads a panel when it is in sight.
	width, height = 1920, 14_000
)

// address is GRAFANA_URL without a slash at its end.
func address(t *testing.T) string {
	t.Helper()
	text := os.Getenv("GRAFANA_URL")
	if text == "" {
		t.Skip("NOT TESTED: GRAFANA_URL is not set; no Grafana, 11.6 or later, has shown the dashboards")
	}
	return strings.TrimRight(text, "/")
}

// get decodes a reply of Grafana's API.
func get(t *testing.T, from string, v any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, from, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", res.Status, text)
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", from, err)
	}
}

func TestGrafanaHasTheCommittedDashboards(t *testing.T) {
	base := address(t)
	var health struct{ Version string }
	get(t, base+"/api/health", &health)
	t.Logf("Grafana %s", health.Version)
	if !supported(health.Version) {
		t.Errorf("version %q; the dashboards need 11.6 or later", health.Version)
	}
	if !sources(t, base)["oneway-prometheus"] {
		t.Error("no data source has the uid oneway-prometheus")
	}
	for _, want := range committed(t) {
		var reply struct {
			Dashboard board
			Meta      struct{ Provisioned bool }
		}
		get(t, base+"/api/dashboards/uid/"+want.UID, &reply)
		if !reply.Meta.Provisioned {
			t.Errorf("%s is not provisioned", want.UID)
		}
		got := reply.Dashboard
		if len(got.Panels) != len(want.Panels) {
			t.Fatalf("%s has %d panels and rows, want %d", want.UID, len(got.Panels), len(want.Panels))
		}
		for i, p := range want.Panels {
			q := got.Panels[i]
			if q.Title != p.Title || q.Type != p.Type || !equal(t, q.Targets, p.Targets) {
				t.Errorf("%s: panel %d is %s %q %s, want %s %q %s", want.UID, i, q.Type, q.Title, q.Targets, p.Type, p.Title, p.Targets)
			}
		}
		for i, v := range want.Templating.List {
			if i >= len(got.Templating.List) || got.Templating.List[i].Name != v.Name || !equal(t, got.Templating.List[i].Query, v.Query) {
				t.Errorf("%s: variable %q differs", want.UID, v.Name)
			}
		}
	}
}

// sources are the uids of the data sources.
func sources(t *testing.T, base string) map[string]bool {
	t.Helper()
	var settings struct {
		Datasources map[string]struct{ UID string }
	}
	get(t, base+"/api/frontend/settings", &settings)
	uids := map[string]bool{}
	for _, d := range settings.Datasources {
		uids[d.UID] = true
	}
	return uids
}

// supported reports whether a version is 11.6 or later.
func supported(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	minor, failure := strconv.Atoi(parts[1])
	return err == nil && failure == nil && (major > 11 || major == 11 && minor >= 6)
}

// equal compares JSON without its layout.
func equal(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	return plain(t, a) == plain(t, b)
}

func plain(t *testing.T, text json.RawMessage) string {
	t.Helper()
	if len(text) == 0 {
		return ""
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestPagesInGrafanaHaveNoFault(t *testing.T) {
	base := address(t)
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	boards := committed(t)
	s := site{host: u.Host}
	for _, b := range boards {
		s.uids = append(s.uids, b.UID)
	}
	tab := browser.New(t, time.Duration(2*len(boards))*timeout)
	browser.Do(t, tab, chromedp.EmulateViewport(width, height))
	followed := map[string]bool{}
	points := sources(t, base)["oneway-influxdb"]
	for _, b := range boards {
		t.Run(b.UID, func(t *testing.T) {
			if b.raw() && !points {
				t.Skip("NOT TESTED: this Grafana has no data source oneway-influxdb")
			}
			f := load(t, tab, base+"/d/"+b.UID+"?"+period, b)
			t.Logf("%d panels, %d links, variables %v; %d panels without data", len(f.Titles), len(f.Links), f.Variables, len(f.Quiet))
			for _, fault := range s.faults(b, f) {
				t.Error(fault)
			}
			// One link to each page is followed.
			for _, l := range f.Links {
				at, err := url.Parse(l.URL)
				if err != nil || at.Host != s.host || s.linkFault(l.URL, "") != "" {
					continue // a fault that was reported, or a page of another server
				}
				uid := strings.TrimPrefix(at.Path, "/d/")
				i := slices.IndexFunc(boards, func(o board) bool { return o.UID == uid })
				if i < 0 || followed[uid] || uid == b.UID || boards[i].raw() && !points {
					continue
				}
				followed[uid] = true
				arrived(t, at.Query(), boards[i], load(t, tab, l.URL, boards[i]))
			}
		})
	}
	if len(followed) == 0 {
		t.Error("no link was followed")
	}
}

// arrived checks that a page to which a link leads shows the link's values of variables.
func arrived(t *testing.T, q url.Values, b board, f facts) {
	t.Helper()
	for _, v := range b.Templating.List {
		value := q.Get("var-" + v.Name)
		if v.Hide == 2 || v.Type == "datasource" || value == "" || value == "$__all" {
			continue
		}
		for _, shown := range f.Variables {
			if shown.Label == v.Label && shown.Value != value {
				t.Errorf("the link to %s has %s %q, but the page shows %q", b.UID, v.Name, value, shown.Value)
			}
		}
	}
}

// load opens a page and waits until all panels are there and none loads, at three checks in a row: between two queries of a panel there is a
// moment in which it does not load.
func load(t *testing.T, tab *browser.Tab, at string, b board) (f facts) {
	t.Helper()
	want := 0
	for _, p := range b.Panels {
		if p.Type != "row" {
			want++
		}
	}
	browser.Do(t, tab, chromedp.Navigate(at))
	end, calm := time.Now().Add(timeout), 0
	for calm < 3 && time.Now().Before(end) {
		time.Sleep(checked) // between two checks of the page: Grafana has no event for a page whose queries have all returned
		f = browser.Do(t, tab, chromedp.Evaluate[facts](script))
		if len(f.Titles) >= want && f.Loading == 0 {
			calm++
		} else {
			calm = 0
		}
	}
	if calm < 3 {
		t.Errorf("%s has %d of %d panels after %v, and %d still load", at, len(f.Titles), want, timeout, f.Loading)
	}
	return f
}
