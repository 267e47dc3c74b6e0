package calibration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func good(t testing.TB) string {
	t.Helper()
	text, err := format([]Record{recorded("eth0"), recorded("eth1")})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFileHasTheDocumentedForm(t *testing.T) {
	text, err := format([]Record{recorded("eth0")})
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "version": 1,
  "interfaces": [
    {
      "interface": "eth0",
      "driver": "veth",
      "host": "h",
      "kernel": "6.18",
      "date": "2026-11-21T14:00:00Z",
      "setup": "veth",
      "reflector": "192.0.2.2:862",
      "shared_clock": true,
      "origin": "kernel",
      "payload_bytes": 172,
      "interval_ns": 2000000,
      "true_delay_ns": 7,
      "forward": {
        "used_packets": 5000,
        "systematic_ns": 6000,
        "random_ns": 1000,
        "largest_ns": 30000
      },
      "reverse": {
        "used_packets": 4999,
        "systematic_ns": 2000,
        "random_ns": 3000,
        "largest_ns": 9000
      },
      "trusted": false
    }
  ]
}
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestACorruptFileIsRefusedWithItsNameAndTheFault(t *testing.T) {
	text := good(t)
	replace := func(old, replacement string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in the file", old)
		}
		return strings.Replace(text, old, replacement, 1)
	}
	for want, content := range map[string]string{
		"not a calibration file: unexpected end":           "",
		"not a calibration file: invalid character 'h'":    "hello",
		"not a calibration file: it has no version":        `{"interfaces": []}`,
		"version is 2; this program supports 1":            `{"version": 2, "new": "things"}`,
		"interfaces is missing":                            `{"version": 1}`,
		"interfaces is null":                               `{"version": 1, "interfaces": null}`,
		"not a calibration file: unexpected end of JSON":   text[:len(text)/2],
		"not a calibration file: invalid character '{'":    text + "{}",
		`json: unknown field "speed"`:                      replace(`"driver"`, `"speed": 1, "driver"`),
		"interfaces.forward.random_ns is missing":          replace(`"random_ns": 1000,`, ""),
		"interfaces.forward.random_ns is null":             replace(`"random_ns": 1000`, `"random_ns": null`),
		"interfaces.forward.random_ns is given twice":      replace(`"random_ns": 1000`, `"random_ns": 1000, "random_ns": 1`),
		"interfaces.trusted is missing":                    strings.Replace(replace(`"largest_ns": 9000`, `"largest_ns": 9001`), ",\n      \"trusted\": false", "", 1),
		"interfaces.host is missing":                       replace(`"host"`, `"Host"`),
		"interfaces.forward.random_ns: got the number 1.5": replace(`"random_ns": 1000`, `"random_ns": 1.5`),
		`interface "eth0": forward: random_ns is -1`:       replace(`"random_ns": 1000`, `"random_ns": -1`),
		`interface "eth0": origin is "guess"`:              replace(`"origin": "kernel"`, `"origin": "guess"`),
		`interface "eth0" is given twice`:                  replace(`"interface": "eth1"`, `"interface": "eth0"`),
		`interface "": interface is empty`:                 replace(`"interface": "eth1"`, `"interface": ""`),
		`parsing time "yesterday"`:                         replace(`"2026-11-21T14:00:00Z"`, `"yesterday"`),
		"larger than 4194304 bytes":                        strings.Repeat(" ", maxBytes) + text,
	} {
		path := filepath.Join(t.TempDir(), "calibration.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if table, err := Load(path); err == nil || !strings.HasPrefix(err.Error(), "calibration: "+path+": "+want) {
			t.Errorf("%v, %v\nwant %s", table, err, want)
		}
	}
}

func TestAnEmptyTableIsAFile(t *testing.T) {
	if records, err := parse([]byte(`{"version": 1, "interfaces": []}`)); err != nil || len(records) > 0 {
		t.Error(records, err)
	}
}

func FuzzLoad(f *testing.F) {
	// Short, since the fuzzer minimizes interesting inputs first.
	text := `{"version":1,"interfaces":[{"interface":"a","driver":"","host":"h","kernel":"k","date":"2026-11-21T14:00:00Z","setup":"veth","reflector":"x",` +
		`"shared_clock":true,"origin":"kernel","payload_bytes":1,"interval_ns":2,"true_delay_ns":7,` +
		`"forward":{"used_packets":5000,"systematic_ns":6,"random_ns":1,"largest_ns":3},"reverse":{"used_packets":4999,"systematic_ns":2,"random_ns":3,"largest_ns":9},"trusted":true}]}`
	if _, err := parse([]byte(text)); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(text))
	f.Add([]byte(`{"version": 1, "interfaces": []}`))
	f.Add([]byte(`{"version":1,"interfaces":[{"forward":{"used_packets":1},"used_packets":[[]]}]}`))
	f.Add([]byte(`null`))
	// Load does the same and reads a file, which would take most of the time.
	f.Fuzz(func(t *testing.T, content []byte) {
		records, err := parse(content)
		if err != nil {
			return
		}
		table := &Table{records: records}
		for _, r := range table.Records() {
			if e, ok := table.For(r.Interface); !ok || e.Random < 0 || e.Largest < 0 {
				t.Errorf("%+v, %v", e, ok)
			}
		}
		text, err := format(records)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(records, again); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	})
}
