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

// registries are the packages that list the members in the directories beside them. Each member has the declaration.
var (
	registries  = []string{"exporter/clocks/clocks.go", "exporter/load/traffictypes/traffictypes.go", "exporter/outputs/outputs.go", "exporter/probes/probes.go", "exporter/watchers/watchers.go"}
	declaration = regexp.MustCompile(`(?m)^func NewType\(\) `)
)

// TestRegistriesAreComplete: a registry has a line for each directory with the declaration, and no other.
func TestRegistriesAreComplete(t *testing.T) {
	for _, registry := range registries {
		directory := filepath.Dir(registry)
		var members []string
		err := filepath.WalkDir(root+directory, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			if file := strings.TrimPrefix(path, root); declaration.MatchString(read(t, file)) {
				members = append(members, filepath.Base(filepath.Dir(file)))
			}
			return nil
		})
		var listed []string
		for _, m := range regexp.MustCompile(`(?m)^\t\t(.+),$`).FindAllStringSubmatch(read(t, registry), -1) {
			name, found := strings.CutSuffix(m[1], ".NewType()")
			if !found {
				t.Errorf("%s: %s is not made by NewType", registry, m[1])
			}
			listed = append(listed, name)
		}
		slices.Sort(listed)
		if err != nil || len(members) == 0 || !slices.Equal(listed, members) {
			t.Errorf("%s lists %q, want %q: %v", registry, listed, members, err)
		}
	}
}

// TestTheMapNamesEachPackage: ARCHITECTURE.md names each package, except the members of a registry, which lists them.
func TestTheMapNamesEachPackage(t *testing.T) {
	_, list, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "## The map")
	list, _, _ = strings.Cut(list, "\n## ")
	for _, p := range packages(t) {
		name, _, _ := strings.Cut(strings.TrimPrefix(p.ImportPath, module), "/internal/") // an internal package belongs to its parent
		if directory, _ := filepath.Split(name); slices.Contains(registries, "exporter/"+directory+filepath.Base(directory)+".go") {
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
