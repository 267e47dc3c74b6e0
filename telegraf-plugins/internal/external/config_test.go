package external

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type options struct {
	Name  string         `toml:"name"`
	Size  int            `toml:"size"`
	Table map[string]any `toml:"table"`
}

func TestConfigurationIsRead(t *testing.T) {
	t.Setenv("ONEWAY_TEST_NAME", `a"b\c`)
	file := filepath.Join(t.TempDir(), "x.conf")
	text := "# a comment\n[[inputs.x]]\n  name = \"${ONEWAY_TEST_NAME}\"\n  [inputs.x.table]\n    a = 1\n    [inputs.x.table.b]\n      c = \"d\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options{Size: 7}
	if err := Load("x", &o, file); err != nil {
		t.Fatal(err)
	}
	if b, _ := o.Table["b"].(map[string]any); o.Name != `a"b\c` || o.Size != 7 || o.Table["a"] != int64(1) || b["c"] != "d" {
		t.Errorf("%+v", o)
	}
	if err := Load("x", &o, ""); err != nil {
		t.Error(err)
	}
}

func TestMistakesAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"":                                        "has no [[inputs.x]]",
		"[[outputs.x]]":                           "has no [[inputs.x]]",
		"[[inputs.x]]\n[[inputs.x]]":              "has 2 [[inputs.x]]; one process runs one of them",
		"[[inputs.x]]\n[[inputs.y]]\na = 1":       "inputs.y.a is no option of inputs.x; -sample_config prints all",
		"[[inputs.x]]\nnam = 1":                   "inputs.x.nam is no option of inputs.x; -sample_config prints all",
		"[[inputs.x]]\n[inputs.x.tabel]\na = 1":   "inputs.x.tabel is no option of inputs.x; -sample_config prints all",
		"[[inputs.x]]\nsize = \"1\"":              "incompatible types",
		"[[inputs.x]]\nname = \"a\nb\"":           "line 2 (last key",
		"interval = 1\n[[inputs.x]]\nname = \"\"": "interval is no option of inputs.x",
	} {
		file := filepath.Join(t.TempDir(), "x.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Load("x", &options{}, file)
		if err == nil || !strings.HasPrefix(err.Error(), file+": ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if err := Load("x", &options{}, "/nowhere/x.conf"); err == nil || !strings.Contains(err.Error(), "/nowhere/x.conf: no such file") {
		t.Error(err)
	}
}
