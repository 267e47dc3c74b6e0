// Command sbom writes what a program of oneway is made of: a bill of materials (CycloneDX 1.6, JSON), and the texts of all licenses. The
// same program gives the same bytes.
package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licensecheck"
)

// Release is what the bill is of.
type Release struct {
	Version, Revision string
	Date              time.Time
	// Root is the directory of oneway's go.mod.
	Root string
	// Notes is a file with what else the licenses' texts say.
	Notes string
}

// Component is a module in the program, or the standard library of Go.
type Component struct {
	Path, Version, Sum string
	// Licenses are the license files of the packages in the program, and of the directories above them in the module, by path in the module.
	Licenses map[string][]byte
}

func main() {
	var r Release
	var seconds int64
	program := flag.String("program", "", "program")
	bill := flag.String("bill", "", "file to write: bill of materials")
	texts := flag.String("licenses", "", "file to write: texts of the licenses")
	flag.StringVar(&r.Version, "version", "", "version")
	flag.StringVar(&r.Revision, "revision", "", "commit")
	flag.Int64Var(&seconds, "date", 0, "time of the commit, seconds since 1970")
	flag.StringVar(&r.Root, "root", "../..", "directory of oneway's go.mod")
	flag.StringVar(&r.Notes, "notes", "", "file with the licenses of what is not in the program")
	flag.Parse()
	r.Date = time.Unix(seconds, 0).UTC()
	if err := r.write(*program, *bill, *texts); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func (r Release) write(program, bill, texts string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	components, err := r.components(info)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	var b, l bytes.Buffer
	if err := r.bill(&b, info, components); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	if err := r.texts(&l, components); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(bill, b.Bytes(), 0o644), os.WriteFile(texts, l.Bytes(), 0o644))
}

// listed is a package as `go list` prints it.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// components returns oneway, the modules in the program and the standard library, with their licenses.
func (r Release) components(info *debug.BuildInfo) ([]*Component, error) {
	environment := os.Environ()
	tags := ""
	for _, s := range info.Settings {
		if s.Key == "-tags" {
			tags = s.Value
		}
		if strings.HasPrefix(s.Key, "GO") || s.Key == "CGO_ENABLED" {
			environment = append(environment, s.Key+"="+s.Value)
		}
	}
	goroot, err := r.run(environment, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	own := &Component{Path: info.Main.Path, Version: r.Version, Licenses: map[string][]byte{}}
	standard := &Component{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go"), Licenses: map[string][]byte{}}
	all := []*Component{own}
	by := map[string]*Component{}
	for _, d := range info.Deps {
		if d.Replace != nil {
			return nil, fmt.Errorf("module %s: replaced by %s, whose license is not looked for", d.Path, d.Replace.Path)
		}
		c := &Component{Path: d.Path, Version: d.Version, Sum: d.Sum, Licenses: map[string][]byte{}}
		all, by[d.Path] = append(all, c), c
	}
	all = append(all, standard)
	out, err := r.run(environment, "list", "-deps", "-tags="+tags, "-json=Dir,Standard,Module", info.Path)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		c, root := standard, strings.TrimSpace(goroot)
		switch {
		case p.Standard:
		case p.Module.Main:
			c, root = own, p.Module.Dir
		default:
			c, root = by[p.Module.Path], p.Module.Dir
			if c == nil || c.Version != p.Module.Version {
				return nil, fmt.Errorf("module %s %s: the program was not built with it", p.Module.Path, p.Module.Version)
			}
		}
		if err := c.look(root, p.Dir); err != nil {
			return nil, err
		}
	}
	for _, c := range all {
		if len(c.Licenses) == 0 {
			return nil, fmt.Errorf("module %s %s: found no license file", c.Path, c.Version)
		}
	}
	return all, nil
}

// run returns what the command go prints in oneway's module.
func (r Release) run(environment []string, args ...string) (string, error) {
	c := exec.Command("go", args...)
	c.Dir, c.Env, c.Stderr = r.Root, environment, os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// licenseName is the name of a file with a license, or with what a license requires to be passed on.
var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense)([-_.].*)?$`)

// look adds the license files of a directory, and of those above it up to the module's root.
func (c *Component) look(root, dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		inside, err := filepath.Rel(root, dir)
		if err != nil || strings.HasPrefix(inside, "..") {
			return fmt.Errorf("module %s: %s is not below %s", c.Path, dir, root)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := filepath.Join(inside, e.Name())
			if e.Type()&fs.ModeType != 0 || !licenseName.MatchString(e.Name()) || strings.HasSuffix(name, ".go") || c.Licenses[name] != nil {
				continue
			}
			if c.Licenses[name], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
		if inside == "." {
			return nil
		}
	}
}

// grant is the name of a file that goes with a license and is none of SPDX.
var grant = regexp.MustCompile(`(?i)^(notice|patents)`)

// identifiers returns the SPDX identifiers of the component's licenses.
func (c *Component) identifiers() ([]string, error) {
	var ids []string
	for name, text := range c.Licenses {
		if grant.MatchString(filepath.Base(name)) {
			continue
		}
		for _, m := range licensecheck.Scan(text).Match {
			if !m.IsURL && !slices.Contains(ids, m.ID) {
				ids = append(ids, m.ID)
			}
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("module %s %s: its license is not one of SPDX", c.Path, c.Version)
	}
	slices.Sort(ids)
	return ids, nil
}

// url is the package URL, as the specification's type golang has it.
func (c *Component) url() string { return "pkg:golang/" + c.Path + "@" + c.Version }

func (r Release) bill(w io.Writer, info *debug.BuildInfo, components []*Component) error {
	b := cyclonedx.NewBOM()
	var all []cyclonedx.Component
	var refs []string
	for _, c := range components {
		ids, err := c.identifiers()
		if err != nil {
			return err
		}
		var licenses cyclonedx.Licenses
		for _, id := range ids {
			licenses = append(licenses, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
		}
		one := cyclonedx.Component{
			BOMRef: c.url(), Type: cyclonedx.ComponentTypeLibrary, Name: c.Path, Version: c.Version,
			PackageURL: c.url(), Licenses: &licenses,
		}
		if c.Sum != "" {
			one.Properties = &[]cyclonedx.Property{{Name: "cdx:gomod:sum", Value: c.Sum}}
		}
		all, refs = append(all, one), append(refs, c.url())
	}
	main := all[0]
	main.Type, main.Properties = cyclonedx.ComponentTypeApplication, &[]cyclonedx.Property{{Name: "vcs.revision", Value: r.Revision}}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "GOARM" {
			*main.Properties = append(*main.Properties, cyclonedx.Property{Name: "cdx:gomod:build:env:" + s.Key, Value: s.Value})
		}
	}
	all, needed := all[1:], refs[1:]
	b.Metadata = &cyclonedx.Metadata{Timestamp: r.Date.Format(time.RFC3339), Component: &main}
	b.Components = &all
	b.Dependencies = &[]cyclonedx.Dependency{{Ref: refs[0], Dependencies: &needed}}
	return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(b, cyclonedx.SpecVersion1_6)
}

// texts writes a table of the components, then each license file.
func (r Release) texts(w *bytes.Buffer, components []*Component) error {
	fmt.Fprintf(w, "Licenses of oneway %s and of what its program contains.\n\n", r.Version)
	var width int
	for _, c := range components {
		width = max(width, len(c.Path)+1+len(c.Version))
	}
	for _, c := range components {
		ids, err := c.identifiers()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-*s  %s\n", width, c.Path+" "+c.Version, strings.Join(ids, ", "))
	}
	if r.Notes != "" {
		notes, err := os.ReadFile(r.Notes)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "\n%s", notes)
	}
	for _, c := range components {
		names := make([]string, 0, len(c.Licenses))
		for name := range c.Licenses {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(w, "\n%s\n%s %s, %s\n\n%s\n", strings.Repeat("=", 80), c.Path, c.Version, name, bytes.TrimSpace(c.Licenses[name]))
		}
	}
	return nil
}
