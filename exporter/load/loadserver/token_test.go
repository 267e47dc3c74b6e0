package loadserver

import (
	"bytes"
	"crypto/sha256"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneway.example/exporter/load/loadcontrol"
)

func TestNewTokenIsFoundByItsTextOnly(t *testing.T) {
	a, text, err := NewToken("a", loadcontrol.Limits{Sessions: 1})
	if err != nil {
		t.Fatal(err)
	}
	b, other, _ := NewToken("b", loadcontrol.Limits{})
	if text == other || len(text) < 40 || !strings.HasPrefix(text, "owt_") {
		t.Errorf("texts %q and %q", text, other)
	}
	if strings.Contains(a.String(), strings.TrimPrefix(text, "owt_")) {
		t.Error("the line has the token's text")
	}
	content := []byte("# comment\n\n" + a.String() + "\n" + b.String() + " # of b\nc certificate rate=1Mbit\n")
	all, err := ParseTokens(content)
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	if got, ok := byText(all, text); !ok || got != a {
		t.Errorf("found %+v, want %+v", got, a)
	}
	for _, wrong := range []string{"", text + "x", text[:len(text)-1], strings.ToUpper(text), "c"} {
		if got, ok := byText(all, wrong); ok {
			t.Errorf("%q matches %+v", wrong, got)
		}
	}
}

func TestByteOrderMarkIsNoPartOfTheFirstName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("\uFEFFa certificate\r\n\uFEFFb certificate\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := AppendToken(file, Token{Name: "a", Certificate: true}); err == nil || !strings.Contains(err.Error(), `the name "a" stands in the file already`) {
		t.Error(err)
	}
	if err := AppendToken(file, Token{Name: "c", Certificate: true}); err != nil {
		t.Error(err)
	}
	if all, err := loadTokens(file); err != nil || len(all) != 3 || all[0].Name != "a" || all[1].Name != "b" {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestCertificateHasNoText(t *testing.T) {
	// The zero hash of such a line must match no token.
	if _, ok := byText([]Token{{Name: "c", Certificate: true, Hash: sha256.Sum256([]byte("x"))}}, "x"); ok {
		t.Error("a certificate's entry matched a token")
	}
}

func TestErrorsOfATokensFileHaveTheLine(t *testing.T) {
	good, _, _ := NewToken("a", loadcontrol.Limits{})
	for content, want := range map[string]string{
		good.String() + "\n" + good.String():  `line 2: the name "a" stands in the file already`,
		"a":                                   "line 1: a token is a name",
		"a sha256:00":                         "line 1: a token is a name",
		"a md5:00":                            "line 1: a token is a name",
		"a sha256:" + strings.Repeat("0", 66): "line 1: a token is a name",
		"-a certificate":                      `line 1: loadserver: token name "-a"`,
		"\na certificate rate=1":              `line 2: rate is "1"`,
	} {
		if _, err := ParseTokens([]byte(content)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v; want %q", content, err, want)
		}
	}
	if _, _, err := NewToken("no spaces", loadcontrol.Limits{}); err == nil {
		t.Error("a name with a space was accepted")
	}
}

func TestAppendTokenRejectsDuplicatesAndSetsTheMode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	a, _, _ := NewToken("a", loadcontrol.Limits{Sessions: 3})
	b, _, _ := NewToken("b", loadcontrol.Limits{})
	if err := AppendToken(file, a); err != nil {
		t.Fatal(err)
	}
	if err := AppendToken(file, a); err == nil {
		t.Error("a duplicate name was accepted")
	}
	content, _ := os.ReadFile(file)
	if err := os.WriteFile(file, bytes.TrimSpace(content), 0o600); err != nil { // no newline at the end
		t.Fatal(err)
	}
	if err := AppendToken(file, b); err != nil {
		t.Fatal(err)
	}
	all, err := loadTokens(file)
	if err != nil || len(all) != 2 || all[0] != a || all[1] != b {
		t.Errorf("%+v, %v", all, err)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestTokensFileIsReloadedWhenItChanges(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "new"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "new"), file); err != nil {
			t.Fatal(err)
		}
	}
	write("a certificate\n")
	s, err := newTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string, want bool) {
		t.Helper()
		if _, ok := s.named(name); ok != want {
			t.Errorf("token %s is valid: %t, want %t", name, ok, want)
		}
	}
	has("a", true)
	write("b certificate\n")
	has("a", false)
	has("b", true)
	write("b certificate\nhalf a li")
	has("b", true) // an invalid file changes nothing
	has("b", true)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	has("b", false) // no file, no token
	write("b certificate\n")
	has("b", true)
	if err := os.Chmod(file, 0o606); err != nil {
		t.Fatal(err)
	}
	if _, err := newTokens(file, s.log); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may write: %v", err)
	}
	if _, err := newTokens(filepath.Join(dir, "absent"), s.log); err == nil {
		t.Error("no error without a file")
	}
}

func FuzzParseTokens(f *testing.F) {
	a, _, _ := NewToken("a", loadcontrol.Limits{BytesPerSecond: 2.5e6, BytesPerDay: 1})
	f.Add([]byte(a.String() + "\nb certificate sessions=2 duration=5m # x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := ParseTokens(b)
		if err != nil {
			return
		}
		var again []byte
		for _, one := range all {
			again = append(again, one.String()+"\n"...)
		}
		if got, err := ParseTokens(again); err != nil || len(got) != len(all) {
			t.Errorf("%d tokens were formatted and parsed as %d, %v", len(all), len(got), err)
		}
	})
}

// A file that becomes empty, such as by a redirection of the shell, revokes all tokens: its owner reads so in the log, and when they
// are back.
func TestTokensFileThatBecomesEmptyIsLogged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	var log bytes.Buffer
	var s *tokens
	for _, c := range []struct{ content, want string }{
		{"a certificate\n", ""},
		{"# none\n", "Tokens file has no token"},
		{"a certificate\n", "Tokens reloaded"},
		{"a certificate\nb certificate\n", ""},
	} {
		if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if s == nil {
			s, _ = newTokens(file, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
		}
		log.Reset()
		if s.current(); !strings.Contains(log.String(), c.want) || c.want == "" && log.Len() > 0 {
			t.Errorf("%q: log %q, want %q", c.content, &log, c.want)
		}
	}
}
