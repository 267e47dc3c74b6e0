package imports

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../"

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(root + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestFilesOfAdditionsExist compares the list of CONTRIBUTING.md with the repository: each kind of addition is in it,
// with files, and these exist.
func TestFilesOfAdditionsExist(t *testing.T) {
	_, list, _ := strings.Cut(read(t, "CONTRIBUTING.md"), "|---|---|\n")
	list, _, _ = strings.Cut(list, "\n\n")
	named := regexp.MustCompile("`([a-z.-]+(?:/[A-Za-z0-9_.-]*)+)`")
	var kinds []string
	for row := range strings.Lines(list) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		if len(cells) != 4 {
			t.Fatalf("row %q does not have two cells", row)
		}
		kinds = append(kinds, strings.TrimSpace(cells[1]))
		files := named.FindAllStringSubmatch(cells[2], -1)
		if len(files) == 0 {
			t.Errorf("%s lists no file", cells[1])
		}
		for _, m := range files {
			// A new directory has siblings that exist.
			file, _, _ := strings.Cut(m[1], "NAME")
			info, err := os.Stat(root + file)
			if err != nil || info.IsDir() != strings.HasSuffix(file, "/") {
				t.Errorf("%s: %s: %v", cells[1], m[1], err)
			}
		}
	}
	if want := []string{"light probe", "load test", "traffic type", "sink", "output", "watcher", "clock source", "metric", "raw data", "rule or alert", "dashboard panel"}; !slices.Equal(kinds, want) {
		t.Errorf("the list has %q, want %q", kinds, want)
	}
}

// registries are the files with a line for each member, and the declaration that makes a directory a member.
func registries() map[string]string {
	return map[string]string{
		"exporter/probes/probes.go":                  `(?m)^func New\(\) (load(?:session|test)\.Type\[.*\]|\*Type) `,
		"exporter/load/traffictypes/traffictypes.go": `(?m)^func \([^)]+\) New\(\w+ traffic\.Env\) traffic\.Remote `,
		"exporter/outputs/outputs.go":                `(?m)^func \([^)]*\) New\(\w+ output\.Env, `,
		"exporter/watchers/watchers.go":              `(?m)^func \([^)]+\) New\(\w+ watcher\.Env, `,
		"exporter/clocks/clocks.go":                  `(?m)^func \([^)]+\) New\(\w+ clock\.Env\) \(clock\.Monitor, error\) `,
	}
}

// TestRegistriesAreComplete: a directory with the declaration that a registry lists is in it.
func TestRegistriesAreComplete(t *testing.T) {
	for registry, pattern := range registries() {
		directory := filepath.Dir(registry)
		list, declaration, found := read(t, registry), regexp.MustCompile(pattern), 0
		err := filepath.WalkDir(root+directory, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file := strings.TrimPrefix(path, root)
			if !declaration.MatchString(read(t, file)) {
				return nil
			}
			found++
			if imported := `"oneway.example/` + filepath.Dir(file) + `"`; !strings.Contains(list, imported) {
				t.Errorf("%s does not list %s", registry, filepath.Dir(file))
			}
			return nil
		})
		lines := len(regexp.MustCompile(`(?m)^\t\t.+,$`).FindAllString(list, -1)) // one for each entry in All
		if err != nil || found == 0 || found != lines {
			t.Errorf("%s lists %d, want the %d of %s: %v", registry, lines, found, directory, err)
		}
	}
}

// TestTheMapNamesEachPackage: ARCHITECTURE.md names each package, except the members of a registry, which lists them.
func TestTheMapNamesEachPackage(t *testing.T) {
	_, list, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "## The map")
	list, _, _ = strings.Cut(list, "\n## ")
	for _, p := range packages(t) {
		name, _, _ := strings.Cut(strings.TrimPrefix(p.ImportPath, module), "/internal/") // an internal package belongs to its parent
		if directory, _ := filepath.Split(name); registries()["exporter/"+directory+filepath.Base(directory)+".go"] != "" {
			name = directory
		}
		for part := range strings.SplitSeq(strings.TrimSuffix(name, "/"), "/") {
			if !regexp.MustCompile(`\b` + part + `\b`).MatchString(list) {
				t.Errorf("the map does not name %s of %s", part, p.ImportPath)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^ {4}(exporter/\w[\w/]*|[\w-]+/)`).FindAllStringSubmatch(list, -1) {
		if _, err := os.Stat(root + m[1]); err != nil {
			t.Error(err)
		}
	}
}
