//go:build !slim

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestReadingShowsTheShareAndTheTimeLeft(t *testing.T) {
	var out bytes.Buffer
	r := newReading(&out)
	r.live.width = 80
	if got := r.line(3 * time.Second); !strings.Contains(got, "0 %  reading the store, 3s so far") || strings.Contains(got, "left") {
		t.Error(got)
	}
	r.step("reading Prometheus")(15, 60)
	if got := r.line(10 * time.Second); !strings.Contains(got, "25 %  reading Prometheus, 10s so far  30s left") || len(got) >= 80 {
		t.Error(got)
	}
	if r.end(); out.Len() > 0 {
		t.Errorf("no terminal, and %q", &out)
	}
}
