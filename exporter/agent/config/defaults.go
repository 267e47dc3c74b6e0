package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// WithDefaults is the options of a probe with the defaults of its type: a key that the probe lacks has the value, the place
// and the directory of the defaults. A key of the probe replaces that of the defaults as a whole, as with merge keys (<<).
// defaults that are not given, or are no mapping, have no keys.
func (s Section) WithDefaults(defaults Section) Section {
	if !defaults.given || defaults.at.Kind != yaml.MappingNode {
		return s
	}
	own := inner(s.at)
	rest := *defaults.at
	rest.Content = nil
	for _, p := range inner(defaults.at) {
		if !slices.ContainsFunc(own, func(o pair) bool { return o.name() == p.name() }) {
			rest.Content = append(rest.Content, p.keyNode, p.value)
		}
	}
	defaults.at = &rest
	s.defaults = &defaults
	return s
}

// Own is the section without the defaults of its type.
func (s Section) Own() Section {
	s.defaults = nil
	return s
}

// owner is the section that has a key: that of the defaults, or s.
func (s Section) owner(key string) Section {
	first, _, _ := strings.Cut(key, ".")
	first, _, _ = strings.Cut(first, "[")
	if s.defaults != nil && first != "" && child(s.defaults.at, first) != nil {
		return *s.defaults
	}
	return s
}
