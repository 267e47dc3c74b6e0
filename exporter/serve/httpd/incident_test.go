package httpd

import (
	"net/http"
	"strings"
	"testing"

	"oneway.example/exporter/agent/incident"
	"oneway.example/exporter/core/errtext"
)

const incidentPath = "/-/incident?path=bus-12-to-core&probe=stamp"

func TestPostStoresAnIncident(t *testing.T) {
	s := &fakeSource{status: sample()}
	w := get(t, newHandler(t, s), http.MethodPost, incidentPath)
	if w.Code != http.StatusCreated || w.Header().Get("Location") != "../runs/20260301t120000z-00000005" || !strings.Contains(w.Body.String(), "runs/20260301t120000z-00000005") {
		t.Errorf("%d, %v, %s", w.Code, w.Header(), w.Body)
	}
	if len(s.kept) != 1 || s.kept[0] != "bus-12-to-core stamp" {
		t.Errorf("kept %q", s.kept)
	}
}

func TestIncidentThatIsNotStoredHasAReason(t *testing.T) {
	for err, want := range map[error]int{
		incident.ErrUnknown: http.StatusNotFound, incident.ErrNoPackets: http.StatusConflict, incident.ErrNoDirectory: http.StatusConflict,
		incident.ErrTooMany: http.StatusTooManyRequests, errReload: http.StatusInternalServerError,
	} {
		w := get(t, newHandler(t, &fakeSource{err: err}), http.MethodPost, incidentPath)
		if w.Code != want || !strings.Contains(w.Body.String(), errtext.Words(err)) || (w.Header().Get("Retry-After") != "") != (want == http.StatusTooManyRequests) {
			t.Errorf("%v: %d, %v, %s", err, w.Code, w.Header(), w.Body)
		}
	}
}

// TestIncidentIsProtectedAsAReload: requests of pages of other origins are rejected.
func TestIncidentIsProtectedAsAReload(t *testing.T) {
	for _, c := range []struct {
		method, origin, host string
		want                 int
	}{
		{http.MethodGet, "", "agent.example.net", http.StatusMethodNotAllowed},
		{http.MethodPost, "https://elsewhere.example.org", "agent.example.net", http.StatusForbidden},
		{http.MethodPost, "", "rebound.example.org", http.StatusForbidden},
	} {
		s := &fakeSource{}
		h := newHandler(t, s)
		w := get(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { r.Host = c.host; h.ServeHTTP(w, r) }), c.method, incidentPath, "Origin", c.origin)
		if w.Code != c.want || len(s.kept) != 0 {
			t.Errorf("%s from %q to %s: %d, kept %q", c.method, c.origin, c.host, w.Code, s.kept)
		}
	}
}

func TestPageOffersIncidentsOnlyOfProbesThatStoreThem(t *testing.T) {
	const offer = "To store the packets of a path"
	s := sample()
	if body := get(t, newHandler(t, &fakeSource{status: s}), http.MethodGet, "/").Body.String(); !strings.Contains(body, offer) {
		t.Error("no offer with such probes")
	}
	for i := range s.Paths {
		for j := range s.Paths[i].Probes {
			s.Paths[i].Probes[j].StoresIncidents = false
		}
	}
	if body := get(t, newHandler(t, &fakeSource{status: s}), http.MethodGet, "/").Body.String(); strings.Contains(body, offer) {
		t.Error("an offer without such probes")
	}
}
