// Package config reads the configuration file: strict YAML that is checked completely before any of it is used. Each
// error has the position, the value and the expectation:
//
//	oneway.yml:12:17: paths[0].probes[0].interval is 0s; it must be between 1ms and 1h
//
// Unknown keys, duplicate keys, values of a wrong type and keys without a value are errors. Anchors, aliases and merge
// keys (<<) are supported. A file may include others (include.go), and have defaults of probes by type (defaults.go). A key
// whose name ends in _file is the path of a file, relative to the directory of the file that has the key.
//
// The package does not interpret sections and probe options: they stay raw (Section) until their owner decodes them, with
// the same strictness, and checks them.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/textfile"
)

// Config is a complete file. Its sections are decoded by their owners.
type Config struct {
	// File is the name of the file, for messages.
	File string `yaml:"-"`
	// Version is the version of the file's format; 0 without the key, which means version 1.
	Version Version `yaml:"version"`
	// Clock configures the source of this host's clock error bound.
	Clock Section `yaml:"clock"`
	// Reflector configures the STAMP reflector.
	Reflector Section `yaml:"reflector"`
	// LoadServer configures the remote end of load tests of other hosts.
	LoadServer Section `yaml:"load_server"`
	// Paths are the measured paths; nil without the key.
	Paths []Path `yaml:"paths"`
	// CalibrationFile is the file with the timestamp errors of this host's interfaces.
	CalibrationFile Section `yaml:"calibration_file"`
	// StateDir is the directory of state that persists over restarts.
	StateDir Section `yaml:"state_dir"`
	// Site is the site of this host.
	Site Section `yaml:"site"`
	// MeshSite is the site of this host by the file of hosts of a mesh; empty: no mesh says it.
	MeshSite string `yaml:"-"`
	// Calendar configures the local time of the agent.
	Calendar Section `yaml:"calendar"`
	// Maintenance are the times of planned work.
	Maintenance Section `yaml:"maintenance"`
	// Links are the links that load tests share, with their quotas.
	Links Section `yaml:"links"`
	// Reports configures the reports of load-test runs.
	Reports Section `yaml:"reports"`
	// OnDemand configures the measurements that clients of the web server may request.
	OnDemand Section `yaml:"on_demand"`
	// Profile selects the exported metrics of all probes without a profile of their path or their own.
	Profile Section `yaml:"profile"`
	// Outputs deliver the measurements to stores that do not scrape this agent.
	Outputs []Item `yaml:"outputs"`
	// Watchers observe something beside the packets of probes. The sections gpsd and pps of Clock are watchers too.
	Watchers []Item `yaml:"watchers"`
	// Defaults are options of probes by type; see Section.WithDefaults.
	Defaults map[string]Section `yaml:"defaults"`
	// Meshes are lists of hosts that make paths; see package mesh.
	Meshes Sections `yaml:"mesh"`
	// Include names further files, whose content this one has; see include.go.
	Include Section `yaml:"include"`
}

// Version is a version of the configuration's format. It increases when a key changes its meaning.
type Version int

// UnmarshalText accepts the supported version only.
func (v *Version) UnmarshalText(text []byte) error {
	if string(text) != "1" {
		return errors.New("it must be 1, the supported version of the format")
	}
	*v = 1
	return nil
}

// Path is one peer and its probes.
type Path struct {
	// Name is the metric label, unique in the file; see option.Name.
	Name string `yaml:"name"`
	// Peer is a host name or address with an optional port, as written.
	Peer string `yaml:"peer"`
	// Profile is the default of its probes; empty: the profile of the file.
	Profile string `yaml:"profile"`
	// Links are the links that its packets pass and that load tests fill: one name or a list.
	Links Words `yaml:"link"`
	// Labels describe the path, such as its site and region.
	Labels map[string]string `yaml:"labels"`
	// Probes has at least one element; names are unique within the path.
	Probes []Probe `yaml:"probes"`
	// Place is the position of the path in the file.
	Place Section `yaml:",place"`
	// Linked has the key link, if that is not a key of Place; the zero value: it is.
	Linked Section `yaml:"-"`
	// Listed has the key address, which is the peer, of a path of a mesh: the peer's entry in the file of hosts.
	Listed Section `yaml:"-"`
}

// PeerPlace is the section with the peer, and its key.
func (p *Path) PeerPlace() (at Section, key string) {
	if p.Listed.given {
		return p.Listed, "address"
	}
	return p.Place, "peer"
}

// LinkPlace is the section with the name of a link, by its index, and its key.
func (p *Path) LinkPlace(i int) (at Section, key string) {
	if at = p.Linked; !at.given {
		at = p.Place
	}
	if len(p.Links) == 1 {
		return at, "link"
	}
	return at, fmt.Sprintf("link[%d]", i)
}

// Words is a list of words; a single word is a list of one.
type Words []string

// Sections is a list of sections; a single mapping is a list of one.
type Sections []Section

// Probe is one measurement of a path.
type Probe struct {
	// Name is the metric label; empty: Type.
	Name string `yaml:"name"`
	// Type is the name of the probe type.
	Type string `yaml:"type"`
	// Profile is the profile of the probe; empty: the profile of the path.
	Profile string `yaml:"profile"`
	// Options are the remaining keys.
	Options Section `yaml:",rest"`
}

// Item is one of a list of tasks with types: an output or a watcher.
type Item struct {
	// Name is the metric label, unique in its list; empty: Type.
	Name string `yaml:"name"`
	// Type is the name of its type.
	Type string `yaml:"type"`
	// Options are the remaining keys.
	Options Section `yaml:",rest"`
}

// Load reads a file. Errors in its content are of type Problems; if only some keys have errors, the rest is returned with
// them.
func Load(name string) (*Config, error) {
	content, err := read(name, maxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return Parse(name, content)
}

// read reads a file of at most limit bytes.
func read(name string, limit int) ([]byte, error) {
	f, err := textfile.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(content) > limit {
		err = fmt.Errorf("read %s: it is larger than the limit of %d MiB", name, maxFileBytes>>20)
	}
	if err != nil {
		return nil, err
	}
	if content, err = textfile.Decode(content); err != nil { // the parser of YAML would take UTF-16, with wrong columns
		err = fmt.Errorf("%s: %w", name, err)
	}
	return content, err
}

// regular refuses what is there and is no file: reading from a pipe may not end.
func regular(name string) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s must be a regular file", name)
	}
	return nil // reading reports what is missing
}

// LoadSection reads a file of its own that a section names, such as a list of hosts. Errors in its content are of type
// Problems.
func LoadSection(name string) (Section, error) {
	if err := regular(name); err != nil {
		return Section{}, err
	}
	content, err := read(name, maxFileBytes)
	if err != nil {
		return Section{}, err
	}
	root, problem := parse(name, content)
	switch {
	case problem != nil:
		return Section{}, Problems{problem}
	case root == nil:
		return Section{}, Problems{{File: name, Text: "is empty"}}
	}
	return Section{at: root, given: true, file: name, dir: filepath.Dir(name)}, nil
}

// Parse is Load for the content of a file; name is used in messages, and its directory is the base of relative file
// names.
func Parse(name string, content []byte) (*Config, error) {
	f := newFiles(name)
	c := f.parse(name, content, 0)
	if len(f.problems) > 0 {
		return c, f.problems.Sort()
	}
	return c, nil
}

// parse returns the only document of a file; nil without a problem: the file is empty.
func parse(name string, content []byte) (*yaml.Node, *Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, further yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF) || err == nil && (len(document.Content) == 0 || document.Content[0].ShortTag() == "!!null"):
		return nil, nil
	case err != nil:
		return nil, syntaxProblem(name, string(content), err)
	}
	switch err := decoder.Decode(&further); {
	case err == nil:
		return nil, problemAt(name, &further, "", "a second document begins here; a configuration must be one document")
	case !errors.Is(err, io.EOF):
		return nil, syntaxProblem(name, string(content), err)
	}
	return document.Content[0], nil
}

// Check reports errors in the paths of a decoded file, and sets the names of probes without a name to their types.
func (c *Config) Check() (found Problems) {
	seen := make(map[string]int, len(c.Paths))
	for i := range c.Paths {
		p := &c.Paths[i]
		if !p.Place.given {
			continue // it could not be decoded
		}
		if first, twice := seen[p.Name]; twice {
			if wrong := p.Place.Duplicate("name", "names", p.Name, c.Paths[first].Place); p.Listed.given {
				found = append(found, p.Place.Problem("", fmt.Sprintf("makes a path whose %s; give the mesh another prefix", wrong)))
			} else {
				found.add(p.Place, wrong)
			}
		}
		if option.Name("name", p.Name) == nil {
			seen[p.Name] = i
		}
		found = append(found, p.Place.Problems(option.Check(p))...)
		checkLinks(p, &found)
		checkProbes(p.Probes, "probe of this path", &found)
	}
	return found
}

func checkLinks(p *Path, found *Problems) {
	for i, name := range p.Links {
		at, key := p.LinkPlace(i)
		found.add(at, option.Name(key, name))
		if slices.Contains(p.Links[:i], name) {
			found.add(at, option.Errorf(key, "is %q for the second time; name each link once", name))
		}
	}
}

// CheckModules is Check for the modules of on-demand probes.
func CheckModules(modules []Probe) (found Problems) {
	checkProbes(modules, "module", &found)
	return found
}

func checkProbes(probes []Probe, what string, found *Problems) {
	seen := map[string]bool{}
	for i := range probes {
		p := &probes[i]
		checkItem(p.Options, &p.Name, p.Type, "probe", what, "stamp", seen, found)
	}
}

// CheckItems reports errors in a list of a decoded file, and sets the names of items without a name to their types. noun is what
// an item is, such as "output", and example one of its types.
func CheckItems(items []Item, noun, example string) (found Problems) {
	seen := map[string]bool{}
	for i := range items {
		one := &items[i]
		checkItem(one.Options, &one.Name, one.Type, noun, noun, example, seen, &found)
	}
	return found
}

// checkItem does nothing for an item that could not be decoded. It reports a missing type and a wrong name of an item of a list. noun, what and example are parts of messages.
func checkItem(options Section, name *string, kind, noun, what, example string, seen map[string]bool, found *Problems) {
	if !options.given {
		return
	}
	if kind == "" {
		found.add(options, option.Errorf("type", "is missing; it must be the type of the %s, such as %s", noun, example))
		return
	}
	if *name == "" {
		*name = kind
	}
	found.add(options, option.Name("name", *name))
	if seen[*name] {
		found.add(options, option.Errorf("name", "is %q, which is also the name of another %s; names must differ", *name, what))
	}
	seen[*name] = true
}
