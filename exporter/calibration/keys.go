package calibration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// checkKeys finds keys that are missing or stand twice, which package json takes for
// zero and for the later one. content is valid JSON of the right shape otherwise.
func checkKeys(content []byte) error {
	dec := json.NewDecoder(bytes.NewReader(content))
	return checkValue(dec, "", wanted())
}

// wanted lists the keys of each object, by the path to it.
func wanted() map[string][]string {
	empty, _ := json.Marshal(fileJSON{Interfaces: []recordJSON{{}}}) // of a fixed shape: cannot fail
	keys := map[string][]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			keys[path] = slices.Sorted(maps.Keys(v))
			for k, below := range v {
				walk(path+"."+k, below)
			}
		case []any:
			for _, below := range v {
				walk(path, below)
			}
		}
	}
	var v any
	_ = json.Unmarshal(empty, &v)
	walk("", v)
	return keys
}

// checkValue reads one value.
func checkValue(dec *json.Decoder, path string, want map[string][]string) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return checkObject(dec, path, want)
	case json.Delim('['):
		for dec.More() {
			if err := checkValue(dec, path, want); err != nil {
				return err
			}
		}
		_, err = dec.Token()
	case nil:
		err = fmt.Errorf("%s is null", path[min(1, len(path)):])
	}
	return err
}

func checkObject(dec *json.Decoder, path string, want map[string][]string) error {
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // in an object it is
		if seen[key] {
			return fmt.Errorf("%s stands twice", (path + "." + key)[1:])
		}
		seen[key] = true
		if err := checkValue(dec, path+"."+key, want); err != nil {
			return err
		}
	}
	for _, key := range want[path] {
		if !seen[key] {
			return fmt.Errorf("%s is missing", (path + "." + key)[1:])
		}
	}
	_, err := dec.Token()
	return err
}
