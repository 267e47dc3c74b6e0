package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/loadsite"
	"oneway.example/tests/program"
)

// tested are the paths whose time of the last load test is not older than since.
func tested(t *testing.T, a *loadsite.Agent, since time.Time) []string {
	t.Helper()
	all := a.Metrics(t, "oneway_path_test_timestamp_seconds")
	for path, at := range all {
		if begun, now := float64(since.UnixNano())/1e9, float64(time.Now().UnixNano())/1e9; at < begun || at > now {
			t.Errorf("the test of %s is at %.3f, want %.3f to %.3f", path, at, begun, now)
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// light is the configuration of a path with a light probe.
func light(name string, peer netip.Addr, more string) string {
	return fmt.Sprintf("  - {name: %s, peer: %q, %sprobes: [{type: stamp}]}\n", name, peer, more)
}

// A load test of one path is known for the paths over the same link, at both ends, and for the remote end's path to the client, which
// names no link. It is not known for paths over another link.
func TestLoadTestIsKnownForThePathsOverItsLinkAtBothEnds(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	begun := time.Now()
	at, elsewhere := netip.AddrPortFrom(s.At.Addr(), 8720), netip.MustParseAddr("127.0.0.1")
	remote := s.AgentOn(t, s.Network.Server, fmt.Sprintf("load_server: {listen: [%q], ports: 8721-8730, tokens_file: tokens, link: access}\npaths:\n", at)+
		light("back", s.Network.Client.Addr4, "")+light("over-access", elsewhere, "link: access, ")+light("beside", elsewhere, "link: [other, third], "))
	var status struct {
		LoadServer struct {
			Pin string `json:"pin"`
		} `json:"load_server"`
	}
	program.Eventually(t, "the load server runs", func() bool {
		if err := json.Unmarshal(remote.Get(t, "/api/v1/status"), &status); err != nil {
			t.Fatal(err)
		}
		return status.LoadServer.Pin != ""
	})
	// The load test takes the link of its path.
	load := strings.NewReplacer("link: uplink, ", "", "probes:", "link: [uplink, core], probes:").
		Replace(loadsite.Path("x", at, status.LoadServer.Pin, "duration: 1s", "rate: {forward: 5Mbit, reverse: 10Mbit}"))
	local := s.Agent(t, "paths:\n"+load+light("over-uplink", elsewhere, "link: uplink, ")+light("over-core", elsewhere, "link: core, ")+
		light("beside", elsewhere, "link: access, ")+light("unknown", elsewhere, ""))
	program.Eventually(t, "a run", func() bool {
		return loadsite.Sum(local.Metrics(t, "oneway_probe_runs_total"), `"completed"`) > 0
	})
	for _, end := range []struct {
		*loadsite.Agent
		want []string
	}{
		{local, []string{`path="over-core"`, `path="over-uplink"`, `path="x"`}},
		{remote, []string{`path="back"`, `path="over-access"`}},
	} {
		program.Eventually(t, fmt.Sprintf("%q are tested", end.want), func() bool { return len(tested(t, end.Agent, begun)) >= len(end.want) })
		if got := tested(t, end.Agent, begun); !slices.Equal(got, end.want) {
			t.Errorf("the tested paths are %q, want %q", got, end.want)
		}
	}
	if links := local.Metrics(t, "oneway_path_link_info"); len(links) != 5 || links[`link="uplink",path="x"`] != 1 {
		t.Errorf("the links of the paths are %v", links)
	}
	if _, ok := local.Metrics(t, "oneway_test_running")[`link="uplink",path="x",probe="saturation"`]; !ok {
		t.Errorf("the load test does not use the first link of its path: %v", local.Metrics(t, "oneway_test_running"))
	}
}
