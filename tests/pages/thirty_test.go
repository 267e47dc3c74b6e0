package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/await"
)

// long is a name of 100 characters.
var long = strings.Repeat("vancouver-island.", 5) + "uplink-_core-08"

// thirty starts an agent with thirty paths of every kind and state, and returns the IDs of a run of each kind.
func thirty(t *testing.T) (s *site, ids map[string]string) {
	t.Helper()
	s, ids = newSite(t), map[string]string{}
	var paths strings.Builder
	add := func(name, peer string, probes ...string) {
		fmt.Fprintf(&paths, "  - {name: %q, peer: %q, probes: [%s]}\n", name, peer, strings.Join(probes, ", "))
	}
	const stamp = "{type: stamp, interval: 100ms, loss_timeout: 300ms, window: 1s}"
	for _, name := range []string{
		"calgary-to-seoul", "branch-a", "branch-b", "data-center-east:rack-17", "office.example.net/uplink", "bus-12-to-core", "harbor-radio",
		"mast-3", "mast-4", "mast-5", "depot", "lab-to-lab", "warehouse-17", long,
	} {
		add(name, s.reflector, stamp)
	}
	add("voice-gateway", s.reflector, stamp, "{type: stamp, name: voice-50pps, interval: 20ms, dscp: 46, codecs: [G.729]}")
	add("slim-site", s.reflector, "{type: stamp, profile: slim, interval: 100ms}")
	add("impossible-minimum", s.reflector, "{type: stamp, interval: 100ms, window: 1s, path_minimum: 400ms}")
	add("office-to-router", s.silent, stamp)
	add("wrong-key", s.reflector, "{type: stamp, interval: 100ms, loss_timeout: 300ms, key_file: key}")
	add("over-ipv6-"+long[:60], "[2001:db8:aaaa:bbbb:cccc:dddd:eeee:7]:8620", stamp)
	add("unresolved", strings.Repeat("a-name-that-does-not-exist.", 4)+"invalid:8620", stamp)
	test := func(kind, name, path, peer, more string) {
		add(path, peer, fmt.Sprintf("{type: %s, name: %s, every: 24h, token_file: token, pin: %q%s}", kind, name, "sha256:"+strings.Repeat("5a", 32), more))
	}
	rate := ", rate: {forward: 3Mbit, reverse: 12Mbit}"
	for i, kind := range []string{"saturation", "size_sweep", "train", "tcp", "tcp_sweep", "tcp_short", "message"} {
		more := ""
		if kind == "saturation" {
			more = rate
		}
		test(kind, kind, "branch-to-core-"+kind, "core.example.net", more)
		ids[kind] = s.store(t, kind, "branch-to-core-"+kind, "core.example.net", time.Duration(i*i*7+3)*time.Minute)
	}
	test("saturation", "saturation", "incomplete-test", "[2001:db8::7]:862", rate)
	ids["incomplete"] = s.store(t, "saturation", "incomplete-test", "[2001:db8::7]:862", 2*time.Hour, failed)
	test("train", "train", "before-the-first-run", "core.example.net", "")
	ids["incident"] = s.store(t, "incident", "bus-12-to-core", s.reflector, 5*time.Hour, func(r *recording) {
		r.Header.Reason = "round trip delay of 1.21 s, before 208 ms"
	})
	for i := range 110 {
		s.store(t, "message", "branch-to-core-message", "core.example.net", time.Duration(10+i)*time.Hour)
	}
	ids["damaged"] = s.store(t, "tcp", long, "core.example.net", 6*time.Hour)
	ids["unreadable"] = s.store(t, "tcp", "depot", "core.example.net", 7*time.Hour)
	ids["missing"] = s.store(t, "tcp", "depot", "core.example.net", 8*time.Hour)
	file := func(id string) string { return filepath.Join(s.dir, "reports", id+".json.gz") }
	cut := func(id string, size int64) {
		if err := os.Truncate(file(id), size); err != nil {
			t.Fatal(err)
		}
	}
	cut(ids["damaged"], 5000)
	cut(ids["unreadable"], 17)
	s.serve(t, "paths:\n"+paths.String())
	await.That(t, "the agent has listed its reports", func() bool { return strings.Contains(get(t, s.url+"/runs"), ids["missing"]) })
	if err := os.Remove(file(ids["missing"])); err != nil {
		t.Fatal(err)
	}
	return s, ids
}
