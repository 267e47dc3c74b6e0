package report

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"testing"
)

// zip compresses a text.
func zip(tb testing.TB, text string) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func FuzzDecodeHeader(f *testing.F) {
	f.Add(zip(f, `{"header":{"id":"a","path":"p"},"summary":[{"quantity":"q","value":"v"}],"body":[1,2`))
	f.Add(zip(f, `{"body":1}`))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, content := range [][]byte{content, zip(t, string(content))} {
			h, err := decodeHeader(bytes.NewReader(content), "a")
			if err != nil {
				continue
			}
			if h.ID != "a" || len(h.Summary) > maxLines || len(fmt.Sprint(h)) > (maxLines*3+10)*(maxText+10) {
				t.Fatalf("accepted %+v", h)
			}
		}
	})
}
