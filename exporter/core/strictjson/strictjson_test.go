package strictjson_test

import (
	"net/netip"
	"testing"

	"oneway.example/exporter/core/strictjson"
)

func TestErrorsAreInTermsOfJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"count":1}`:                   "",
		`{"count":"1"}`:                 "count: got a string, want a whole number from -128 to 127",
		`{"count":1.5}`:                 "count: got the number 1.5, want a whole number from -128 to 127",
		`{"size":18446744073709551616}`: "size: got the number 18446744073709551616, want a whole number, not negative",
		`{"port":-1}`:                   "port: got the number -1, want a whole number from 0 to 65535",
		`{"rate":true}`:                 "rate: got true or false, want a number",
		`{"rate":1e999}`:                "rate: got the number 1e999, want a number",
		`{"name":5}`:                    "name: got a number, want a string",
		`{"parts":{}}`:                  "parts: got an object, want an array",
		`{"key":5}`:                     "key: got a number, want a string (base64)",
		`{"on":"yes"}`:                  "on: got a string, want true or false",
		`{"inner":[]}`:                  "inner: got an array, want an object",
		`{"inner":{"port":"x"}}`:        "inner.port: got a string, want a whole number from 0 to 65535",
		`{"labels":[]}`:                 "labels: got an array, want an object",
		`{"peer":5}`:                    "peer: got a number, want a string",
		`"x"`:                           "got a string, want an object",
		`{"other":1}`:                   `json: unknown field "other"`,
		`{"count":1}{}`:                 "more than one JSON value",
		`{"count":1} x`:                 "more than one JSON value",
		``:                              "EOF",
		`{"key":"%"}`:                   "illegal base64 data at input byte 0",
	} {
		type inner struct {
			Port uint16 `json:"port"`
		}
		var into struct {
			Count  int8              `json:"count"`
			Size   uint64            `json:"size"`
			Port   uint16            `json:"port"`
			Rate   float64           `json:"rate"`
			Name   string            `json:"name"`
			Parts  []string          `json:"parts"`
			Key    []byte            `json:"key"`
			On     bool              `json:"on"`
			Inner  *inner            `json:"inner"`
			Labels map[string]string `json:"labels"`
			Peer   netip.Addr        `json:"peer"`
		}
		err := strictjson.Decode([]byte(text), &into)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}
