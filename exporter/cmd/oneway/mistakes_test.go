package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/probes"
)

// probeTypes is the list of all types in a message.
func probeTypes() string {
	var names []string
	for _, one := range probes.All() {
		names = append(names, one.Name())
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// beside are files beside a wrong configuration.
func beside(t *testing.T, dir string) {
	t.Helper()
	for name, content := range map[string]string{"token": "secret\n", "open": "secret\n", "empty": "", "text": "no PEM\n", "tokens": "", "line": "berlin sha256:00\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "open"), 0o644); err != nil {
		t.Fatal(err)
	}
	writeCertificate(t, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	writeCertificate(t, filepath.Join(dir, "other.pem"), filepath.Join(dir, "other-key.pem"))
}

// trainWith is a file with a load test of these options, begun by what goes before its paths.
func trainWith(options, before string) string {
	return before + "paths:\n  - name: a\n    peer: 192.0.2.1\n    probes:\n      - {type: train, " + options + "}\n"
}

func fileOf(address string) string {
	return "paths:\n  - name: a\n    peer: " + address + "\n    probes: [{type: stamp}]\n"
}

func influxdb(options string) string {
	return "paths: []\nreflector: {}\noutputs: [{type: influxdb, url: \"https://127.0.0.1:8086\", org: o, bucket: b, " + options + "}]\n"
}

// mistakes are those that people make, and what check-config says: DIR is the directory, and the file's name is left out.
var mistakes = []struct{ name, yaml, want string }{
	{"link of a probe", trainWith("link: uplnk, token_file: token", "links: [{name: uplink}]\n"), `:6:29: paths[0].probes[0].link is "uplnk", which is not in links; did you mean "uplink"?`},
	{"link of the load server", "links: [{name: uplink}]\nstate_dir: .\nload_server: {link: uplnk, tokens_file: tokens}\n", `:3:21: load_server.link is "uplnk", which is not in links; did you mean "uplink"?`},
	{"link of a path", "links: [{name: uplink}]\npaths:\n  - {name: a, peer: h, link: [uplink, dsl], probes: [{type: stamp}]}\n", `:3:39: paths[0].link[1] is "dsl", which is not in links; add it there, or use one of uplink`},
	{"link of defaults", "links: [{name: uplink}]\ndefaults: {train: {link: uplnk, token_file: token}}\n" + trainWith("every: 1h", ""), `:2:26: defaults.train.link is "uplnk", which is not in links; did you mean "uplink"?`},
	{"no name of a token file", trainWith(`token_file: ""`, ""), `:5:35: paths[0].probes[0].token_file is missing; "oneway token new" on the load server's host makes one for this host`},
	{"window", trainWith("token_file: token, windows: [tonight, mon 25:00]", ""), `:5:52: paths[0].probes[0].windows[0] is "tonight"; it must be a time of the day, such as "22:00-06:00", with days, such as "mon-fri 09:00-17:00", or days alone, such as "sat,sun"
:5:61: paths[0].probes[0].windows[1] is "mon 25:00"; it must be a time of the day, such as "22:00-06:00", with days, such as "mon-fri 09:00-17:00", or days alone, such as "sat,sun"`},
	{"no token", trainWith("every: 1h", ""), `:5:9: paths[0].probes[0].token_file is missing; "oneway token new" on the load server's host makes one for this host`},
	{"token file absent", trainWith("token_file: tokn", ""), `:5:35: paths[0].probes[0].token_file is "tokn"; DIR/tokn does not exist (relative names begin at the directory of oneway.yml)`},
	{"token file empty", trainWith("token_file: empty", ""), `:5:35: paths[0].probes[0].token_file cannot be used: DIR/empty holds no token; "oneway token new" makes one`},
	{"token file is the load server's", trainWith("token_file: line", ""), `:5:35: paths[0].probes[0].token_file cannot be used: DIR/line: byte 6 of the token is a space or not printable ASCII; "oneway token new" makes one`},
	{"token file of all", trainWith("token_file: open", ""), `:5:35: paths[0].probes[0].token_file cannot be used: DIR/open has mode 0644: all users can access the secret in it; the mode's last digit must be 0: chmod 600, or 640 for a group`},
	{"token file is a directory", trainWith("token_file: .", ""), `:5:35: paths[0].probes[0].token_file cannot be used: DIR is a directory; it must be a file`},
	{"short pin", trainWith("token_file: token, pin: sha256:12", ""), `:5:47: paths[0].probes[0].pin is "sha256:12"; it must be "sha256:" and 64 hex digits, as the load server logs it; it has 2 digits`},
	{"pin of another hash", trainWith("token_file: token, pin: sha1:12", ""), `:5:47: paths[0].probes[0].pin is "sha1:12"; it must be "sha256:" and 64 hex digits, as the load server logs it; it does not begin with "sha256:"`},
	{"pin of other digits", trainWith("token_file: token, pin: sha256:xy", ""), `:5:47: paths[0].probes[0].pin is "sha256:xy"; it must be "sha256:" and 64 hex digits, as the load server logs it; "x" is no hex digit`},
	{"authority without PEM", trainWith("token_file: token, ca_file: text", ""), `:5:51: paths[0].probes[0].ca_file cannot be used: DIR/text: no certificate in PEM in it; such a file begins with -----BEGIN CERTIFICATE-----`},
	{"key of another certificate", trainWith("cert_file: cert.pem, key_file: other-key.pem", ""), `:5:34: paths[0].probes[0].cert_file cannot be used with key_file: DIR/cert.pem and DIR/other-key.pem: private key does not match public key`},
	{"key of another certificate, load server", "load_server: {tokens_file: tokens, cert_file: cert.pem, key_file: other-key.pem}\n", `:1:47: load_server.cert_file cannot be used: certificate: DIR/cert.pem and DIR/other-key.pem: private key does not match public key`},
	{"no brackets", fileOf(`"2001:db8::7:18620"`), `:3:11: paths[0].peer is "2001:db8::7:18620"; an IPv6 address with a port needs brackets; write "[2001:db8::7]:18620"`},
	{"no brackets, load server", trainWith(`token_file: token, load_server: "2001:db8::7:18620"`, ""), `:5:55: paths[0].probes[0].load_server is "2001:db8::7:18620"; an IPv6 address with a port needs brackets; write "[2001:db8::7]:18620"`},
	{"no brackets, reflector", "reflector: {listen: [\"2001:db8::7:862\"]}\n", `:1:22: reflector.listen[0] is "2001:db8::7:862"; an IPv6 address with a port needs brackets; write "[2001:db8::7]:862"`},
	{"port", fileOf("192.0.2.1:99999"), `:3:11: paths[0].peer is "192.0.2.1:99999"; its port must be between 1 and 65535`},
	{"URL", fileOf("http://r.example.net:862"), `:3:11: paths[0].peer is "http://r.example.net:862"; it must be a host with an optional port, and no URL; write "r.example.net:862"`},
	{"space", fileOf(`"r.example .net"`), `:3:11: paths[0].peer is "r.example .net"; it has a space in it; remove the space`},
	{"number of an address", fileOf("192.0.2.300"), `:3:11: paths[0].peer is "192.0.2.300"; it must have four numbers from 0 to 255 as an IPv4 address, such as 192.0.2.1`},
	{"port alone", "reflector: {listen: [862]}\n", `:1:22: reflector.listen[0] is 862; write ":862" for all addresses of this host, or an address and a port, such as "192.0.2.1:862"`},
	{"key file absent", "reflector: {key_file: keys/r.key}\n", `:1:23: reflector.key_file is "keys/r.key"; DIR/keys/r.key does not exist (relative names begin at the directory of oneway.yml)`},
	{"quota without a unit", "paths: []\nreflector: {}\nlinks: [{name: uplink, quota_bytes: 12M}]\n", `:3:37: links[0].quota_bytes is "12M"; write 12MB for bytes, or 1500kB if 12 Mbit are meant`},
	{"rate without a unit", "paths: [{name: a, peer: h, probes: [{type: saturation, token_file: token, rate: {forward: 12M, reverse: 12Mbit}}]}]\n", `:1:91: paths[0].probes[0].rate.forward is "12M"; write 12Mbit for bits a second, or 96Mbit if 12 MB (bytes) a second are meant`},
	{"rates of both directions", "paths: [{name: a, peer: h, probes: [{type: saturation, token_file: token}]}]\n", `:1:37: paths[0].probes[0].rate.forward is missing; write a rate above the link's, such as 5Mbit
:1:37: paths[0].probes[0].rate.reverse is missing; write a rate above the link's, such as 5Mbit`},
	{"light packets beside trains", trainWith("token_file: token, working_delay_interval: 100ms", ""), `:5:66: paths[0].probes[0].working_delay_interval has no effect on probes of type train; remove it`},
	{"others beside what is no list", "paths: [{name: a, peer: h, probes: [{type: tcp, congestion_control: 5, load_server: \"x:y\", token_file: tokn, pin: sha256:xy, cert_file: cert.pem}]}]\n", `:1:37: paths[0].probes[0].key_file is missing; it has the private key of cert_file
:1:69: paths[0].probes[0].congestion_control is 5; it must be a list, such as [cubic]
:1:85: paths[0].probes[0].load_server is "x:y"; its port must be between 1 and 65535
:1:104: paths[0].probes[0].token_file is "tokn"; DIR/tokn does not exist (relative names begin at the directory of oneway.yml)
:1:115: paths[0].probes[0].pin is "sha256:xy"; it must be "sha256:" and 64 hex digits, as the load server logs it; "x" is no hex digit`},
	{"one of several that is no number", "load_server: {max_connections: many, tokens_file: tokens}\nstate_dir: .\n", `:1:32: load_server.max_connections is "many"; it must be a whole number, 1 to 16384`},
	{"word for a section", "clock: chrony\nreflector: true\nlinks: uplink\n", `:1:8: clock is "chrony"; it must be a mapping, such as {source: chrony}
:2:12: reflector is true; it must be a mapping, such as {listen: [":862"]}
:3:8: links is "uplink"; it must be a list, such as [{name: uplink}]`},
	{"word for a list or a group", "reflector: {listen: 862}\npaths: [{name: a, peer: h, probes: [{type: saturation, token_file: token, directions: forward, rate: 5Mbit, dscp: EF}]}]\n", `:1:21: reflector.listen is 862; it must be a list, such as [":862"]
:2:87: paths[0].probes[0].directions is "forward"; it must be a list, such as [forward, reverse]
:2:102: paths[0].probes[0].rate is "5Mbit"; it must be a mapping, such as {forward: 5Mbit, reverse: 12Mbit}
:2:115: paths[0].probes[0].dscp is "EF"; write 46, the number of this code point`},
	{"names that are none", "clock: {source: ntp}\npaths: [{name: a, peer: h, probes: [{type: nope}, {type: stamp, codecs: [G711], voice_models: [mos]}]}]\n", `:1:17: clock.source is "ntp"; it must be chrony, static or none
:2:44: paths[0].probes[0].type is "nope"; it must be ` + probeTypes() + `
:2:74: paths[0].probes[1].codecs[0] is "G711"; it must be G.711, G.711-PLC, G.729, G.729A-VAD, G.723.1 or GSM-EFR
:2:96: paths[0].probes[1].voice_models[0] is "mos"; it must be g107 or simplified`},
	{"overlap of the whole duration", "paths: [{name: a, peer: h, probes: [{type: tcp, token_file: token, overlap_duration: 10s, overlap_start: 1s}]}]\n", `:1:106: paths[0].probes[0].overlap_start is 1s; with an overlap_duration of 10s in a duration of 10s it must be at most 0s`},
	{"type", "paths: [{name: a, peer: h, probes: [{type: stmp}]}]\n", `:1:44: paths[0].probes[0].type is "stmp"; did you mean "stamp"?`},
	{"output's token of all", influxdb("token_file: open"), `:3:90: outputs[0].token_file cannot be used: DIR/open has mode 0644: all users can access the secret in it; the mode's last digit must be 0: chmod 600, or 640 for a group`},
	{"output's password absent", influxdb("username: u, password_file: pw"), `:3:106: outputs[0].password_file is "pw"; DIR/pw does not exist (relative names begin at the directory of oneway.yml)`},
	{"calibration absent", "paths: []\nreflector: {}\ncalibration_file: c.json\n", `:3:19: calibration_file is "c.json"; DIR/c.json does not exist (relative names begin at the directory of oneway.yml)`},
	{"all kinds", "clock: {bound: 5}\nreflector: {listn: [\":862\"]}\nlinks: [{name: uplink, quota_bytes: 12M}]\npaths:\n  - name: a\n    peer: 192.0.2.1:99999\n    probes: [{type: stmp}, {type: stamp, interval: 20, dscp: 99}]\n  - name: a\n", `:1:16: clock.bound is 5; it must be a duration with a unit, such as 20ms, 10s or 1h30m
:2:13: reflector.listn is unknown; did you mean "listen"?
:3:37: links[0].quota_bytes is "12M"; write 12MB for bytes, or 1500kB if 12 Mbit are meant
:6:11: paths[0].peer is "192.0.2.1:99999"; its port must be between 1 and 65535
:7:21: paths[0].probes[0].type is "stmp"; did you mean "stamp"?
:7:52: paths[0].probes[1].interval is 20; it must be a duration with a unit, such as 20ms, 10s or 1h30m
:7:62: paths[0].probes[1].dscp is 99; it must be between 0 and 63
:8:5: paths[1].peer is missing; it must be a host, such as reflector.example.net or 192.0.2.1:862
:8:5: paths[1].probes is missing; a path needs at least one, such as {type: stamp}
:8:11: paths[1].name is "a", which is also the name of paths[0] in line 5; names must differ`},
}

func TestMistakesOfNewcomersHavePlaceAndRemedy(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			file := write(t, m.yaml)
			dir := filepath.Dir(file)
			beside(t, dir)
			var out, problems bytes.Buffer
			if err := checkConfigs(&out, &problems, []string{file}, "", false); err == nil {
				t.Fatalf("accepted: %s%s\n%s", &out, &problems, m.yaml)
			}
			got := strings.ReplaceAll(strings.ReplaceAll(problems.String(), file+":", ":"), dir, "DIR")
			if want := m.want + "\n"; got != want {
				t.Errorf("%s\ngot\n%swant\n%s", m.yaml, got, want)
			}
		})
	}
}

func TestMistakesInArgumentsNameTheFlag(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	beside(t, dir)
	if err := os.WriteFile("stamp_key", []byte("k"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("tokens_new", []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		// Files that are named as options are.
		"probe 127.0.0.1:1 --key-file=stamp_key":                                              "--key-file cannot be used: keyfile: stamp_key has mode 0644",
		"reflect --key-file=stamp_key":                                                        "--key-file cannot be used: keyfile: stamp_key has mode 0644",
		"load-server --state-dir=. --tokens-file=tokens_new":                                  "--tokens-file cannot be used: tokens_new: line 1: ",
		"test train h --no-agent --token-file=stamp_key":                                      "--token-file cannot be used: keyfile: stamp_key has mode 0644",
		"probe 2001:db8::7:18620":                                                             `HOST is "2001:db8::7:18620"; an IPv6 address with a port needs brackets; write "[2001:db8::7]:18620"`,
		"probe [2001:db8::7]:862 --port=5":                                                    `HOST is "[2001:db8::7]:862", which has the port 862; --port is for a host without one`,
		"probe h:862 --port=5":                                                                `HOST is "h:862", which has the port 862; --port is for a host without one`,
		"reflect --listen=:99999":                                                             `--listen is ":99999"; its port must be between 0 and 65535`,
		"calibrate --peer=2001:db8::7:18620":                                                  `--peer is "2001:db8::7:18620"; an IPv6 address with a port needs brackets; write "[2001:db8::7]:18620"`,
		"test train h --no-agent --token-file=tokn":                                           "--token-file cannot be used: keyfile: open " + dir + `/tokn: no such file or directory ("tokn" is relative to the working directory)`,
		"test train h --no-agent":                                                             `--token-file is missing; "oneway token new" on the load server's host makes one for this host`,
		"test train h --no-agent --cert-file=cert.pem":                                        "--key-file is missing; it has the private key of --cert-file",
		"test train h --no-agent --token-file=token --cert-file=cert.pem":                     "--key-file is missing; it has the private key of --cert-file",
		"test train h --no-agent --token-file=empty --pin=sha256:12":                          "--token-file cannot be used: empty holds no token; \"oneway token new\" makes one\noneway: --pin is \"sha256:12\"",
		"test tcp h --no-agent --token-file=token --overlap-duration=10s --overlap-start=1s":  "--overlap-start is 1s; with an --overlap-duration of 10s",
		"test saturation h --no-agent --token-file=token --rate-forward=12M":                  `--rate-forward is "12M"; write 12Mbit for bits a second, or 96Mbit`,
		"test saturation h --no-agent --token-file=token":                                     "--rate-forward is missing; write a rate above the link's, such as 5Mbit",
		"reflect --max-sessions=0":                                                            "--max-sessions is 0; it must be between 2 and 4194304",
		"reflect --max-sessions=1":                                                            "--max-sessions is 1; it must be between 2 and 4194304",
		"reflect --listen=127.0.0.1:0 --session-expiry=0s":                                    "--session-expiry is 0s; it must be between 1s and 24h0m0s",
		"reflect --rate-limit=0":                                                              "--rate-limit is 0; it must be between 1 and 10000000, or -1",
		"load-server --state-dir=. --tokens-file=tokens --max-connections=0":                  "--max-connections is 0; it must be between 1 and 16384",
		"load-server --state-dir=. --tokens-file=absent --max-connections=3":                  "--tokens-file ",
		"load-server --state-dir=. --tokens-file=tokens --max-sessions=0":                     "--max-sessions is 0; it must be between 1 and 256",
		"load-server --state-dir=. --tokens-file=tokens --max-connections=3 --max-sessions=4": "--max-sessions is 4; it must be between 1 and 3",
		"report --path=a --prometheus.url=192.0.2.1:9090":                                     `--prometheus.url is "192.0.2.1:9090"; it must begin with http://`,
		"report --path=a --prometheus.url=localhost:9090":                                     `--prometheus.url is "localhost:9090"; it must begin with http://`,
		"token new --name=a --rate=20M":                                                       `--rate is "20M"; write 20Mbit for bits a second, or 160Mbit`,
		"token new --name=a --per-day=10":                                                     `--per-day is "10"; it has no unit; write 10B, 10kB or 10MB`,
		"token new --name=a --per-day=10G":                                                    `--per-day is "10G"; write 10GB for bytes`,
		"test tcp h --no-agent --token-file=token --max-bytes=12M":                            `--max-bytes is "12M"; write 12MB for bytes, or 1500kB`,
	} {
		app := application().Terminate(nil)
		_, err := app.Parse(strings.Fields(args))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("oneway %s\ngot %v\nwant %s", args, err, want)
		}
	}
}

func TestUnknownTimeZoneIsAWarning(t *testing.T) {
	file := write(t, "reflector: {}\n")
	for zone, want := range map[string]string{"CET-1CEST,M3.5.0,M10.5.0/3": "warning: " + file + ": the time zone TZ=CET-1CEST,M3.5.0,M10.5.0/3 is unknown, and UTC is used", "UTC": ""} {
		t.Setenv("TZ", zone)
		var out, problems bytes.Buffer
		if err := checkConfigs(&out, &problems, []string{file}, "", false); err != nil || !strings.HasPrefix(problems.String(), want) || want == "" && problems.Len() > 0 {
			t.Errorf("%s: %v: %s; want %q", zone, err, &problems, want)
		}
	}
}

// The bytes of a run follow from the options of each type; a sweep that can adapt needs the least of its runs only.
func TestLoadTestsThatTheirQuotaNeverAllowsAreErrors(t *testing.T) {
	for _, c := range []struct{ quota, probe, want string }{
		{"500MB", "{type: tcp, token_file: token}", "needs 4 GB for a run, and the quota of link up is 500 MB a day: every run would be skipped; raise quota_bytes, or lower the bytes of a run: its max_bytes, or"},
		{"4GB", "{type: tcp, token_file: token}", ""},
		{"3999MB", "{type: tcp, token_file: token}", "needs 4 GB"},
		{"3GB", "{type: tcp, token_file: token, directions: [forward]}", ""},
		{"500MB", "{type: tcp, token_file: token, max_bytes: 100MB}", ""},
		{"10MB", "{type: saturation, token_file: token, rate: {forward: 20Mbit, reverse: 20Mbit}}", "for a run, and the quota of link up is 10 MB a day"},
		{"1MB", "{type: train, token_file: token}", "for a run, and the quota of link up is 1 MB a day"},
		{"100MB", "{type: tcp_sweep, token_file: token}", "for a run, and the quota of link up is 100 MB a day"},
	} {
		file := write(t, "links: [{name: up, quota_bytes: "+c.quota+"}]\npaths:\n  - name: a\n    peer: h\n    link: up\n    probes:\n      - "+c.probe+"\n")
		beside(t, filepath.Dir(file))
		var out, problems bytes.Buffer
		err := checkConfigs(&out, &problems, []string{file}, "", false)
		text := problems.String()
		if (err != nil) != (c.want != "") || !strings.Contains(text, c.want) || c.want != "" && !strings.Contains(text, file+":7:9: paths[0].probes[0] needs ") {
			t.Errorf("%s with %s: %v, %s; want %q", c.probe, c.quota, err, text, c.want)
		}
	}
}

func TestQuotasThatEndBeforeTheDayAreAWarning(t *testing.T) {
	for _, c := range []struct{ quota, probes, want string }{
		{"30GB", "[{type: tcp, token_file: token}]", "plans, with all tests of its link, 48 runs of up to 192 GB a day in all (a/tcp), and the quota of link up is 30 GB a day: it allows 7 of 48 runs of that size, the rest is skipped; raise quota_bytes or every, or lower the bytes of a run: its max_bytes, or"},
		{"192GB", "[{type: tcp, token_file: token}]", ""},
		{"191GB", "[{type: tcp, token_file: token}]", "it allows 47 of 48 runs"},
		{"30GB", "[{type: tcp, token_file: token, every: 4h}]", ""},
		{"30GB", `[{type: tcp, token_file: token, windows: ["22:00-01:00"]}]`, ""},
		{"20GB", `[{type: tcp, token_file: token, windows: ["22:00-01:00"]}]`, "it allows 5 of 6 runs"},
		{"30GB", "[{type: tcp, token_file: token, every: 6h}, {type: tcp, name: b, token_file: token, every: 4h}]", "10 runs of up to 40 GB a day in all (a/tcp, a/b), and the quota of link up is 30 GB a day: it allows 7 of 10 runs"},
	} {
		file := write(t, "links: [{name: up, quota_bytes: "+c.quota+"}]\npaths:\n  - name: a\n    peer: h\n    link: up\n    probes: "+c.probes+"\n")
		beside(t, filepath.Dir(file))
		var out, problems bytes.Buffer
		if err := checkConfigs(&out, &problems, []string{file}, "", false); err != nil || !strings.Contains(problems.String(), c.want) || c.want == "" && strings.Contains(problems.String(), "runs of that size") {
			t.Errorf("%s of %s: %v, %s; want %q", c.probes, c.quota, err, &problems, c.want)
		}
	}
}

func TestLoadTestsThatKeepAlertsSilentAreAWarning(t *testing.T) {
	const silent = "keeps the alerts of loss, delay and voice of path a silent for "
	for _, c := range []struct {
		probes string
		want   bool
	}{
		{"[{type: tcp, token_file: token, every: 3m, duration: 10s}]", true},
		{"[{type: tcp, token_file: token, every: 7m, duration: 10s}]", true},
		{"[{type: tcp, token_file: token, every: 9m, duration: 10s}]", false},
		{"[{type: tcp, name: b, token_file: token, every: 30m}, {type: tcp, token_file: token, every: 30m}]", false},
		{"[{type: tcp, name: b, token_file: token, every: 10m}, {type: tcp, token_file: token, every: 10m}]", true},
		{"[{type: tcp, name: b, token_file: token, every: 10m}, {type: tcp, token_file: token, every: 10m, link: other}]", true},
		{"[{type: tcp, token_file: token, every: 10m, duration: 2m}]", true},
	} {
		file := write(t, "links: [{name: up}, {name: other}]\npaths:\n  - name: a\n    peer: h\n    link: [up, other]\n    probes: "+c.probes+"\n")
		beside(t, filepath.Dir(file))
		var out, problems bytes.Buffer
		if err := checkConfigs(&out, &problems, []string{file}, "", false); err != nil || strings.Contains(problems.String(), silent) != c.want {
			t.Errorf("%s: %v, %s", c.probes, err, &problems)
		}
	}
}

func TestWarningsDoNotFailTheCheck(t *testing.T) {
	file := write(t, "state_dir: nowhere\nreflector: {}\non_demand: {targets: [192.0.2.0/24], modules: [{name: a, type: stamp}, {name: b, type: stamp}]}\npaths:\n  - name: a\n    peer: h\n    probes:\n"+
		"      - {type: train, name: N, token_file: token, every: 1m}\n      - {type: tcp, every: 1m, duration: 5m, token_file: token}\n")
	dir := filepath.Dir(file)
	beside(t, dir)
	var out, problems bytes.Buffer
	if err := checkConfigs(&out, &problems, []string{file}, "", false); err != nil || out.String() != file+": ok: 1 path, 2 probes, 2 on-demand modules, reflector\n" {
		t.Errorf("%v: %s", err, &out)
	}
	for _, want := range []string{
		"warning: " + file + ":1:12: state_dir is " + dir + "/nowhere, which does not exist; create it",
		"warning: " + file + ":8:9: paths[0].probes[0] fills link a (a/N, a/tcp) without a quota; limit the bytes of a day: links: [{name: a, quota_bytes: 5GB}]",
		"warning: " + file + ":8:9: paths[0].probes[0] and others need link a for ",
	} {
		if !strings.Contains(problems.String(), want) {
			t.Errorf("warnings\n%swant one with\n%s", &problems, want)
		}
	}
}

// Others could replace what the agent has written there. Files with secrets that all users can write are errors.
func TestDirectoryThatAllUsersCanWriteIsAWarning(t *testing.T) {
	file := write(t, "state_dir: state\nreports: {dir: reports}\nreflector: {}\n")
	for mode, want := range map[fs.FileMode]bool{0o755: false, 0o770: false, 0o757: true, 0o777 | fs.ModeSticky: true} {
		for key, name := range map[string]string{"state_dir": "state", "reports.dir": "reports"} {
			dir := filepath.Join(filepath.Dir(file), name)
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, mode)); err != nil {
				t.Fatal(err)
			}
			var out, problems bytes.Buffer
			err := checkConfigs(&out, &problems, []string{file}, "", false)
			words := fmt.Sprintf("%s is %s, which all users can write (mode %#o)", key, dir, mode.Perm())
			if err != nil || strings.Contains(problems.String(), words) != want {
				t.Errorf("mode %v: %v, %s", mode, err, &problems)
			}
		}
	}
}

// The agent would keep neither usage nor reports.
func TestDirectoryOfStateThatCannotBeWrittenIsAWarning(t *testing.T) {
	obeyModes(t)
	file := write(t, "state_dir: state\nreflector: {}\n")
	dir := filepath.Join(filepath.Dir(file), "state")
	for mode, want := range map[fs.FileMode]bool{0o700: false, 0o500: true, 0o600: true} {
		if err := os.Mkdir(dir, mode); err != nil {
			t.Fatal(err)
		}
		var out, problems bytes.Buffer
		err := checkConfigs(&out, &problems, []string{file}, "", false)
		words := fmt.Sprintf("state_dir is %s, which the user with ID %d cannot write (permission denied); run this check as the agent's user", dir, os.Geteuid())
		if err != nil || strings.Contains(problems.String(), words) != want {
			t.Errorf("mode %v: %v, %s", mode, err, &problems)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// A path of a mesh has its peer in the file of hosts, and no keys of its own.
func TestMessagesOfPathsOfAMeshAndOfDirectoriesNameTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"reports: {dir: token}\nreflector: {}\n": `warning: DIR/oneway.yml:1:16: reports.dir is DIR/token, which is no directory; name another one`,
		"reports: {dir: new}\nreflector: {}\n":   "",
		"clock: {pps: {device: /dev/pps99}}\n":   `warning: DIR/oneway.yml:1:23: clock.pps.device is /dev/pps99, which does not exist: is the driver loaded (pps-ldisc by gpsd or ldattach, or pps-gpio), and is this the right name?`,
		"links: [{name: a, quota_bytes: 50GB}]\npaths: [{name: a, peer: h, probes: [{type: train, token_file: token, load_server: '2001:db8::1:8620'}]}]\n": `warning: DIR/oneway.yml:2:83: paths[0].probes[0].load_server is the IPv6 address 2001:db8::1:8620 without a port; write "[2001:db8::1]:8620" if`,
		"mesh: {hosts_file: hosts.yml, self: a, probes: [{type: stamp}]}\npaths: [{name: a-to-b, peer: h, probes: [{type: stamp}]}]\n":                      `DIR/oneway.yml:1:7: mesh makes a path whose name is "a-to-b", which is also the name of paths[0] in line 2; names must differ; give the mesh another prefix`,
		"mesh: {hosts_file: hosts.yml, self: a, probes: [{type: stamp, local: 192.0.2.1}]}\n":                                                               `DIR/hosts.yml:2:22: [1].address is 2001:db8::7:862, which is not of family ipv4, the family of the local address 192.0.2.1`,
		"mesh: {hosts_file: hosts.yml, self: a, probes: [{type: stamp}]}\n":                                                                                 `warning: DIR/hosts.yml:2:22: [1].address is the IPv6 address 2001:db8::7:862 without a port; write "[2001:db8::7]:862" if`,
	} {
		file := write(t, text)
		dir := filepath.Dir(file)
		beside(t, dir)
		if err := os.WriteFile(filepath.Join(dir, "hosts.yml"), []byte("- {name: a, address: a.test}\n- {name: b, address: '2001:db8::7:862'}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, problems bytes.Buffer
		err := checkConfigs(&out, &problems, []string{file}, "", false)
		want = strings.ReplaceAll(want, "DIR", dir)
		if failed := want != "" && !strings.HasPrefix(want, "warning: "); (err != nil) != failed || !strings.HasPrefix(problems.String(), want) || want == "" && problems.Len() > 0 {
			t.Errorf("%s%v: %s; want %q", text, err, &problems, want)
		}
	}
}

// obeyModes takes from this thread the capabilities to ignore the modes of files; it ends with the test's goroutine.
func obeyModes(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
	data[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
}
