package rules

import (
	"os"
	"strings"
	"testing"

	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
	"oneway.example/tests/promserver"
)

const onDemandFile = deploy + "/on-demand.yml"

func TestConfigurationOfOnDemandProbesLoads(t *testing.T) {
	eachPromtool(t, func(t *testing.T, promtool string) { run(t, promtool, "check", "config", onDemandFile) })
}

// eachPromtool runs a check with promtool of each version that a file is for.
func eachPromtool(t *testing.T, check func(t *testing.T, promtool string)) {
	t.Helper()
	t.Run("2.42", func(t *testing.T) { check(t, need(t, "promtool", "prometheus")) })
	t.Run("3.0", func(t *testing.T) { check(t, built(t, "promtool", before38)) })
	t.Run("3.8", func(t *testing.T) { check(t, built(t, "promtool", from38)) })
}

// onDemandAgent measures its own two reflectors, and what is asked of it.
const onDemandAgent = `clock: {source: static, bound: 20us}
reflector: {listen: ["REFLECTOR", "[::1]:PORT"]}
paths:
  - {name: self-ipv4, peer: "REFLECTOR", probes: [{type: stamp}]}
  - {name: self-ipv6, peer: "[::1]:PORT", probes: [{type: stamp}]}
  - {name: second-ipv6, peer: "[::1]:9", probes: [{type: stamp}]}
on_demand:
  targets: [127.0.0.0/8, "::1"]
  ports: [PORT, 9]
  target_pause: 0s
  max_concurrent: 8
  modules:
    - {name: reachable, type: stamp, count: 5, interval: 20ms, loss_timeout: 300ms}
    - {name: voice, type: stamp, count: 25, interval: 20ms, dscp: 46, loss_timeout: 100ms}
`

// TestOnDemandProbesReachPrometheus runs the servers on the file, with targets of this host.
func TestOnDemandProbesReachPrometheus(t *testing.T) {
	for name, find := range map[string]func(*testing.T) string{
		"2.42": func(t *testing.T) string { t.Helper(); return need(t, "prometheus", "prometheus") },
		"3.8":  func(t *testing.T) string { t.Helper(); return built(t, "prometheus", from38) },
	} {
		t.Run(name, func(t *testing.T) {
			program := find(t)
			reflector := freeport.Address(t)
			port := strings.TrimPrefix(reflector, "127.0.0.1:")
			agent := startAgentOf(t, strings.NewReplacer("REFLECTOR", reflector, "PORT", port).Replace(onDemandAgent))
			text, err := os.ReadFile(onDemandFile)
			if err != nil {
				t.Fatal(err)
			}
			filled := strings.NewReplacer(
				`"reflector.example.net", "192.0.2.7:862", "[2001:db8::7]:862"`, `"`+reflector+`", "127.0.0.1:9", "192.0.2.7:`+port+`", "[::1]:`+port+`"`,
				"a.example:9862", agent, ":9862", agent[strings.LastIndex(agent, ":"):],
				"scrape_interval: 30s", "scrape_interval: 4s", "scrape_timeout: 10s", "scrape_timeout: 4s", "scrape_interval: 10s", "scrape_interval: 1s",
				"refresh_interval: 1m", "refresh_interval: 1s",
			).Replace(string(text))
			server := promserver.Start(t, promserver.Options{Program: program, Config: filled})
			for _, want := range []string{
				`probe_success{job="reachability",instance="` + reflector + `"} == 1`,
				`probe_success{job="reachability",instance="[::1]:` + port + `"} == 1`,
				`oneway_loss_ratio{job="reachability",path="` + reflector + `",probe="reachable",direction="reverse"} == 0`,
				`probe_success{job="reachability",instance="127.0.0.1:9"} == 0 and probe_loss_ratio == 1 and on (instance, job) up == 1`,
				`probe_failure_info{job="reachability",instance="127.0.0.1:9",reason="unreachable"}`,
				`up{job="reachability",instance="192.0.2.7:` + port + `"} == 0`, // refused
				`probe_success{job="voice-of-peers",instance="self-ipv4"} == 1`,
				`probe_success{job="voice-of-peers",instance="self-ipv6"} == 1`,
				`oneway_voice_r_factor{job="voice-of-peers",instance="self-ipv6",codec="G.711-PLC"} > 90`,
				`count(up{job="oneway-peers"} == 1) == 2 and count(oneway_path_info{job="oneway-peers",path="second-ipv6"}) == 2`, // one target of each address
				`oneway_on_demand_requests_total{job="oneway-peers",result="success"} > 0`,
			} {
				await.That(t, want, func() bool { return len(query(t, server.URL, want)) > 0 })
			}
			if dropped := query(t, server.URL, `{__name__=~"oneway_.*_total",job!="oneway-peers"}`); len(dropped) > 0 {
				t.Errorf("counters of single measurements are kept: %v", dropped)
			}
		})
	}
}
