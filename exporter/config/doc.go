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
// The package knows no probe: what a probe has besides name and type stays raw
// until the probe decodes it, with the same strictness; see Probe.Decode.
package config
