// Command images makes the container images of oneway, without a daemon and without a registry: an OCI layout with an index of all
// platforms, and for each platform an archive for `docker load`. The same input gives the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"oneway.example/exporter/core/hostport"
)

// user is the user and the group of the program: no account of a host has it.
const user = 65532

// Release is what the images are of.
type Release struct {
	Version, Tag, Revision string
	Date                   time.Time
	// Config is the file of the default configuration, ZoneInfo Go's lib/time/zoneinfo.zip.
	Config, ZoneInfo string
}

// platforms are the platforms by the names of the packages.
var platforms = map[string]v1.Platform{
	"amd64": {OS: "linux", Architecture: "amd64"},
	"arm64": {OS: "linux", Architecture: "arm64", Variant: "v8"},
	"arm7":  {OS: "linux", Architecture: "arm", Variant: "v7"},
}

func main() {
	var r Release
	var seconds int64
	out := flag.String("out", ".", "directory of the archives")
	flag.StringVar(&r.Version, "version", "", "version")
	flag.StringVar(&r.Tag, "tag", "", "tag: the version without ~")
	flag.StringVar(&r.Revision, "revision", "", "commit")
	flag.Int64Var(&seconds, "date", 0, "time of the commit, seconds since 1970")
	flag.StringVar(&r.Config, "config", "", "default configuration")
	flag.StringVar(&r.ZoneInfo, "zoneinfo", "", "Go's lib/time/zoneinfo.zip")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: images [flags] ARCHITECTURE=PROGRAM ...; beside each program: licenses.txt, oneway.cdx.json")
		flag.PrintDefaults()
	}
	flag.Parse()
	r.Date = time.Unix(seconds, 0).UTC()
	if err := write(r, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// write writes the archives of all platforms.
func write(r Release, out string, programs []string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		architecture, program, _ := strings.Cut(p, "=")
		platform, ok := platforms[architecture]
		if !ok {
			return fmt.Errorf("%q is not ARCHITECTURE=PROGRAM of a known architecture", p)
		}
		image, err := r.image(platform, program)
		if err != nil {
			return fmt.Errorf("%s: %w", architecture, err)
		}
		attestation, about, err := r.attestation(image, platform, program)
		if err != nil {
			return fmt.Errorf("%s: %w", architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}}, mutate.IndexAddendum{Add: attestation, Descriptor: about})
		if err := r.writeDocker(image, filepath.Join(out, "oneway-"+r.Version+"-"+architecture+".docker.tar")); err != nil {
			return fmt.Errorf("%s: %w", architecture, err)
		}
	}
	return r.writeOCI(index, filepath.Join(out, "oneway-"+r.Version+".oci.tar"))
}

// image makes the image of one platform.
func (r Release) image(platform v1.Platform, program string) (v1.Image, error) {
	config, err := os.ReadFile(r.Config)
	if err != nil {
		return nil, err
	}
	zones, err := os.ReadFile(r.ZoneInfo)
	if err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	licenses, err := os.ReadFile(filepath.Join(filepath.Dir(program), "licenses.txt"))
	if err != nil {
		return nil, err
	}
	bill, err := os.ReadFile(filepath.Join(filepath.Dir(program), "oneway.cdx.json"))
	if err != nil {
		return nil, err
	}
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range [][]file{
		{
			{"etc/passwd", fmt.Appendf(nil, "oneway:x:%d:%[1]d::/var/lib/oneway:/sbin/nologin\n", user), 0o644, 0},
			{"etc/group", fmt.Appendf(nil, "oneway:x:%d:\n", user), 0o644, 0},
			{"etc/ssl/certs/ca-certificates.crt", roots.Bytes(), 0o644, 0},
			{"etc/oneway/oneway.yml", config, 0o644, 0},
			{"usr/share/zoneinfo.zip", zones, 0o644, 0},
			{"var/lib/oneway/", nil, 0o750, user},
			{"run/oneway/", nil, 0o750, user},
			{"tmp/", nil, 0o1777, 0},
		},
		{
			{"usr/bin/oneway", binary, 0o755, 0},
			{"usr/share/doc/oneway/licenses.txt", licenses, 0o644, 0},
			{"usr/share/doc/oneway/oneway.cdx.json", bill, 0o644, 0},
		},
	} {
		packed, err := r.pack(files)
		if err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.Date}, CreatedBy: "deploy/images"}}); err != nil {
			return nil, err
		}
	}
	return mutate.ConfigFile(image, r.config(image, platform))
}

// bill is the predicate type of a CycloneDX document in an in-toto statement.
const bill = "https://cyclonedx.org/bom"

// attestation makes a manifest with the bill of materials of an image, in an in-toto statement, as BuildKit attaches it: a manifest of
// an unknown platform in the index, which the annotations of its descriptor and its subject refer to the image.
func (r Release) attestation(image v1.Image, platform v1.Platform, program string) (v1.Image, v1.Descriptor, error) {
	predicate, err := os.ReadFile(filepath.Join(filepath.Dir(program), "oneway.cdx.json"))
	if err != nil {
		return nil, v1.Descriptor{}, err
	}
	subject, err := partial.Descriptor(image)
	if err != nil {
		return nil, v1.Descriptor{}, err
	}
	type entity struct {
		Name   string            `json:"name"`
		Digest map[string]string `json:"digest"`
	}
	statement, err := json.Marshal(struct {
		Type          string          `json:"_type"`
		PredicateType string          `json:"predicateType"`
		Subject       []entity        `json:"subject"`
		Predicate     json.RawMessage `json:"predicate"`
	}{
		"https://in-toto.io/Statement/v0.1", bill,
		[]entity{{"pkg:docker/oneway@" + r.Version + "?platform=" + url.QueryEscape(platform.String()), map[string]string{subject.Digest.Algorithm: subject.Digest.Hex}}},
		predicate,
	})
	if err != nil {
		return nil, v1.Descriptor{}, err
	}
	unknown := v1.Platform{OS: "unknown", Architecture: "unknown"}
	made, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: unknown.OS, Architecture: unknown.Architecture, Created: v1.Time{Time: r.Date}, RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		return nil, v1.Descriptor{}, err
	}
	made, err = mutate.Append(mutate.ConfigMediaType(mutate.MediaType(made, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: static.NewLayer(statement, "application/vnd.in-toto+json"), Annotations: map[string]string{"in-toto.io/predicate-type": bill}})
	if err != nil {
		return nil, v1.Descriptor{}, err
	}
	return mutate.Subject(made, *subject).(v1.Image), v1.Descriptor{
		Platform:    &unknown,
		Annotations: map[string]string{"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": subject.Digest.String()},
	}, nil
}

// config is what a runtime reads: the user, the command, the ports.
func (r Release) config(image v1.Image, platform v1.Platform) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		panic(err) // it is in memory
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Variant = platform.OS, platform.Architecture, platform.Variant
	c.Created = v1.Time{Time: r.Date}
	c.Config = v1.Config{
		User:         fmt.Sprintf("%d:%[1]d", user),
		Entrypoint:   []string{"/usr/bin/oneway"},
		Cmd:          []string{"agent", "--config.file=/etc/oneway/oneway.yml"},
		Env:          []string{"PATH=/usr/bin", "ZONEINFO=/usr/share/zoneinfo.zip"},
		WorkingDir:   "/var/lib/oneway",
		ExposedPorts: map[string]struct{}{fmt.Sprintf("%d/udp", hostport.Reflector): {}, hostport.Agent + "/tcp": {}},
		Healthcheck:  &v1.HealthConfig{Test: []string{"CMD", "/usr/bin/oneway", "healthy"}, Interval: 30 * time.Second, Timeout: 10 * time.Second, StartPeriod: 10 * time.Second, Retries: 3},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "oneway",
			"org.opencontainers.image.description": "one-way delay, loss and load tests of network paths",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     r.Version,
			"org.opencontainers.image.revision":    r.Revision,
			"org.opencontainers.image.created":     r.Date.Format(time.RFC3339),
		},
	}
	return c
}

// file is a file of a layer, or with "/" at its end a directory.
type file struct {
	name  string
	text  []byte
	mode  int64
	owner int
}

// pack makes the tar file of a layer, with all directories.
func (r Release) pack(files []file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	known := map[string]bool{".": true}
	add := func(h tar.Header, text []byte) error {
		h.ModTime, h.Format, h.Size = r.Date, tar.FormatPAX, int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := w.Write(text)
		return err
	}
	for _, f := range files {
		var above []string
		for dir := filepath.Dir(strings.TrimSuffix(f.name, "/")); !known[dir]; dir = filepath.Dir(dir) {
			known[dir] = true
			above = append(above, dir)
		}
		for _, dir := range slices.Backward(above) {
			if err := add(tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}, nil); err != nil {
				return nil, err
			}
		}
		kind := byte(tar.TypeReg)
		if strings.HasSuffix(f.name, "/") {
			kind = tar.TypeDir
		}
		if err := add(tar.Header{Typeflag: kind, Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner}, f.text); err != nil {
			return nil, err
		}
	}
	err := w.Close() // writes the end of the archive
	return b.Bytes(), err
}

// writeDocker writes an archive for docker load.
func (r Release) writeDocker(image v1.Image, to string) error {
	tag, err := name.NewTag("oneway:" + r.Tag)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(to, tag, image)
}

// writeOCI writes an OCI layout as a tar file.
func (r Release) writeOCI(index v1.ImageIndex, to string) error {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.Tag})); err != nil {
		return err
	}
	var files []file
	if err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, at)
		files = append(files, file{inside, text, 0o644, 0})
		return err
	}); err != nil {
		return err
	}
	packed, err := r.pack(files)
	if err != nil {
		return err
	}
	return os.WriteFile(to, packed, 0o644)
}
