// Package config reads the configuration file: strict YAML of which everything
// is checked before anything is used, and every error says where it is, what is
// there and what would be right:
//
//	oneway.yml:12:17: paths[0].probes[0].interval is 0s; it must be between 1ms and 1h
//
// Unknown keys, keys given twice, values of another type and keys without a
// value are errors. Anchors, aliases and merge keys (<<) work. A key whose name
// ends in _file is the path of a file, relative to the configuration's directory.
//
// The package knows the meaning of no section and of no probe: what they have stays raw (Section)
// until the one whom it belongs to decodes it, with the same strictness, and says what is wrong with it.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"

	"oneway.example/exporter/option"
)

// Config is a whole file. What its sections mean is the business of those who decode them.
type Config struct {
	// File is the name under which it was read, for messages.
	File string `yaml:"-"`
	// Version is that of the file's format; zero, without the key: the first.
	Version Version `yaml:"version"`
	// Clock says how this host's clock is known.
	Clock Section `yaml:"clock"`
	// Reflector answers other hosts' test packets.
	Reflector Section `yaml:"reflector"`
	// LoadServer is the remote end of other hosts' load tests.
	LoadServer Section `yaml:"load_server"`
	// Paths are what is measured; nil: the key is not there.
	Paths []Path `yaml:"paths"`
	// CalibrationFile holds the stamp errors of this host's interfaces.
	CalibrationFile Section `yaml:"calibration_file"`
	// StateDir keeps what must outlive a restart.
	StateDir Section `yaml:"state_dir"`
	// Links are what load tests share, with their quotas.
	Links Section `yaml:"links"`
	// Reports of load tests' runs.
	Reports Section `yaml:"reports"`
	// Profile is how many series the probes have, unless a path or a probe says otherwise.
	Profile Section `yaml:"profile"`
}

// Version is a version of the configuration's format. A key that would be read with another meaning
// than before makes a new one.
type Version int

// UnmarshalText takes the version that this program reads.
func (v *Version) UnmarshalText(text []byte) error {
	if string(text) != "1" {
		return errors.New("it must be 1, which is the version of the configuration that this oneway reads")
	}
	*v = 1
	return nil
}

// Path is one peer and how it is measured.
type Path struct {
	// Name is the metric label, unique in a file; see option.Name.
	Name string `yaml:"name"`
	// Peer is a host name or address with an optional port, as written.
	Peer string `yaml:"peer"`
	// Profile is that of its probes; empty: that of the file.
	Profile string `yaml:"profile"`
	// Probes has at least one; their names are unique within the path.
	Probes []Probe `yaml:"probes"`
	// Place is where it stands.
	Place Section `yaml:",place"`
}

// Probe is one way of measuring a path.
type Probe struct {
	// Name is the metric label; default: Type.
	Name string `yaml:"name"`
	// Type is the word by which the agent finds the probe's code.
	Type string `yaml:"type"`
	// Profile is its own; empty: that of the path.
	Profile string `yaml:"profile"`
	// Options are all other keys.
	Options Section `yaml:",rest"`
}

// maxFileBytes is some hundred thousand paths.
const maxFileBytes = 64 << 20

// Load reads a file. What is wrong with its content is an error of type Problems; if that is
// the content of some keys only, the rest is returned with it.
func Load(name string) (*Config, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if len(content) > maxFileBytes {
		return nil, fmt.Errorf("config: %s: larger than %d MiB: not a configuration", name, maxFileBytes>>20)
	}
	return Parse(name, content)
}

// Parse is Load of the content of a file; name is for messages, and its directory for the
// files that the content names.
func Parse(name string, content []byte) (*Config, error) {
	root, problem := parse(name, content)
	if problem != nil {
		return nil, Problems{problem}
	}
	d := &decoder{file: name, dir: filepath.Dir(name)}
	c := &Config{File: name}
	d.value(root, "", reflect.ValueOf(c).Elem())
	if len(d.problems) > 0 {
		return c, d.problems.Sort()
	}
	return c, nil
}

// parse returns the one document of a file.
func parse(name string, content []byte) (*yaml.Node, *Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, further yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF) || err == nil && (len(document.Content) == 0 || document.Content[0].ShortTag() == "!!null"):
		return nil, &Problem{File: name, Text: "is empty; it needs paths to measure, a reflector or a load server"}
	case err != nil:
		return nil, syntaxProblem(name, err)
	}
	switch err := decoder.Decode(&further); {
	case err == nil:
		return nil, problemAt(name, &further, "", "a second document begins here; a configuration is one")
	case !errors.Is(err, io.EOF):
		return nil, syntaxProblem(name, err)
	}
	return document.Content[0], nil
}

// yamlLine is how yaml.v3 begins its messages.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

func syntaxProblem(name string, err error) *Problem {
	message := err.Error()
	found := yamlLine.FindStringSubmatch(message)
	// 0 if there is none. It may be a line or two early: the parser tells where
	// what it was reading began.
	line, _ := strconv.Atoi(found[1])
	if line == 0 {
		return &Problem{File: name, Text: "this is not YAML: " + message[len(found[0]):]}
	}
	return &Problem{File: name, Line: line, Text: "at or after this line it is not YAML: " + message[len(found[0]):]}
}

// Check says what is wrong with the paths of a file that could be read, and gives probes
// without a name that of their type.
func (c *Config) Check() (found Problems) {
	seen := make(map[string]int, len(c.Paths))
	for i := range c.Paths {
		p := &c.Paths[i]
		if first, twice := seen[p.Name]; twice {
			found.add(p.Place, option.Errorf("name", "is %q, which paths[%d] in line %d has already; names must differ",
				p.Name, first, c.Paths[first].Place.Problem("name", "").Line))
		}
		switch {
		case !p.Place.Has("name"):
			found.add(p.Place, option.Errorf("name", "is missing; every path needs one"))
		case option.Name("name", p.Name) != nil:
			found.add(p.Place, option.Name("name", p.Name))
		default:
			seen[p.Name] = i
		}
		if !p.Place.Has("peer") {
			found.add(p.Place, option.Errorf("peer", "is missing; it must be a host, such as reflector.example.net or 192.0.2.1:862"))
		}
		if len(p.Probes) == 0 {
			found.add(p.Place, option.Errorf("probes", "names no probe; a path needs at least one, such as {type: stamp}"))
		}
		checkProbes(p.Probes, &found)
	}
	return found
}

func checkProbes(probes []Probe, found *Problems) {
	seen := map[string]bool{}
	for i := range probes {
		p := &probes[i]
		if p.Type == "" {
			found.add(p.Options, option.Errorf("type", "is missing; it says what kind of probe this is, such as stamp"))
			continue
		}
		if p.Name == "" {
			p.Name = p.Type
		}
		found.add(p.Options, option.Name("name", p.Name))
		if seen[p.Name] {
			found.add(p.Options, option.Errorf("name", "is %q, which another probe of this path has already; give one of them another name", p.Name))
		}
		seen[p.Name] = true
	}
}
