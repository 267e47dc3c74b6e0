package logs

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/influxdata/telegraf"
)

func TestRecordsAreLinesThatTelegrafUnderstands(t *testing.T) {
	var out strings.Builder
	l := New(&out, telegraf.Info)
	log := Slog(l)
	log.With("component", "clock").WithGroup("g").Error("Failed, will be retried", "err", errors.New("keyfile: b c"), "msg", "x")
	log.Warn("Alone")
	log.Info("Measuring", "paths", 2)
	log.Debug("not this one")
	l.Errorf("oneway: %d", 3)
	l.Close(time.Minute)
	want := "E! Failed, will be retried: component=clock g.err=\"b c\" g.msg=x\nW! Alone\nI! Measuring: paths=2\nE! oneway: 3\n"
	if out.String() != want {
		t.Errorf("%s, want\n%s", &out, want)
	}
	log.Info("after the end")
}

func TestALogThatIsNotReadBlocksNobody(t *testing.T) {
	r, w := io.Pipe() // nobody reads
	l := New(w, telegraf.Info)
	for range 10 * queued {
		l.Info("line")
	}
	l.Close(time.Millisecond)
	lines := make(chan int)
	go func() {
		all, _ := io.ReadAll(r) // the writer closes without an error
		lines <- strings.Count(string(all), "\n")
	}()
	<-l.ended
	w.Close()
	if n := <-lines; n < queued || n > queued+2 {
		t.Errorf("%d lines, want those of the queue, %d", n, queued)
	}
}

func TestDroppedLinesAreCounted(t *testing.T) {
	r, w := io.Pipe()
	l := New(w, telegraf.Info)
	for range 2 * queued {
		l.Info("line")
	}
	all := make(chan string)
	go func() {
		text, _ := io.ReadAll(r) // the writer closes without an error
		all <- string(text)
	}()
	for len(l.lines) > 0 {
		time.Sleep(time.Millisecond) // until the queue has been read
	}
	l.Info("last")
	l.Close(time.Minute)
	w.Close()
	if text := <-all; !strings.Contains(text, "lines of the log were dropped") || !strings.HasSuffix(text, "I! last\n") {
		t.Errorf("%s", text[len(text)-200:])
	}
}
