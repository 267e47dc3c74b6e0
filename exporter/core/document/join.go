package document

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Join returns one JSON object with the fields of several values, in their order. Each value must be a JSON object, or null.
func Join(values ...any) ([]byte, error) {
	all := []byte{'{'}
	for _, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if string(text) == "null" {
			continue
		}
		inner, isObject := bytes.CutPrefix(text, []byte("{"))
		if !isObject {
			return nil, fmt.Errorf("document: join %T: it must be a JSON object", v)
		}
		inner = bytes.TrimSuffix(inner, []byte("}"))
		if len(inner) > 0 && len(all) > 1 {
			all = append(all, ',')
		}
		all = append(all, inner...)
	}
	return append(all, '}'), nil
}
