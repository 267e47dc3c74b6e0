package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The bill of this machine's program is one by the schema of CycloneDX, has each module that `go version -m` prints, and is the same twice.
func TestBillHasEachModuleOfTheProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "oneway")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "./exporter/cmd/oneway")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := Release{Version: "1.2.3", Revision: "0123456789abcdef", Date: time.Unix(1700000000, 0).UTC(), Root: "../.."}
	var bills, texts [2][]byte
	for i := range bills {
		bill, text := filepath.Join(dir, "bill"), filepath.Join(dir, "text")
		if err := r.write(program, bill, text); err != nil {
			t.Fatal(err)
		}
		var err error
		if bills[i], err = os.ReadFile(bill); err != nil {
			t.Fatal(err)
		}
		if texts[i], err = os.ReadFile(text); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(bills[0], bills[1]) || !bytes.Equal(texts[0], texts[1]) {
		t.Error("two bills of one program differ")
	}
	var bill struct {
		Components []struct {
			Name, Version string
			Licenses      []struct{ License struct{ ID string } }
		}
	}
	if err := json.Unmarshal(bills[0], &bill); err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, c := range bill.Components {
		has[c.Name+" "+c.Version] = len(c.Licenses) > 0
	}
	out, err := exec.Command("go", "version", "-m", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	var modules int
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != "dep" {
			continue
		}
		modules++
		if !has[f[1]+" "+f[2]] {
			t.Errorf("%s %s is not in the bill, or without a license", f[1], f[2])
		}
		if text := "\n" + f[1] + " " + f[2] + ", "; !strings.Contains(string(texts[0]), text+"LICENSE") && !strings.Contains(string(texts[0]), text+"COPYING") {
			t.Errorf("%s %s: its license has no text", f[1], f[2])
		}
	}
	if modules < 10 || len(bill.Components) != modules+1 { // and the standard library
		t.Errorf("%d components, the program has %d modules", len(bill.Components), modules)
	}
	valid(t, bills[0])
}

// valid compares a bill with the schema of the specification.
func valid(t *testing.T, bill []byte) {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	for _, name := range []string{"bom-1.6.schema.json", "spdx.schema.json", "jsf-0.82.schemax.json"} {
		f, err := os.Open(filepath.Join(strings.TrimSpace(string(dir)), "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		document, err := jsonschema.UnmarshalJSON(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("http://cyclonedx.org/schema/"+strings.Replace(name, "schemax", "schema", 1), document); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(bill))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(document); err != nil {
		message := err.Error()
		t.Errorf("%.2000s", message)
	}
}

// A module without a license file is an error that names it.
func TestModuleWithoutALicenseIsAnError(t *testing.T) {
	c := &Component{Path: "example.com/a", Version: "v1.0.0", Licenses: map[string][]byte{
		"LICENSE": []byte("All rights reserved."), "PATENTS": []byte("Additional IP Rights Grant (Patents)"),
	}}
	if _, err := c.identifiers(); err == nil || !strings.Contains(err.Error(), "example.com/a v1.0.0") {
		t.Errorf("%v", err)
	}
}
