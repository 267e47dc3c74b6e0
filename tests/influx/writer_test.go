package influx

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output"
	"oneway.example/tests/await"
)

var outagePoints = flag.Int("outage.points", 200_000, "points of the outage test; 3600000 is the size that the project promises")

// writer makes this test binary a process that runs an output: its value is the options. smallDisk is the directory on which that
// process mounts a file system of 1 MB, which only it sees.
const (
	writer    = "ONEWAY_INFLUX_WRITER"
	smallDisk = "ONEWAY_INFLUX_DISK"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if yaml := os.Getenv(writer); yaml != "" {
		if err := write(yaml); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// write runs an output and prints its state ten times a second: the points given so far, those that wait, the largest resident
// memory in kB. It reads the number of points, and their number at a call, from its standard input; each later number there replaces
// the number at a call.
func write(yaml string) error {
	debug.SetMemoryLimit(64 << 20) // as an agent with GOMEMLIMIT
	if dir := os.Getenv(smallDisk); dir != "" {
		if err := errors.Join(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""), syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m")); err != nil {
			return err
		}
	}
	in := bufio.NewReader(os.Stdin)
	var total, each int64
	if _, err := fmt.Fscan(in, &total, &each); err != nil {
		return err
	}
	from := new(source)
	from.count.Store(each)
	go func() {
		for n := int64(0); ; from.count.Store(n) {
			if _, err := fmt.Fscan(in, &n); err != nil {
				return // the end of the input
			}
		}
	}()
	out, err := build(yaml, output.Env{
		Name: "test", Groups: families.All(), Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Scopes: new(metric.Scopes), Recorder: new(record.Recorder), Series: from.series,
	})
	if err != nil {
		return err
	}
	go func() {
		for ; ; time.Sleep(100 * time.Millisecond) { // the interval of the lines
			if from.given.Load() >= total {
				from.count.Store(0)
			}
			var usage syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // valid arguments
			status := out.Status()
			fmt.Println(from.given.Load(), status.Waiting, status.Written, status.Dropped, usage.Maxrss)
		}
	}()
	return out.Run(context.Background())
}

// child is a running writer.
type child struct {
	t                                *testing.T
	cmd                              *exec.Cmd
	stdin                            io.WriteCloser
	given, waiting, written, dropped atomic.Int64
	maxRSS                           atomic.Int64 // kB
	ended                            chan struct{}
}

func startWriter(t *testing.T, yaml string, total, each int) *child {
	t.Helper()
	return startWriterOn(t, "", yaml, total, each)
}

// startWriterOn is startWriter with a small disk on that directory; empty: none.
func startWriterOn(t *testing.T, disk, yaml string, total, each int) *child {
	t.Helper()
	p := &child{t: t, cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), writer+"="+yaml, smallDisk+"="+disk)
	if disk != "" {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.stdin, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.tell(total, each)
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var v [5]int64
			if n, _ := fmt.Sscan(lines.Text(), &v[0], &v[1], &v[2], &v[3], &v[4]); n == len(v) { // the last one may be incomplete
				for i, into := range []*atomic.Int64{&p.given, &p.waiting, &p.written, &p.dropped, &p.maxRSS} {
					into.Store(v[i])
				}
			}
		}
	}()
	t.Cleanup(p.kill)
	return p
}

// tell writes numbers to the writer's standard input.
func (p *child) tell(numbers ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.stdin, numbers...); err != nil {
		p.t.Fatal(err)
	}
}

// kill sends SIGKILL and waits for the end.
func (p *child) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
	_ = p.cmd.Wait() // killed
}

// counter is a store that checks the order of numbered points.
type counter struct {
	*httptest.Server
	next     atomic.Int64 // the number of the next new point
	gaps     atomic.Int64
	repeated atomic.Int64
	away     atomic.Bool
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.away.Load() {
			_, _ = io.Copy(io.Discard, r.Body) // the reply is the point
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		for lines := bufio.NewScanner(z); lines.Scan(); {
			_, rest, _ := strings.Cut(lines.Text(), " n=")
			text, _, _ := strings.Cut(rest, "i ")
			n, err := strconv.ParseInt(text, 10, 64)
			switch next := c.next.Load(); {
			case err != nil:
				t.Errorf("%q: %v", lines.Text(), err)
			case n < next:
				c.repeated.Add(1)
			case n > next:
				c.gaps.Add(1)
				c.next.Store(n + 1)
			default:
				c.next.Store(n + 1)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(c.Close)
	return c
}

// maxRSS is the limit of the writer's resident memory in kB, whatever the number of points.
const maxRSS = 64 << 10

// TestOutageAndSIGKILLLoseNothing: the store is away while points are made, the writer is killed, and another one delivers.
// go test -run Outage ./tests/influx -args -outage.points=3600000
func TestOutageAndSIGKILLLoseNothing(t *testing.T) {
	c := newCounter(t)
	c.away.Store(true)
	yaml := fmt.Sprintf("url: %q, version: 1, database: d, spool: {directory: %s}", c.URL, t.TempDir()+"/spool")
	p := startWriter(t, yaml, *outagePoints, max(*outagePoints/20, 1))
	begin := time.Now()
	if !await.Within(10*time.Minute, func() bool { return p.given.Load() >= int64(*outagePoints) && p.waiting.Load() >= p.given.Load() }) {
		t.Fatalf("%d points of %d wait", p.waiting.Load(), *outagePoints)
	}
	made := time.Since(begin)
	p.kill()
	waiting, rss := p.waiting.Load(), p.maxRSS.Load()
	if p.dropped.Load() != 0 || rss > maxRSS {
		t.Errorf("%d dropped, %d kB of memory, want 0 and at most %d", p.dropped.Load(), rss, maxRSS)
	}
	c.away.Store(false)
	begin = time.Now()
	p = startWriter(t, yaml, 0, 0)
	if !await.Within(10*time.Minute, func() bool { return c.next.Load() >= waiting && p.waiting.Load() == 0 && p.written.Load() >= waiting }) {
		t.Fatalf("%d points of %d arrived", c.next.Load(), waiting)
	}
	took := time.Since(begin)
	if c.next.Load() != waiting || c.gaps.Load() != 0 || p.dropped.Load() != 0 || p.maxRSS.Load() > maxRSS {
		t.Errorf("%d arrived of %d, with %d gaps, %d dropped; %d kB of memory", c.next.Load(), waiting, c.gaps.Load(), p.dropped.Load(), p.maxRSS.Load())
	}
	t.Logf("%d points made in %.1f s with %d kB of memory, delivered in %.1f s with %d kB, %d repeated", waiting, made.Seconds(), rss, took.Seconds(), p.maxRSS.Load(), c.repeated.Load())
}

// TestFullDiskEndsOnlyTheGrowthOfTheSpool: the spool's disk is full while the store is away. Nothing else ends, and after the store is
// back nothing more is dropped.
func TestFullDiskEndsOnlyTheGrowthOfTheSpool(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED, NOT PASSED: mounting needs root")
	}
	c := newCounter(t)
	c.away.Store(true)
	disk := t.TempDir()
	yaml := fmt.Sprintf("url: %q, version: 1, database: d, spool: {directory: %s/spool}", c.URL, disk)
	p := startWriterOn(t, disk, yaml, 1<<40, 200_000)
	await.That(t, "the disk and the memory are full", func() bool { return p.dropped.Load() > 0 })
	p.tell(0) // a machine that others use delivers fewer points in a second than these
	kept := p.waiting.Load()
	c.away.Store(false)
	await.That(t, "what was kept is delivered", func() bool {
		return p.waiting.Load() == 0 && p.written.Load() >= kept && p.written.Load()+p.dropped.Load() == p.given.Load()
	})
	const more = 40_000
	dropped, written := p.dropped.Load(), p.written.Load()
	p.tell(more / 2)
	await.That(t, "new points are delivered", func() bool { return p.written.Load() >= written+more })
	if p.dropped.Load() != dropped || c.repeated.Load() != 0 || p.maxRSS.Load() > maxRSS {
		t.Errorf("%d dropped before and %d after the store was back, %d out of order, %d kB of memory", dropped, p.dropped.Load(), c.repeated.Load(), p.maxRSS.Load())
	}
	t.Logf("%d points were kept, %d dropped; %d kB of memory", kept, dropped, p.maxRSS.Load())
}
