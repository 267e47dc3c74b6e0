package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestLinksOfInstalledPagesLeadToInstalledFiles: a host with the package has no source.
func TestLinksOfInstalledPagesLeadToInstalledFiles(t *testing.T) {
	var packages struct {
		Contents []struct{ Src, Dst, Type string }
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(root, "deploy/packages/nfpm.yaml"))), &packages); err != nil {
		t.Fatal(err)
	}
	exists, pages := map[string]bool{}, map[string]string{} // by place in the package
	install := func(src, dst string) {
		if strings.HasSuffix(dst, ".md") {
			pages[dst] = src
		}
		for ; !exists[dst] && dst != "/"; dst = path.Dir(dst) {
			exists[dst] = true
		}
	}
	for _, c := range packages.Contents {
		files, err := filepath.Glob(filepath.Join(root, c.Src))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			switch {
			case c.Type == "tree":
				if err := fs.WalkDir(os.DirFS(file), ".", func(name string, e fs.DirEntry, err error) error {
					if err == nil && !e.IsDir() {
						install(filepath.Join(file, name), path.Join(c.Dst, name))
					}
					return err
				}); err != nil {
					t.Fatal(err)
				}
			case strings.HasSuffix(c.Dst, "/"):
				install(file, c.Dst+filepath.Base(file))
			default:
				install(file, c.Dst)
			}
		}
	}
	link := regexp.MustCompile(`\]\(([^)#\s]+)`)
	checked := 0
	for dst, src := range pages {
		for _, m := range link.FindAllStringSubmatch(read(t, src), -1) {
			if strings.Contains(m[1], ":") { // an address
				continue
			}
			if checked++; !exists[path.Join(path.Dir(dst), m[1])] {
				t.Errorf("%s links to %s, which the package does not have", dst, m[1])
			}
		}
	}
	if checked < 200 {
		t.Errorf("checked %d links: fewer than there are", checked)
	}
}
