//go:build !slim

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"aead.dev/minisign"
	"github.com/alecthomas/kingpin/v2"
)

// The list of checksums of a release, as sha256sum writes it, and the ending of its signature.
const (
	sumsFile        = "SHA256SUMS"
	signatureSuffix = ".minisig"
)

const verifyHelp = `Verify files of a release by its signed checksums.

` + sumsFile + ` of the release and its signature ` + sumsFile + signatureSuffix + ` must be beside each file. minisign and
sha256sum do the same where no oneway is installed yet.

Examples:
  oneway verify --public-key=oneway.pub oneway_0.1.0-1_amd64.deb
  minisign -Vm ` + sumsFile + ` -p oneway.pub && sha256sum --check --ignore-missing ` + sumsFile + `

Exit status: 0 all are files of the release, 1 one is not, 2 wrong usage.`

func verifyCommand(app *kingpin.Application) {
	var key string
	var names []string
	cmd := app.Command("verify", verifyHelp)
	cmd.Flag("public-key", "Public key of minisign, which the project publishes.").Required().PlaceHolder("FILE").StringVar(&key)
	cmd.Arg("file", "A file of a release.").Required().StringsVar(&names)
	cmd.Action(action(func() error { return verify(os.Stdout, key, names) }))
}

// verify prints a line for each file of a release, and returns the errors of the others.
func verify(out io.Writer, keyFile string, names []string) error {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return fmt.Errorf("verify: --public-key: %w", err)
	}
	var key minisign.PublicKey
	if err := key.UnmarshalText(text); err != nil {
		return fmt.Errorf("verify: --public-key: %s is no public key of minisign, which is a line of 56 characters after a comment (%w)", keyFile, err)
	}
	var wrong []error
	for _, name := range names {
		if err := verifyFile(key, name); err != nil {
			wrong = append(wrong, fmt.Errorf("verify: %s: %w", name, err))
			continue
		}
		if _, err := fmt.Fprintf(out, "%s: ok\n", name); err != nil {
			return err
		}
	}
	return errors.Join(wrong...)
}

func verifyFile(key minisign.PublicKey, name string) error {
	list := filepath.Join(filepath.Dir(name), sumsFile)
	sums, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	signature, err := os.ReadFile(list + signatureSuffix)
	if err != nil {
		return err
	}
	if !minisign.Verify(key, sums, signature) {
		return fmt.Errorf("%s does not have a signature of this key", list)
	}
	want, ok := sumOf(string(sums), filepath.Base(name))
	if !ok {
		return fmt.Errorf("%s does not name it", list)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != want {
		return fmt.Errorf("SHA-256 is %s, want %s: it is not the file of the release", got, want)
	}
	return nil
}

// sumOf returns the checksum of a file in the lines of sha256sum: the digest, a space, a space or "*", and the name.
func sumOf(sums, name string) (sum string, ok bool) {
	for line := range strings.Lines(sums) {
		sum, file, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if len(file) > 1 && file[1:] == name {
			return sum, true
		}
	}
	return "", false
}
