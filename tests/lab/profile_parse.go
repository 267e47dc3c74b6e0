package lab

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"oneway.example/tests/bottleneck"
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
		"duplicate", "reorder", "corrupt", "corrupt_checksum", "mark",
		"trace", "slot", "bucket", "peak", "police", "queue_packets", "queue_time", "discipline",
		"second_rate", "second_queue", "others", "retransmit", "retransmit_delay",
		"grow", "grow_after", "outage", "outage_after",
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
		if e.key == "trace" {
			l.Trace, err = p.trace(text)
		} else {
			err = l.set(e.key, text)
		}
		if err != nil {
			return Link{}, p.errorf(e.value.Line, "%s: %w", e.path, err)
		}
		lines[e.key] = e.value.Line
	}
	if key, err := l.check(); err != nil {
		return Link{}, p.errorf(cmp.Or(lines[key], of.value.Line), "%s.%s: %w", of.path, key, err)
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
	case "mark":
		l.Mark, err = parsePercentage(text)
	case "loss_burst":
		l.LossBurst, err = strconv.ParseFloat(text, 64)
		if err != nil {
			err = fmt.Errorf("%q is not a number of packets, such as 3", text)
		}
	case "corrupt_checksum":
		l.Checksum, err = parseChecksumMode(text)
	default:
		return l.setBottleneck(key, text)
	}
	return err
}

// setBottleneck parses the value of one of the keys about the queue and what is behind it.
func (l *Link) setBottleneck(key, text string) (err error) {
	durations := map[string]*time.Duration{
		"slot": &l.Slot, "queue_time": &l.QueueTime, "retransmit_delay": &l.RetransmitDelay,
		"grow": &l.Grow, "grow_after": &l.GrowAfter, "outage": &l.Outage, "outage_after": &l.OutageAfter,
	}
	if d := durations[key]; d != nil {
		*d, err = parseDuration(text)
		return err
	}
	rates := map[string]*int64{"peak": &l.Peak, "second_rate": &l.SecondRate, "others": &l.Others}
	if r := rates[key]; r != nil {
		*r, err = parseRate(text)
		return err
	}
	switch key {
	case "bucket":
		l.Bucket, err = parseSize(text)
	case "second_queue":
		l.SecondQueue, err = parseSize(text)
	case "retransmit":
		l.Retransmit, err = parsePercentage(text)
	case "police":
		if l.Police, err = strconv.ParseBool(text); err != nil {
			err = fmt.Errorf("%q is not known, want true or false", text)
		}
	case "queue_packets":
		if l.QueuePackets, err = strconv.Atoi(text); err != nil || l.QueuePackets < 1 {
			err = fmt.Errorf("%q is not a number of packets, such as 100", text)
		}
	case "discipline":
		l.Discipline, err = bottleneck.ParseDiscipline(text)
	}
	return err
}

// trace reads what a link's opportunities are: a file in mahimahi's format, beside the profile, or
// cellular(5Mbit, 3), a made one of that mean rate and of seed 3.
func (p *profileParser) trace(text string) ([]uint32, error) {
	arguments, made := strings.CutPrefix(text, "cellular(")
	if !made {
		name := text
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(p.file), name)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		return bottleneck.ParseTrace(b)
	}
	rate, seed, _ := strings.Cut(strings.TrimSuffix(arguments, ")"), ",")
	mean, err := parseRate(rate)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(seed), 10, 64)
	if err != nil || mean == 0 || mean > cellularMost || !strings.HasSuffix(arguments, ")") {
		return nil, fmt.Errorf("%q is no made trace, want cellular(mean rate, seed) of up to 200Mbit, such as cellular(5Mbit, 3)", text)
	}
	return bottleneck.Cellular(n, float64(mean), cellularLasts), nil
}

// cellularLasts is how long a made trace is before it begins again, cellularMost its highest mean
// rate: 5 million opportunities.
const (
	cellularLasts = 5 * time.Minute
	cellularMost  = 200e6
)

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
