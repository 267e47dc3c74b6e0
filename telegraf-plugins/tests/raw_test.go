package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
)

// loadServer starts an agent with a load server, and returns its port, the pin of its key and a file with a token for it.
func loadServer(t *testing.T) (port int, pin, token string) {
	t.Helper()
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	token = filepath.Join(dir, "token")
	if out, err := exec.Command(onewayBinary, "token", "new", "--file="+tokens, "--name=me", "--out="+token).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	port = int(freeport.Port(t))
	p, _ := agent(t, fmt.Sprintf("clock: {source: static, bound: 1ms}\nstate_dir: %q\nload_server: {listen: [\"127.0.0.1:%d\"], tokens_file: %q}\n", dir, port, tokens))
	found := regexp.MustCompile(`pin=(sha256:[0-9a-f]+)`)
	await.That(t, "the pin", func() bool { return found.MatchString(p.log.String()) }, &p.log)
	return port, found.FindStringSubmatch(p.log.String())[1], token
}

// trainConf has a load test that runs every 10 s.
func trainConf(dir string, port int, pin, token string) string {
	return fmt.Sprintf(`
clock: {source: static, bound: 1ms}
state_dir: %q
paths:
  - name: link
    peer: 127.0.0.1
    labels: {region: europe}
    probes:
      - {type: train, load_server: "127.0.0.1:%d", every: 10s, token_file: %q, pin: %q, trains: 3, train_packets: 10, long_train_packets: 0, path_mtu: false,
         payload_bytes: [1000], train_interval: 50ms, group_pause: 0s, timeout: 20s}
`, dir, port, token, pin)
}

// TestPacketsOfARunArriveWithTheirTimes compares the points of a load test with the report of the same run.
func TestPacketsOfARunArriveWithTheirTimes(t *testing.T) {
	t.Parallel()
	port, pin, token := loadServer(t)
	state := t.TempDir()
	w := telegrafWith(t, pluginBinary, fmt.Sprintf("[[inputs.oneway]]\nconfig_file = %q\ninterval = \"1s\"\n", write(t, "oneway.yml", trainConf(state, port, pin, token))))
	comparePackets(t, w, state)
}

// TestOutputOfAnAgentArrivesAtTelegrafsListener is the way of raw samples from an attached agent.
func TestOutputOfAnAgentArrivesAtTelegrafsListener(t *testing.T) {
	t.Parallel()
	port, pin, token := loadServer(t)
	state, listener := t.TempDir(), int(freeport.Port(t))
	w := telegrafWith(t, clockBinary, clockConf, fmt.Sprintf("[[inputs.influxdb_v2_listener]]\nservice_address = \"127.0.0.1:%d\"\n", listener))
	agent(t, trainConf(state, port, pin, token)+fmt.Sprintf("outputs:\n  - {type: influxdb, url: \"http://127.0.0.1:%d\", version: 2, org: any, bucket: any, tags: {host: \"\"}, interval: 1s}\n", listener))
	comparePackets(t, w, state)
}

// comparePackets waits for the points of a run and compares them with its report in the state directory of the agent.
func comparePackets(t *testing.T, w *withPlugin, state string) {
	t.Helper()
	var files []string
	await.That(t, "the report of a run", func() bool {
		files, _ = filepath.Glob(filepath.Join(state, "reports", "*.json.gz"))
		return len(files) > 0
	}, &w.log)
	run := strings.TrimSuffix(filepath.Base(files[0]), ".json.gz")
	out, err := exec.Command("zcat", files[0]).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.UseNumber()
	var report any
	if err := decoder.Decode(&report); err != nil {
		t.Fatal(err)
	}
	sentPackets(report, "", want)
	if len(want) < 50 {
		t.Fatalf("%d packets in the report of run %s", len(want), run)
	}
	var packets map[string]bool
	await.That(t, "all packets of the run", func() bool {
		packets = map[string]bool{}
		for _, m := range named(w.metrics(t), "oneway_run_packet", "path", "link", "probe", "train", "region", "europe", "host", "collector") {
			if f := m.Fields(); f["run"] == run {
				packets[fmt.Sprintf("%s %v %v bytes at %d", m.Tags()["direction"], f["seq"], f["ip_bytes"], m.Time().UnixNano())] = true
			}
		}
		return len(packets) >= len(want)
	}, &w.log)
	for p := range want {
		if !packets[p] {
			t.Errorf("packet %s of the report is not in Telegraf", p)
		}
	}
	t.Logf("%d packets of run %s, %d in its report", len(packets), run, len(want))
}

// sentPackets adds the sent packets of all transfers below a value of a report.
func sentPackets(value any, direction string, to map[string]bool) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			sentPackets(one, direction, to)
		}
	case map[string]any:
		if d, ok := v["direction"].(string); ok {
			direction = d
		}
		rows, _ := v["rows"].([]any)
		begin, _ := v["begin_ns"].(json.Number)
		from, _ := begin.Int64()
		for _, one := range rows {
			row := one.([]any) // seq, segment, ip_bytes, sent_ns
			if sent, ok := row[3].(json.Number); ok {
				after, _ := sent.Int64()
				to[fmt.Sprintf("%s %v %v bytes at %d", direction, row[0], row[2], from+after)] = true
			}
		}
		for key, one := range v {
			if key != "rows" {
				sentPackets(one, direction, to)
			}
		}
	}
}
