package loadsession_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneway.example/exporter/load/loadsession"
)

func TestTokenIsTheFirstLineThatIsNotAComment(t *testing.T) {
	for text, want := range map[string]string{
		"owt_a\n": "owt_a", "\n# ours\n  owt_b  \nowt_c\n": "owt_b", "owt_d": "owt_d", "": "", "# nothing\n\n": "",
	} {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := loadsession.ReadToken(file)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q holds %q, %v; want %q", text, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), `"oneway token new" makes one`) {
			t.Errorf("error is %v; it must name the command that makes a token", err)
		}
	}
	if got, err := loadsession.ReadToken(""); got != "" || err != nil {
		t.Errorf("without a file: %q, %v", got, err)
	}
}
