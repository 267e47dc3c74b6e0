package historyreport

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/serve/promapi"
)

// hourOfPackets are the packets of a direction in an hour.
type hourOfPackets struct{ lost, received, undecided float64 }

// outages has two hours: in the second one no reply came, and whether the requests arrived is not known.
func outages() map[string][2]hourOfPackets {
	return map[string][2]hourOfPackets{
		forwardWay: {{lost: 10, received: 2885, undecided: 705}, {undecided: 3600}},
		reverseWay: {{lost: 80, received: 2800, undecided: 5}, {}},
	}
}

// selects reports whether a query, or a statement, selects the direction.
func selects(text, direction string) bool {
	other := forwardWay
	if direction == forwardWay {
		other = reverseWay
	}
	return !strings.Contains(text, other)
}

// recordedOutages is a Prometheus with the outages.
func recordedOutages(t *testing.T) Source {
	t.Helper()
	values := map[string]func(hourOfPackets) float64{
		rules.LongIncrease(metric.PacketsLost):      func(h hourOfPackets) float64 { return h.lost },
		rules.LongIncrease(metric.PacketsUndecided): func(h hourOfPackets) float64 { return h.undecided },
		rules.LongOutcomes.Name:                     func(h hourOfPackets) float64 { return h.lost + h.received + h.undecided },
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := r.FormValue("query")
		name, _, _ := strings.Cut(text, "{")
		if values[name] == nil {
			fmt.Fprint(w, `{"status":"success","data":[]}`)
			return
		}
		var all []string
		for direction, hours := range outages() {
			if selects(text, direction) {
				all = append(all, fmt.Sprintf(`{"metric":{"path":"p","instance":"i","direction":%q},"values":[[%d,"%g"],[%d,"%g"]]}`, direction,
					monday.Unix()+3660, values[name](hours[0]), monday.Unix()+7260, values[name](hours[1])))
			}
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, strings.Join(all, ","))
	}))
	t.Cleanup(s.Close)
	return Prometheus{&promapi.Server{URL: s.URL}}
}

// writtenOutages is an InfluxDB with the outages, in rows of hours or in points.
func writtenOutages(t *testing.T, rows bool) Source {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := r.FormValue("q")
		if strings.Contains(text, "oneway_hour") != rows {
			fmt.Fprint(w, `{"results":[{}]}`)
			return
		}
		var all []string
		for direction, hours := range outages() {
			var values []string
			for i, h := range hours {
				sent := h.lost + h.received + h.undecided
				columns := []string{fmt.Sprint(h.lost), fmt.Sprint(sent), fmt.Sprint(h.received), fmt.Sprint(h.undecided)}
				if rows {
					columns = slices.Repeat([]string{"null"}, len(rowFields()))
					columns[rowSent], columns[rowLost], columns[rowReceived], columns[rowUndecided] = fmt.Sprint(sent), fmt.Sprint(h.lost), fmt.Sprint(h.received), fmt.Sprint(h.undecided)
				}
				values = append(values, fmt.Sprintf("[%d,%s]", monday.Unix()+int64(i)*3600, strings.Join(columns, ",")))
			}
			if selects(text, direction) {
				all = append(all, fmt.Sprintf(`{"name":"x","tags":{"path":"p","direction":%q},"values":[%s]}`, direction, strings.Join(values, ",")))
			}
		}
		fmt.Fprintf(w, `{"results":[{"series":[%s]}]}`, strings.Join(all, ","))
	}))
	t.Cleanup(s.Close)
	return InfluxDB{URL: s.URL, Database: "d"}
}

// A packet whose outcome forward is not known may have reached the reflector, and its reply be lost, so that the loss of its hour in reverse is not known either.
func TestPacketsUndecidedForwardMayBeLostInReverse(t *testing.T) {
	for name, source := range map[string]Source{"Prometheus": recordedOutages(t), "rows": writtenOutages(t, true), "points": writtenOutages(t, false)} {
		for _, direction := range []string{"", reverseWay, forwardWay} {
			q := query(t, "loss")
			q.To = monday.Add(24 * time.Hour)
			want := map[string][2][3]float64{
				forwardWay: {{10, 3600, 705}, {0, 3600, 3600}},
				reverseWay: {{80, 2885 + 705, 5 + 705}, {0, 3600, 3600}},
			}
			if direction != "" {
				q.Labels = map[string]string{metric.Direction: direction}
				for d := range want {
					if d != direction {
						delete(want, d)
					}
				}
			}
			all, err := source.Read(t.Context(), q)
			if err != nil || len(all) != len(want) {
				t.Fatalf("%s, %q: %d histories, %v", name, direction, len(all), err)
			}
			for _, s := range all {
				d := s.Labels[metric.Direction]
				if len(s.Counted) != 2 {
					t.Errorf("%s, %s: %d hours", name, d, len(s.Counted))
				}
				for i, c := range s.Counted {
					if got := [3]float64{c.Events, c.Whole, c.Undecided}; got != want[d][i] {
						t.Errorf("%s, %s, hour %d: lost, of, undecided are %v, want %v", name, d, i, got, want[d][i])
					}
				}
			}
		}
	}
}
