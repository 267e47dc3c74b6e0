package mesh

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/core/metric"
)

// expanded is a configuration with the keys of a mesh, whose directory has this file of hosts; D replaces the directory in errors.
func expanded(t *testing.T, keys, hosts string, on Machine) (*config.Config, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hosts.yml"), []byte(hosts), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(filepath.Join(dir, "o.yml"), []byte("mesh: {hosts_file: hosts.yml, probes: [{type: stamp}, {type: stamp, name: voice}]"+keys+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, found := Expand(c, on, metric.Groups(), nil); len(found) > 0 {
		return c, strings.ReplaceAll(found.Sort().Error(), dir, "D")
	}
	return c, ""
}

const three = `- {name: seoul, address: 192.0.2.1, link: uplink, labels: {site: seoul}}
- {name: busan, address: 192.0.2.2:8620, labels: {site: busan}}
- {name: Paris, address: paris.example.net}
`

func TestHostHasAPathToEachPeer(t *testing.T) {
	c, err := expanded(t, ", self: seoul, prefix: m-, link: access", three, Machine{})
	if err != "" {
		t.Fatal(err)
	}
	if found := c.Check(); found != nil {
		t.Fatal(found)
	}
	var got []string
	for _, p := range c.Paths {
		got = append(got, fmt.Sprint(p.Name, " ", p.Peer, p.Links, p.Labels, len(p.Probes)))
	}
	want := []string{"m-seoul-to-busan 192.0.2.2:8620[uplink] map[site:busan] 2", "m-seoul-to-Paris paris.example.net[uplink] map[] 2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	c, _ = expanded(t, ", self: busan, link: access", three, Machine{})
	if links := c.Paths[0].Links; !slices.Equal(links, config.Words{"access"}) {
		t.Errorf("links of a host without its own are %q", links)
	}
}

func TestHostIsFoundByItsNameOrElseByItsAddress(t *testing.T) {
	second, ipv6 := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::7")
	for want, on := range map[string]Machine{
		"seoul": {Name: "Seoul.example.net", Addresses: []netip.Addr{second}},
		"Paris": {Name: "paris.example.net"},
		"busan": {Name: "other", Addresses: []netip.Addr{ipv6, second}},
	} {
		c, err := expanded(t, "", three, on)
		if err != "" || !strings.HasPrefix(c.Paths[0].Name, want+"-to-") {
			t.Errorf("%+v: %v %v", on, c.Paths, err)
		}
	}
}

func TestErrorsOfAMeshStateTheRemedy(t *testing.T) {
	address := netip.MustParseAddr("198.51.100.7")
	many := slices.Repeat([]netip.Addr{address}, 6)
	for _, c := range []struct {
		name, keys, hosts string
		on                Machine
		want              string
	}{
		{
			"not found", "", "- {name: a, address: a.example.net}\n- {name: b, address: b.example.net}\n",
			Machine{Name: "probe-7.example.net", Addresses: many},
			`D/o.yml:1:7: mesh.self is auto, but hosts.yml has neither this host's name (probe-7.example.net) nor one of its present addresses ` +
				`(198.51.100.7, 198.51.100.7, 198.51.100.7, 198.51.100.7, 2 more); write self: NAME, which needs none`,
		},
		{
			"unknown", ", self: Seoul", three,
			Machine{},
			`D/o.yml:1:90: mesh.self is "Seoul"; it must be auto or the name of one of the 3 hosts in hosts.yml`,
		},
		{
			"two addresses", "", three,
			Machine{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.1")}},
			`D/o.yml:1:7: mesh.self is auto, but the addresses of this host are those of seoul and busan in hosts.yml; write self: NAME`,
		},
		{
			"shape", ", shape: star, representatives: 2", three,
			Machine{},
			"D/o.yml:1:91: mesh.shape is \"star\"; it must be full, ring, neighbors or site\n" +
				"D/o.yml:1:114: mesh.representatives has no effect with shape star; remove it, or use shape site",
		},
		{
			"neighbors", ", shape: neighbors, neighbors: 3", three,
			Machine{},
			`D/o.yml:1:113: mesh.neighbors is 3; it must be even: half of them are before the host in the file, half after it`,
		},
		{"site", ", shape: site, self: seoul", three, Machine{}, `D/hosts.yml:3:3: [2].labels.site is missing; shape site needs the site of each host`},
		{"one host", ", self: a", "- {name: a, address: a}", Machine{}, `D/hosts.yml:1:1: it has 1 host; a mesh has 2 to 10000`},
		{"empty", ", self: a", "# later", Machine{}, `D/hosts.yml: is empty`},
		{"no list", ", self: a", "hosts: []", Machine{}, `D/hosts.yml:1:1: is a mapping; it must be a list, such as [{name: seoul, address: 192.0.2.1}]`},
		{
			"several", ", self: a", "- {name: a, adddress: a}\n- 5\n- {name: 7, address: '[::1', labels: {a-b: c}}",
			Machine{},
			"D/hosts.yml:1:13: [0].adddress is unknown; did you mean \"address\"?\n" +
				"D/hosts.yml:2:3: [1] is 5; it must be a mapping\n" +
				"D/hosts.yml:3:10: [2].name is 7; it must be text: write \"7\", with the quotes\n" +
				"D/hosts.yml:3:22: [2].address is \"[::1\"; after the bracket that closes the address there may be a colon and a port, such as [2001:db8::1]:862\n" +
				"D/hosts.yml:3:44: [2].labels.a-b is no name of a label; it must begin with a letter, and have at most 64 letters, digits and single _",
		},
		{
			"twice", ", self: a", "- {name: a, address: 192.0.2.1}\n- {name: a, address: '::ffff:192.0.2.1'}\n- {name: b, address: 192.0.2.1:862}\n- {name: c, address: 192.0.2.1:863}",
			Machine{},
			"D/hosts.yml:2:10: [1].name is \"a\", which is also the name of [0] in line 1; names must differ\n" +
				"D/hosts.yml:2:22: [1].address is \"::ffff:192.0.2.1\", which is also the address of [0] in line 1; addresses must differ\n" +
				"D/hosts.yml:3:22: [2].address is \"192.0.2.1:862\", which is also the address of [1] in line 2; addresses must differ",
		},
		{
			"address and label", ", self: a", "- {name: a, address: '[::1'}\n- {name: b, labels: {probe: x}}",
			Machine{},
			"D/hosts.yml:1:22: [0].address is \"[::1\"; after the bracket that closes the address there may be a colon and a port, such as [2001:db8::1]:862\n" +
				"D/hosts.yml:2:3: [1].address is missing; it must be a host, such as reflector.example.net or 192.0.2.1:862\n" +
				"D/hosts.yml:2:29: [1].labels.probe has the name of a label of metrics or targets, or of a field of points; choose another, such as path_probe",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := expanded(t, c.keys, c.hosts, c.on); err != c.want {
				t.Errorf("got\n%s\nwant\n%s", err, c.want)
			}
		})
	}
}

func TestMeshNeedsItsFileAndProbes(t *testing.T) {
	dir := t.TempDir()
	c, err := config.Parse(filepath.Join(dir, "o.yml"), []byte("mesh: [{self: a}, {hosts_file: none.yml, probes: [{type: stamp}]}]"))
	if err != nil {
		t.Fatal(err)
	}
	want := `D/o.yml:1:8: mesh[0].hosts_file is missing; it must be the file with the hosts of the mesh
D/o.yml:1:8: mesh[0].probes is missing; a mesh needs at least one, such as {type: stamp}
D/o.yml:1:32: mesh[1].hosts_file is "none.yml"; D/none.yml does not exist (relative names begin at the directory of o.yml)`
	_, found := Expand(c, Machine{}, metric.Groups(), nil)
	if got := strings.ReplaceAll(found.Sort().Error(), dir, "D"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTwoMeshesNeedTwoNamesOfAPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hosts.yml"), []byte(three), 0o600); err != nil {
		t.Fatal(err)
	}
	const one = "{hosts_file: hosts.yml, self: seoul, probes: [{type: stamp}]"
	for second, want := range map[string]string{
		"":                dir + `/o.yml:1:71: mesh[1] makes the path "seoul-to-busan", as mesh[0] does; give one of them another prefix`,
		", prefix: ring/": "",
	} {
		c, err := config.Parse(filepath.Join(dir, "o.yml"), []byte("mesh: ["+one+"}, "+one+second+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		_, found := Expand(c, Machine{}, metric.Groups(), nil)
		if got := found.Error(); got != want || want == "" && len(c.Paths) != 4 {
			t.Errorf("got %q and %d paths, want %q", got, len(c.Paths), want)
		}
	}
}
