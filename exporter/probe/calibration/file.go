package calibration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"oneway.example/exporter/core/strictjson"
)

// version is the version of the file format; it changes if old readers would misread a file.
const version = 1

// fileJSON is a calibration file. All keys are required, and others are rejected: a missing number would be read as an
// error of zero.
type fileJSON struct {
	Version    int      `json:"version"`
	Interfaces []Record `json:"interfaces"`
}

func format(records []Record) ([]byte, error) {
	b, err := json.MarshalIndent(fileJSON{version, append([]Record{}, records...)}, "", "  ")
	return append(b, '\n'), err
}

// parse parses the content of a file strictly. It returns the records sorted by interface.
func parse(content []byte) ([]Record, error) {
	// The version is checked first, so that a newer file is reported as such and not by unknown keys. This also
	// detects data after the end of the table.
	var v struct {
		Version *int `json:"version"`
	}
	err := json.Unmarshal(content, &v)
	switch {
	case err != nil:
		return nil, fmt.Errorf("not a calibration file: %w", strictjson.Explain(err))
	case v.Version == nil:
		return nil, errors.New("not a calibration file: it has no version")
	case *v.Version != version:
		return nil, fmt.Errorf("version is %d; this program supports %d: calibrate again", *v.Version, version)
	}
	file := fileJSON{Interfaces: []Record{}}
	if err := strictjson.Decode(content, &file); err != nil {
		return nil, err
	}
	if err := checkKeys(content, file); err != nil {
		return nil, err
	}
	t := Table{}
	for _, r := range file.Interfaces {
		if _, twice := t.find(r.Interface); twice {
			return nil, fmt.Errorf("interface %q is given twice", r.Interface)
		}
		if err := t.put(r); err != nil {
			return nil, err
		}
	}
	return t.records, nil
}

// checkKeys rejects keys that are missing, null or duplicate, which package json reads as zero or as the later one. file is
// the decoded content.
func checkKeys(content []byte, file any) error {
	whole, err := json.Marshal(file)
	found, want := map[string]bool{}, map[string]bool{}
	if err := errors.Join(err, collectKeys(json.NewDecoder(bytes.NewReader(whole)), "", want)); err != nil {
		return err
	}
	if err := collectKeys(json.NewDecoder(bytes.NewReader(content)), "", found); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !found[key] {
			return fmt.Errorf("%s is missing", keyName(key))
		}
	}
	return nil
}

// collectKeys reads one value, and adds the path of each key in it to found, such as ".interfaces[0].host".
func collectKeys(dec *json.Decoder, path string, found map[string]bool) error {
	open, err := dec.Token()
	if err != nil {
		return err
	}
	if open == nil {
		return fmt.Errorf("%s is null", keyName(path))
	}
	if open != json.Delim('{') && open != json.Delim('[') {
		return nil
	}
	for i := 0; dec.More(); i++ {
		below := fmt.Sprintf("%s[%d]", path, i)
		if open == json.Delim('{') {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			below = fmt.Sprintf("%s.%s", path, key)
			if found[below] {
				return fmt.Errorf("%s is given twice", keyName(below))
			}
			found[below] = true
		}
		if err := collectKeys(dec, below, found); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// indices matches the indices of a path and its first dot.
var indices = regexp.MustCompile(`^\.|\[\d+\]`)

// keyName is the path for messages: without the first dot and the indices.
func keyName(path string) string { return indices.ReplaceAllString(path, "") }
