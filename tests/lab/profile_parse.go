package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ParseProfile reads a profile; file is used in messages. Keys that are
// missing take the defaults of Link (rate unlimited, delay and jitter 0, queue
// DefaultQueue, no faults, corrupt_checksum repair); only name is required.
// Anything else than what is documented is an error that says where it is
// (file:line), which key it is and what would be right.
func ParseProfile(file string, text []byte) (Profile, error) {
	p := profileParser{file: file}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return Profile{}, fmt.Errorf("lab: %s: empty, want name, forward and reverse", file)
		}
		return Profile{}, fmt.Errorf("lab: %s: %w", file, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Profile{}, fmt.Errorf("lab: %s: more than one document, want one profile a file", file)
	}
	return p.profile(document.Content[0])
}

type profileParser struct{ file string }

// entry is one key of a mapping.
type entry struct {
	path  string
	key   string
	value *yaml.Node
}

func (p *profileParser) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("lab: %s:%d: %w", p.file, line, fmt.Errorf(format, args...))
}

// entries walks a mapping by hand rather than decoding into a struct: every
// message must have the line and the full path of the key.
func (p *profileParser) entries(n *yaml.Node, path string, known []string) ([]entry, error) {
	if n.Kind != yaml.MappingNode {
		return nil, p.errorf(n.Line, "%swant a mapping with the keys %s", prefix(path), strings.Join(known, ", "))
	}
	seen := make(map[string]int)
	var all []entry
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		full := key.Value
		if path != "" {
			full = path + "." + key.Value
		}
		if !slices.Contains(known, key.Value) {
			return nil, p.errorf(key.Line, "%s: unknown key, want one of %s", full, strings.Join(known, ", "))
		}
		if first, twice := seen[key.Value]; twice {
			return nil, p.errorf(key.Line, "%s: given twice, first in line %d", full, first)
		}
		seen[key.Value] = key.Line
		all = append(all, entry{path: full, key: key.Value, value: value})
	}
	return all, nil
}

func (p *profileParser) profile(n *yaml.Node) (Profile, error) {
	entries, err := p.entries(n, "", []string{"name", "forward", "reverse"})
	if err != nil {
		return Profile{}, err
	}
	var out Profile
	for _, e := range entries {
		switch e.key {
		case "name":
			out.Name, err = p.scalar(e)
		case "forward":
			out.Forward, err = p.link(e)
		case "reverse":
			out.Reverse, err = p.link(e)
		}
		if err != nil {
			return Profile{}, err
		}
	}
	if out.Name == "" {
		return Profile{}, p.errorf(n.Line, "name: missing, want a name for the profile")
	}
	return out, nil
}

func (p *profileParser) scalar(e entry) (string, error) {
	if e.value.Kind != yaml.ScalarNode || e.value.Tag == "!!null" {
		return "", p.errorf(e.value.Line, "%s: want a single value", e.path)
	}
	return e.value.Value, nil
}

func linkKeys() []string {
	return []string{
		"rate", "delay", "jitter", "queue", "loss", "loss_burst",
		"duplicate", "reorder", "corrupt", "corrupt_checksum",
	}
}

func (p *profileParser) link(of entry) (Link, error) {
	entries, err := p.entries(of.value, of.path, linkKeys())
	if err != nil {
		return Link{}, err
	}
	var l Link
	lines := make(map[string]int)
	for _, e := range entries {
		text, err := p.scalar(e)
		if err != nil {
			return Link{}, err
		}
		if err := l.set(e.key, text); err != nil {
			return Link{}, p.errorf(e.value.Line, "%s: %w", e.path, err)
		}
		lines[e.key] = e.value.Line
	}
	if key, err := l.check(); err != nil {
		return Link{}, p.errorf(lines[key], "%s.%s: %w", of.path, key, err)
	}
	return l, nil
}

// set parses the value of one key.
func (l *Link) set(key, text string) (err error) {
	switch key {
	case "rate":
		l.Rate, err = parseRate(text)
	case "delay":
		l.Delay, err = parseDuration(text)
	case "jitter":
		l.Jitter, err = parseDuration(text)
	case "queue":
		l.Queue, err = parseSize(text)
		if err == nil && l.Queue == 0 {
			err = fmt.Errorf("0 bytes hold not even one packet, want at least %dB", MTU)
		}
	case "loss":
		l.Loss, err = parsePercentage(text)
	case "duplicate":
		l.Duplicate, err = parsePercentage(text)
	case "reorder":
		l.Reorder, err = parsePercentage(text)
	case "corrupt":
		l.Corrupt, err = parsePercentage(text)
	case "loss_burst":
		l.LossBurst, err = strconv.ParseFloat(text, 64)
		if err != nil {
			err = fmt.Errorf("%q is not a number of packets, such as 3", text)
		}
	case "corrupt_checksum":
		l.Checksum, err = parseChecksumMode(text)
	}
	return err
}

func parseChecksumMode(text string) (ChecksumMode, error) {
	switch text {
	case "repair":
		return RepairChecksum, nil
	case "keep":
		return KeepChecksum, nil
	}
	return 0, fmt.Errorf("%q is not known, want repair or keep", text)
}

func prefix(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}
