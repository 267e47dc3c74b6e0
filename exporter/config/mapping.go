package config

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// pair is one key of a mapping and its value.
type pair struct{ keyNode, value *yaml.Node }

func (p pair) name() string { return p.keyNode.Value }

// pairs lists a mapping's keys, with those that it merges in (<<) after its own
// and without those of them that it has itself.
func (d *decoder) pairs(n *yaml.Node, key string) ([]pair, bool) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, key, "is %s; it must be a mapping", describe(n))
		return nil, false
	}
	var all []pair
	var merged []*yaml.Node
	own := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		switch {
		case k.ShortTag() == "!!merge":
			merged = append(merged, value)
		case k.Kind != yaml.ScalarNode:
			d.fail(k, key, "has %s as a key; keys are words", describe(k))
		case own[k.Value] != nil:
			d.fail(k, join(key, k.Value), "is given twice; the first is in line %d", own[k.Value].Line)
		default:
			own[k.Value] = k
			all = append(all, pair{k, value})
		}
	}
	d.merging++
	defer func() { d.merging-- }()
	for _, m := range merged {
		if d.merging > maxMerging {
			d.fail(m, key, "merges mappings in mappings, more than %d deep", maxMerging)
			break
		}
		all = d.merge(all, own, m, key)
	}
	return all, true
}

// maxMerging is how deep a merged mapping may merge others; one that merges
// itself has no end.
const maxMerging = 4

// merge appends the pairs of a mapping, or of each of a list of mappings.
func (d *decoder) merge(all []pair, own map[string]*yaml.Node, from *yaml.Node, key string) []pair {
	from, ok := d.resolve(from, key)
	if !ok {
		return all
	}
	if from.Kind == yaml.SequenceNode {
		for _, one := range from.Content {
			all = d.merge(all, own, one, key)
		}
		return all
	}
	pairs, _ := d.pairs(from, join(key, "<<"))
	for _, p := range pairs {
		if own[p.name()] == nil {
			own[p.name()] = p.keyNode
			all = append(all, p)
		}
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
