package config

import (
	"strings"
	"testing"
)

// pathWith is a file with lines from line 4 on, in a path.
func pathWith(lines string) string { return "paths:\n  - name: a\n    peer: b\n" + lines }

// slips are mistakes of layout and syntax, with the place and a part of the message.
var slips = []struct{ name, file, want string }{
	{"key between two levels", "paths:\n  - name: a\n   peer: b\n    probes:\n      - type: stamp\n", ":3:4: peer is indented by 3 spaces, name in line 2 by 4 spaces"},
	{"key deeper than its sibling", "paths:\n  - name: a\n     peer: b\n    probes:\n      - type: stamp\n", ":3:6: peer is indented by 5 spaces, more than name in line 2, which has a value; indent it by 4"},
	{"key below the dash", "paths:\n  - name: a\n  peer: b\n  probes:\n      - type: stamp\n", ":3:3: peer is in the column of the dash in line 2; indent it by 4 spaces"},
	{"option deeper than its sibling", pathWith("    probes:\n    - type: stamp\n       interval: 1s\n"), ":6:8: interval is indented by 7 spaces, more than type in line 5"},
	{"option below the dash", pathWith("    probes:\n      - type: stamp\n      interval: 1s\n"), ":6:7: interval is in the column of the dash in line 5; indent it by 8 spaces"},
	{"option between two levels", pathWith("    probes:\n      - type: stamp\n        interval: 1s\n       dscp: 46\n"), ":7:8: dscp is indented by 7 spaces, type in line 5 by 8 spaces"},
	{"dash between two levels", pathWith("    probes:\n      - type: stamp\n     - type: stamp\n"), ":6:6: the dash is indented by 5 spaces, the dash in line 5 by 6 spaces"},
	{"second path less indented", "paths:\n    - name: a\n      peer: b\n  - name: c\n    peer: d\n", ":4:3: the dash is indented by 2 spaces, the dash in line 2 by 4 spaces"},
	{"first key of the file is indented", " clock:\n  source: chrony\npaths: []\n", ":1:1: clock is indented by 1 space, and paths in line 3 by 0 spaces; keys of the file itself begin in the first column"},
	{"comment between key and value", "clock:\n  source: chrony\n  # every second\n    interval: 1s\npaths: []\n", ":4:5: interval is indented by 4 spaces, more than source in line 2"},
	{"less than the siblings", "clock:\n  source: static\n bound: 1ms\npaths: []\n", ":3:2: bound is indented by 1 space, source in line 2 by 2 spaces"},
	{"Latin-1", "paths:\n  - name: a\n    peer: b # B\xfcro\n", ":3:16: the byte 0xfc is not UTF-8; the file may be in Latin-1: save it as UTF-8"},
	{"Latin-1 after UTF-8", "# Büro\npaths: []\n# Bü, B\xfcro\n", ":3:8: the byte 0xfc is not UTF-8"},
	{"character cut off", "paths: []\n# \xc3", ":2:3: the byte 0xc3 is not UTF-8"},
	{"control character", "paths: []\r\n#\ta\x01b\n", ":2:4: the control character 0x01 is not allowed; remove it"},
	{"tab", "paths:\n  - name: a\n\tpeer: b\n    probes:\n      - type: stamp\n", ":3:1: the indentation has a tab; indent with spaces"},
	{"tab after spaces", pathWith("    probes:\n  \t  - type: stamp\n"), ":5:3: the indentation has a tab"},
	{"no space after the colon", "paths:\n  - name: a\n    peer:b\n    probes:\n      - type: stamp\n", `:3:5: a space is missing after the colon; write "peer: b"`},
	{"no space after the colon of an item", pathWith("    probes:\n      - type:stamp\n        interval: 1s\n"), `:5:9: a space is missing after the colon; write "type: stamp"`},
	{"no space after the dash", "paths:\n  -name: a\n    peer: b\n", `:2:3: a space is missing after the dash; write "- name: a"`},
	{"no colon", "paths:\n  - name: a\n    peer b\n    probes: []\n", `:3:5: a colon is missing after the key; write "peer: b"`},
	{"no colon after a section", "paths\n  - name: a\n", `:1:1: a colon is missing after the key; write "paths:"`},
	{"equals sign", "state_dir = /var/lib\npaths: []\n", `:1:1: a colon is missing after the key; write "state_dir: /var/lib"`},
	{"two colons", "paths:\n  - name: a\n    peer: b: c\n", `:3:12: the value has a further colon; put it into quotes: "b: c"`},
	{"colon at the end", "paths:\n  - name: a\n    peer: 192.0.2.1:\n    probes: []\n", `:3:20: the value has a further colon; put it into quotes: "192.0.2.1:"`},
	{"double quote", "paths:\n  - name: a\n    peer: \"b\n    probes:\n      - type: stamp\n", `:3:11: the quote " is not closed`},
	{"single quote, closed by another one", "paths:\n  - name: a\n    peer: 'b\n    probes:\n      - type: stamp\n  - name: 'c'\n    peer: d\n", ":3:11: the quote ' is not closed"},
	{"text after a quote", "paths:\n  - name: \"a\" b\n", `:2:15: after the closing " comes "b"; put the whole value into quotes`},
	{"list", "reflector:\n  listen: [\":862\"\n  stateless: true\npaths: []\n", ":2:11: the bracket '[' is not closed"},
	{"probe in braces", pathWith("    probes:\n      - {type: stamp, interval: 1s\n      - {type: stamp, name: x}\n  - name: c\n    peer: d\n"), ":5:9: the bracket '{' is not closed"},
	{"list of mappings", "links: [{name: a, quota_bytes: 5MB}\npaths: []\n", ":1:8: the bracket '[' is not closed"},
	{"brackets crossed", "links: [{name: a, quota_bytes: 5MB]\npaths: []\n", ":1:9: the bracket '{' is not closed; write '}' at its end"},
	{"address in brackets", "paths:\n  - name: a\n    peer: [2001:db8::1]:862\n    probes: []\n", `:3:24: after the closing ] comes ":862"; put the whole value into quotes`},
	{"at sign", "paths:\n  - name: @a\n", ":2:11: a value may not begin with @; put it into quotes: \"@a\""},
	{"percent sign", "paths:\n  - name: a\n    peer: %b\n", ":3:11: a value may not begin with %"},
	{"unknown alias", "paths:\n  - name: a\n    peer: b\n    probes: *standard\n", ":4:13: the anchor &standard of the alias *standard is missing before it"},
	{"carriage returns", "paths:\r\n  - name: a\r\n   peer: b\r\n", ":3:4: peer is indented by 3 spaces"},
}

func TestMistakesOfLayoutNameTheLineWhereTheyBegin(t *testing.T) {
	for _, s := range slips {
		_, err := Parse("x.yml", []byte(s.file))
		if err == nil || !strings.HasPrefix(err.Error(), "x.yml"+s.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v, want x.yml%s\n%s", s.name, err, s.want, s.file)
		}
	}
}

func TestMistakesOfLayoutShowNoSecret(t *testing.T) {
	for _, text := range []string{
		"password: hunter2: x\n", "a:\n  password:hunter2\n  b: c\n", "password hunter2\na: b\n", "a: 1\ntoken \"b\" hunter2\nb: c\n", "key: \"b\" hunter2\n", "secret: @hunter2\n", "token: [a] hunter2\n",
		"- password:hunter2\n  a: b\n", "-password: hunter2\n a: b\n",
	} {
		if _, found := parse("x.yml", []byte(text)); found == nil || strings.Contains(found.Text, "hunter2") || !strings.Contains(found.Text, "...") {
			t.Errorf("%q: %+v", text, found)
		}
	}
	if _, found := parse("x.yml", []byte("name: a: b\n")); found == nil || !strings.Contains(found.Text, `"a: b"`) {
		t.Errorf("%+v", found)
	}
}
