package stack

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// webhook is the receiver of all alerts, in this process.
type webhook struct {
	url string

	mu       sync.Mutex
	received []alert
}

// alert is one of a notification.
type alert struct {
	Status string            `json:"status"`
	Labels map[string]string `json:"labels"`
	// at is when it arrived.
	at time.Time
}

// newWebhook listens on an address of this machine that the containers reach, until the test ends.
func newWebhook(t *testing.T, address string) *webhook {
	t.Helper()
	w := &webhook{}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *webhook) serve(reply http.ResponseWriter, r *http.Request) {
	var message struct {
		Alerts []alert `json:"alerts"`
	}
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		http.Error(reply, err.Error(), http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range message.Alerts {
		a.at = time.Now()
		w.received = append(w.received, a)
	}
}

// first is when the first firing alert with these labels arrived after a time; false: none did.
func (w *webhook) first(after time.Time, labels map[string]string) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
next:
	for _, a := range w.received {
		if a.Status != "firing" || a.at.Before(after) {
			continue
		}
		for name, value := range labels {
			if a.Labels[name] != value {
				continue next
			}
		}
		return a.at, true
	}
	return time.Time{}, false
}

// names are the firing alerts since a time, for messages.
func (w *webhook) names(after time.Time) map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]int{}
	for _, a := range w.received {
		if a.Status == "firing" && a.at.After(after) {
			out[a.Labels["alertname"]+" "+a.Labels["store"]]++
		}
	}
	return out
}
