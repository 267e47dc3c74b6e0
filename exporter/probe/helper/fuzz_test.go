package helper

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// FuzzExchange feeds arbitrary output of a program: each line is a message or an error with a reason, and memory is bounded.
func FuzzExchange(f *testing.F) {
	f.Add([]byte("{\"hello\":{\"protocol\":1,\"name\":\"a\",\"version\":\"b\"}}\n{\"id\":1,\"result\":[1]}\n"))
	f.Add([]byte("{\"id\":-1}\nnull\n[]\n\n{"))
	f.Add([]byte(strings.Repeat("x", 1<<10)))
	f.Fuzz(func(t *testing.T, output []byte) {
		reader := bufio.NewReaderSize(bytes.NewReader(output), 16)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range bytes.Count(output, []byte("\n")) + 1 {
			text, why := readLine(reader)
			if len(text) > MaxLine || bytes.ContainsRune(text, '\n') || why != "" && text != nil {
				t.Fatalf("line of %d bytes, %q", len(text), why)
			}
			p := &process{options: &Options{Program: "/p"}, lines: make(chan line, 1)}
			p.lines <- line{text, why}
			m, err := p.exchange(ctx, nil)
			wrong, ok := errors.AsType[*Error](err)
			if err != nil && (!ok || wrong.Reason == "") || err == nil && !json.Valid(text) {
				t.Fatalf("%q: %+v, %v", text, m, err)
			}
		}
	})
}
