package rules

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
)

// notification is a message of Alertmanager to a webhook.
type notification struct {
	Receiver string
	Alerts   []struct{ Labels map[string]string }
}

// String is the receiver and the alerts with what tells them apart.
func (n notification) String() string {
	var names []string
	for _, a := range n.Alerts {
		names = append(names, strings.TrimSpace(a.Labels["alertname"]+" "+a.Labels["instance"]+" "+a.Labels["path"]))
	}
	slices.Sort(names)
	return n.Receiver + ": " + strings.Join(names, ", ")
}

// Alertmanager runs on the shipped file, with shorter waits and webhooks for all receivers: what each fault tells, and to whom.
func TestEachFaultNotifiesOnceByTheAlertThatNamesIt(t *testing.T) {
	program := need(t, "prometheus-alertmanager", "prometheus-alertmanager")
	var mu sync.Mutex
	received := map[string]bool{}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n notification
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
		mu.Lock()
		defer mu.Unlock()
		received[n.String()] = true
	}))
	t.Cleanup(hook.Close)
	dir, address := t.TempDir(), freeport.Address(t)
	config := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(config, withWebhooks(t, hook.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, program, "--config.file="+config, "--storage.path="+dir, "--web.listen-address="+address, "--cluster.listen-address=")
	server := "http://" + address
	await.That(t, "Alertmanager is ready", func() bool {
		reply, err := http.Get(server + "/-/ready")
		return err == nil && reply.Body.Close() == nil && reply.StatusCode == http.StatusOK
	})

	known := map[string]map[string]string{}
	for _, a := range alerts(t) {
		known[a.Alert] = a.Labels
	}
	var all []map[string]any
	fire := func(name string, more map[string]string) {
		labels := map[string]string{"alertname": name, "job": "oneway", "probe": "stamp"}
		maps.Copy(labels, known[name])
		maps.Copy(labels, more)
		all = append(all, map[string]any{"labels": labels, "startsAt": time.Now()})
	}
	// A host dies, and with it its agent.
	dead := map[string]string{"instance": "near:9862", "path": "to-dead", "host": "dead"}
	fire("OnewayTargetDown", map[string]string{"instance": "dead:9862", "host": "dead"})
	fire("OnewayProbeFailing", dead)
	fire("OnewayResultStale", map[string]string{"instance": "near:9862", "path": "to-dead"})
	// A link dies: two paths of two agents, whose load tests fail as well.
	for _, at := range []string{"one", "two"} {
		labels := map[string]string{"instance": at + ":9862", "path": "over-link", "host": "beyond-" + at}
		fire("OnewayProbeFailing", labels)
		delete(labels, "host")
		fire("OnewayRoundTripLoss", labels)
		fire("OnewayRunsFailing", labels)
	}
	// A queue overflows.
	queue := map[string]string{"instance": "near:9862", "path": "full", "direction": "forward"}
	for _, name := range []string{"OnewayDelayBlowUp", "OnewayLossHigh", "OnewayRFactorLow", "OnewayDelayFloorStep"} {
		fire(name, queue)
	}
	// A clock is lost.
	fire("OnewayClockUnsynchronized", map[string]string{"instance": "wrong:9862", "clock": "chrony"})
	fire("OnewayDelayBlowUp", map[string]string{"instance": "wrong:9862", "path": "from-wrong", "direction": "reverse"})
	// A change of route.
	fire("OnewayDelayFloorStep", map[string]string{"instance": "near:9862", "path": "detour", "direction": "forward"})
	// A wrong key: the page is of the peer without replies, the reflector's ticket may come first.
	fire("OnewayKeyRejected", map[string]string{"instance": "keys:9862"})
	// A full disk: one ticket of its agent.
	full := map[string]string{"instance": "disk:9862", "output": "influx"}
	for _, name := range []string{"OnewayOutputDropping", "OnewayOutputBehind", "OnewayDataQuotaNotSaved"} {
		fire(name, full)
	}
	// A load server is down.
	load := map[string]string{"instance": "near:9862", "path": "loaded"}
	fire("OnewayRunsFailing", load)
	fire("OnewayRunResultStale", load)

	body, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.Post(server+"/api/v2/alerts", "application/json", bytes.NewReader(body))
	if err != nil || reply.Body.Close() != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("alerts were not accepted: %v %v", reply, err)
	}
	want := []string{
		"info: OnewayDelayFloorStep near:9862 detour",
		"measurement: OnewayClockUnsynchronized wrong:9862",
		"measurement: OnewayDataQuotaNotSaved disk:9862, OnewayOutputDropping disk:9862",
		"measurement: OnewayKeyRejected keys:9862",
		"network: OnewayDelayBlowUp near:9862 full, OnewayLossHigh near:9862 full",
		"network: OnewayRunsFailing near:9862 loaded",
		"page: OnewayProbeFailing one:9862 over-link, OnewayProbeFailing two:9862 over-link",
		"page: OnewayTargetDown dead:9862",
	}
	got := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(maps.Keys(received))
	}
	await.Within(await.Timeout, func() bool { return len(got()) >= len(want) })
	time.Sleep(2 * time.Second) // a notification more than these would come with the groups of this second
	if !slices.Equal(got(), want) {
		t.Errorf("notifications\n%s\nwant\n%s", strings.Join(got(), "\n"), strings.Join(want, "\n"))
	}
}

// withWebhooks is the shipped file with this webhook for each receiver, and waits of a second.
func withWebhooks(t *testing.T, address string) []byte {
	t.Helper()
	text, err := os.ReadFile(deploy + "/alertmanager.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	text = regexp.MustCompile(`group_wait: .*`).ReplaceAll(text, []byte("group_wait: 1s"))
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	receivers, _ := config["receivers"].([]any)
	for i, r := range receivers {
		name := r.(map[string]any)["name"]
		receivers[i] = map[string]any{"name": name, "webhook_configs": []any{map[string]any{"url": address}}}
	}
	out, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
