// Package mesh makes the paths of each host of a mesh from one file with all hosts, which is the same on all of them:
//
//   - {name: seoul, address: probe.seoul.example.net, link: uplink, labels: {site: seoul, region: asia}}
//   - {name: busan, address: 192.0.2.7}
//
// An agent finds its own host in the file, and measures the hosts that the shape of the mesh makes its peers. Shapes are
// symmetric: if a host measures another, that one measures it too.
package mesh

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/agent/pathlabel"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/unit"
)

// auto is the value of self for which the host is found by its name and addresses.
const auto = "auto"

// maxHosts limits the hosts of a file.
const maxHosts = 10_000

// Options are the keys of a mesh. Describe has their meanings, defaults and bounds.
type Options struct {
	HostsFile       string         `yaml:"hosts_file"`
	Self            string         `yaml:"self"`
	Shape           string         `yaml:"shape"`
	Neighbors       int            `yaml:"neighbors"`
	Representatives int            `yaml:"representatives"`
	Prefix          string         `yaml:"prefix"`
	Link            config.Words   `yaml:"link"`
	Probes          []config.Probe `yaml:"probes"`
}

// Describe returns the descriptions of the keys.
func (o *Options) Describe() []option.Description {
	return []option.Description{
		option.Text(&o.HostsFile, "A list of the hosts, each with its name, address, link and labels.").WithExample("hosts.yml").
			Required("it must be the file with the hosts of the mesh"),
		option.Value(&o.Self, auto, "The name of this host in the file; auto: by its host name, else by an address of its interfaces."),
		option.Word(&o.Shape, Full, []string{Full, Ring, Neighbors, Site}, "full: each other host; ring: the hosts before and after it; neighbors: several of these; site: the others of its "+
			"site, and between sites the first hosts (representatives) of each."),
		option.Number(&o.Neighbors, 4, 2, maxHosts, "The number of peers of each host, an even number, of shape neighbors only.").Conditional(),
		option.Number(&o.Representatives, 1, 1, maxHosts, "The number of hosts of each site that measure other sites, of shape site only.").Conditional(),
		option.Text(&o.Prefix, "The beginning of the names of the paths."),
		option.Value(&o.Link, nil, "The link of a host that has none in the file, one name or a list.").WithExample("uplink"),
		option.Value(&o.Probes, nil, "The probes of each path.").WithExample("[{type: stamp}]").Required("a mesh needs at least one, such as {type: stamp}"),
	}
}

// host is an entry of the file.
type host struct {
	Name    string            `yaml:"name"`
	Address string            `yaml:"address"`
	Labels  map[string]string `yaml:"labels"`
	Link    config.Words      `yaml:"link"`
	Place   config.Section    `yaml:",place"`
}

// Describe returns the descriptions of the keys that each host must have.
func (h *host) Describe() []option.Description {
	return []option.Description{
		option.Text(&h.Name, "The host in the names of paths.").WithExample("seoul").Required("every host needs one").
			Checked(func(key string) error { return option.Name(key, h.Name) }),
		option.Text(&h.Address, fmt.Sprintf("A name or address, with :port if it is not %d.", hostport.Reflector)).WithExample("192.0.2.1").
			Required(config.HostRequired, hostport.Reflector),
	}
}

// Machine is how a host recognizes itself in a file of hosts.
type Machine struct {
	// Name is the host's name, with or without a domain.
	Name string
	// Addresses are those of its interfaces.
	Addresses []netip.Addr
	// Known are the names by which it was found before, by file of hosts: a host keeps its name while its address is absent.
	Known map[string]string
}

// Expansion is what Expand finds besides paths.
type Expansion struct {
	// Known are the names by which auto found this host, by file of hosts.
	Known map[string]string
	// Unfound are the problems of meshes in whose file this host is not found, and may be later: an address comes or goes (DHCP, a VPN, VRRP).
	Unfound int
	// Named are the meshes with peers that have a name in place of an address.
	Named []Named
}

// Named is a mesh in which the name of a peer may give the address of another host.
type Named struct {
	File string
	// Own is this host, and Port its port.
	Own  string
	Port uint16
	// Hosts are the hosts by their addresses in the file, Peers the hosts of the paths whose peer is a name.
	Hosts map[netip.AddrPort]string
	Peers map[string]string
}

// ThisMachine is the one that the process runs on. What the system does not tell is empty.
func ThisMachine() (m Machine) {
	m.Name, _ = os.Hostname()
	links, _ := net.Interfaces()
	var ofLinks []netip.Addr // after the others: an error lists the first four
	for _, link := range links {
		all, _ := link.Addrs()
		for _, a := range all {
			p, err := netip.ParsePrefix(a.String())
			switch one := p.Addr(); {
			case err != nil || one.IsLoopback():
			case one.Is6() && one.IsLinkLocalUnicast():
				ofLinks = append(ofLinks, one.WithZone(link.Name))
			default:
				m.Addresses = append(m.Addresses, one)
			}
		}
	}
	m.Addresses = append(m.Addresses, ofLinks...)
	return m
}

// Expand appends the paths of all meshes of a configuration to its paths. The labels of hosts must not be labels of the families
// of these groups, nor names of points of theirs and of these tables. It sets the site of this host, if a mesh says it.
func Expand(c *config.Config, on Machine, groups []metric.Group, tables []*record.Schema) (made Expansion, found config.Problems) {
	made.Known = map[string]string{}
	makers := map[string]int{} // mesh, by path
	for i, section := range c.Meshes {
		paths, site, err := made.pathsOf(section, on, groups, tables)
		if err != nil {
			if _, ok := errors.AsType[unfound](err); ok {
				made.Unfound++
			}
			found = append(found, section.Problems(err)...)
			continue
		}
		for _, p := range paths {
			if first, twice := makers[p.Name]; twice {
				found = append(found, section.Problem("", fmt.Sprintf("makes the path %q, as mesh[%d] does; give one of them another prefix", p.Name, first)))
				break
			}
			makers[p.Name] = i
		}
		c.Paths, c.MeshSite = append(c.Paths, paths...), cmp.Or(c.MeshSite, site)
	}
	return made, found
}

// Host is a host of a mesh.
type Host struct {
	// Name is its name in the file, Address its address there, with a port if it has one.
	Name, Address string
	Labels        map[string]string
}

// Hosts returns the hosts of all meshes of a configuration, those with one name and address once.
func Hosts(c *config.Config, groups []metric.Group, tables []*record.Schema) (all []Host, found config.Problems) {
	for _, section := range c.Meshes {
		_, hosts, err := read(section, groups, tables)
		found = append(found, section.Problems(err)...)
		for _, h := range hosts {
			if !slices.ContainsFunc(all, func(other Host) bool { return other.Name == h.Name && other.Address == h.Address }) {
				all = append(all, Host{h.Name, h.Address, h.Labels})
			}
		}
	}
	return all, found
}

// read reads a section and its file.
func read(section config.Section, groups []metric.Group, tables []*record.Schema) (o Options, hosts []host, err error) {
	o = option.Defaults[Options]()
	if err := section.Decode(&o); err != nil {
		return o, nil, err
	}
	if err := o.check(section); err != nil {
		return o, nil, err
	}
	hosts, err = o.hosts(groups, tables)
	return o, hosts, err
}

// pathsOf makes the paths of one mesh, and finds the site of this host; empty: the file does not say it.
func (m *Expansion) pathsOf(section config.Section, on Machine, groups []metric.Group, tables []*record.Schema) (paths []config.Path, site string, err error) {
	o, hosts, err := read(section, groups, tables)
	if err != nil {
		return nil, "", err
	}
	self, err := o.find(hosts, on)
	if err != nil {
		return nil, "", err
	}
	own := hosts[self]
	if o.Self == auto {
		m.Known[o.HostsFile] = own.Name
	}
	_, port, _ := hostport.Split(own.Address, hostport.Reflector)
	named := Named{o.HostsFile, own.Name, port, map[netip.AddrPort]string{}, map[string]string{}}
	for _, h := range hosts {
		if at, is := h.at(); is {
			named.Hosts[at] = h.Name
		}
	}
	for _, i := range o.peers(hosts, self) {
		peer, links, linked := hosts[i], own.Link, own.Place
		if len(links) == 0 {
			links, linked = o.Link, section
		}
		name := o.Prefix + own.Name + "-to-" + peer.Name
		if _, is := peer.at(); !is {
			named.Peers[name] = peer.Name
		}
		paths = append(paths, config.Path{
			Name: name, Peer: peer.Address, Links: links, Labels: peer.Labels,
			Probes: slices.Clone(o.Probes), Place: section, Linked: linked, Listed: peer.Place,
		})
	}
	if len(named.Peers) > 0 {
		m.Named = append(m.Named, named)
	}
	return paths, own.Labels[siteLabel], nil
}

// at is the address of a host with its port; is: it has one, and no name.
func (h *host) at() (at netip.AddrPort, is bool) {
	name, port, _ := hostport.Split(h.Address, hostport.Reflector)
	a, err := netip.ParseAddr(name)
	return netip.AddrPortFrom(a.Unmap(), port), err == nil
}

// check checks the keys without the file.
func (o *Options) check(section config.Section) error {
	errs := []error{
		option.Check(o),
	}
	if o.Neighbors%2 != 0 {
		errs = append(errs, option.Errorf("neighbors", "is %d; it must be even: half of them are before the host in the file, half after it", o.Neighbors))
	}
	for key, shape := range map[string]string{"neighbors": Neighbors, "representatives": Site} {
		if section.Has(key) && o.Shape != shape {
			errs = append(errs, option.Errorf(key, "has no effect with shape %s; remove it, or use shape %s", o.Shape, shape))
		}
	}
	return errors.Join(errs...)
}

// hosts reads and checks the file.
func (o *Options) hosts(groups []metric.Group, tables []*record.Schema) ([]host, error) {
	section, err := config.LoadSection(o.HostsFile)
	if _, content := errors.AsType[config.Problems](err); err != nil && !content {
		return nil, option.Errorf("hosts_file", "cannot be used: %v", err)
	}
	if err != nil {
		return nil, err
	}
	var hosts []host
	undecoded := section.Problems(section.Decode(&hosts))
	var found config.Problems
	if n := len(hosts); n < 2 || n > maxHosts {
		found = append(found, section.Problem("", fmt.Sprintf("it has %s; a mesh has 2 to %d", unit.Counted(n, "host", "hosts"), maxHosts)))
	}
	names, addresses, labels := map[string]int{}, map[string]int{}, pathlabel.NewChecker(groups, tables)
	for i, h := range hosts {
		if !h.Place.Given() {
			continue // it could not be decoded
		}
		errs := []error{option.Check(&h), labels.Check(h.Labels)}
		if first, twice := names[h.Name]; twice {
			errs = append(errs, h.Place.Duplicate("name", "names", h.Name, hosts[first].Place))
		}
		address, err := endpoint(h.Address)
		if h.Address != "" {
			errs = append(errs, err)
		}
		if first, twice := addresses[address]; twice && err == nil {
			errs = append(errs, h.Place.Duplicate("address", "addresses", h.Address, hosts[first].Place))
		}
		if o.Shape == Site && h.Labels[siteLabel] == "" {
			errs = append(errs, option.Errorf("labels."+siteLabel, "is missing; shape site needs the site of each host"))
		}
		names[h.Name], addresses[address] = i, i
		found = append(found, h.Place.Problems(errors.Join(errs...))...)
	}
	if found = undecoded.With(found); len(found) > 0 {
		return nil, found
	}
	return hosts, nil
}

// endpoint is an address in a form in which equal ones are equal.
func endpoint(address string) (string, error) {
	name, port, err := hostport.Split(address, hostport.Reflector)
	if err != nil {
		return "", option.Errorf("address", "is %q; %v", address, err)
	}
	if a, err := netip.ParseAddr(name); err == nil {
		name = a.Unmap().String()
	}
	return net.JoinHostPort(strings.ToLower(name), strconv.Itoa(int(port))), nil
}

// unfound is the error of a host that is not found, and may be later.
type unfound struct{ error }

// Unwrap returns the cause.
func (e unfound) Unwrap() error { return e.error }

// find finds this host in the file: by self, or by its name, or else by an address of its interfaces, or, where that is none or several, as the one
// that it was before.
func (o *Options) find(hosts []host, on Machine) (int, error) {
	file := filepath.Base(o.HostsFile)
	if o.Self != auto {
		if i := slices.IndexFunc(hosts, func(h host) bool { return h.Name == o.Self }); i >= 0 {
			return i, nil
		}
		return 0, option.Errorf("self", "is %q; it must be auto or the name of one of the %d hosts in %s", o.Self, len(hosts), file)
	}
	short, _, _ := strings.Cut(on.Name, ".")
	for _, name := range []string{on.Name, short} {
		if i := slices.IndexFunc(hosts, func(h host) bool { return name != "" && strings.EqualFold(h.Name, name) }); i >= 0 {
			return i, nil
		}
	}
	var mine []int
	for i, h := range hosts {
		at, is := h.at()
		name, _, _ := hostport.Split(h.Address, hostport.Reflector)
		if strings.EqualFold(name, on.Name) && on.Name != "" || is && slices.Contains(on.Addresses, at.Addr()) {
			mine = append(mine, i)
		}
	}
	known := slices.IndexFunc(hosts, func(h host) bool { return h.Name == on.Known[o.HostsFile] })
	switch {
	case len(mine) == 1:
		return mine[0], nil
	case known >= 0:
		return known, nil
	case len(mine) == 0:
		return 0, unfound{option.Errorf("self", "is auto, but %s has neither this host's name (%s) nor one of its present addresses (%s); write self: NAME, which needs none",
			file, cmp.Or(on.Name, "unknown"), listed(on.Addresses))}
	}
	return 0, unfound{option.Errorf("self", "is auto, but the addresses of this host are those of %s and %s in %s; write self: NAME",
		hosts[mine[0]].Name, hosts[mine[1]].Name, file)}
}

// listed lists a few addresses.
func listed(all []netip.Addr) string {
	var words []string
	for i, a := range all {
		if i == 4 {
			words = append(words, fmt.Sprintf("%d more", len(all)-i))
			break
		}
		words = append(words, a.String())
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}
