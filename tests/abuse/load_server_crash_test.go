package abuse

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/link"
	"oneway.example/tests/await"
	"oneway.example/tests/remoteend"
)

// respondIn is the environment variable with the directory of a load server; if it is set, this program runs one
// instead of the tests.
const respondIn = "ONEWAY_ABUSE_RESPOND_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(respondIn); dir != "" {
		if err := respondUntilKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// respondUntilKilled runs a load server and prints its address and its pin.
func respondUntilKilled(dir string) error {
	links := link.NewTable(nil)
	r, err := loadserver.New(loadserver.Options{
		Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, StateDir: dir, TokensFile: filepath.Join(dir, "tokens"),
	}, loadserver.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: links, Traffic: traffictypes.All()})
	if err != nil {
		return err
	}
	go func() {
		<-r.Started()
		fmt.Println(r.Addrs()[0], r.Pin())
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // ends soon after its test in any case
	defer cancel()
	return r.Run(ctx)
}

// respondApart runs this program as a load server.
func respondApart(t *testing.T, dir string) (at, pin string, kill func()) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), respondIn+"="+dir)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = c.Process.Kill() // SIGKILL: no cleanup
		_ = c.Wait()         // "signal: killed"
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	at, pin, _ = strings.Cut(strings.TrimSpace(line), " ")
	return at, pin, kill
}

func TestKilledLoadServerKeepsPinAndUsage(t *testing.T) {
	dir := t.TempDir()
	token, text, err := loadserver.NewToken("client", loadcontrol.Limits{BytesPerDay: 100_000_000})
	if err != nil {
		t.Fatal(err)
	}
	if err := loadserver.AppendToken(filepath.Join(dir, "tokens"), token); err != nil {
		t.Fatal(err)
	}
	at, pin, kill := respondApart(t, dir)
	open := func(bytes int64) (*udptraffic.Client, error) {
		c, err := loadcontrol.Dial(t.Context(), loadcontrol.ClientOptions{Address: at, Pin: pin, Token: text})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return udptraffic.Open(t.Context(), c, loadcontrol.Open{Test: "saturation", Run: "crash", Bytes: bytes, Duration: time.Minute})
	}
	c, err := open(60_000_000)
	if err != nil {
		t.Fatal(err)
	}
	e, err := stream.Open(stream.Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(context.Background()) }()
	defer func() {
		e.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	session := e.Join(c.Reply.Session)
	cookie, err := session.Hello(t.Context(), c.Remote())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Prove(t.Context(), cookie); err != nil {
		t.Fatal(err)
	}
	long := reverse(1, 100_000)
	if _, err := session.Expect(1, long.Plan); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Start(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if !await.Within(10*time.Second, func() bool { return e.Stats().Accepted > 20 }) {
		t.Fatal("received no packets")
	}
	kill()
	select {
	case <-c.Done(): // detected by the kernel
	case <-time.After(20 * time.Second):
		t.Fatal("the client's connection has not ended")
	}
	before := pin
	at, pin, _ = respondApart(t, dir)
	if pin != before {
		t.Errorf("pin before the restart %s, after it %s", before, pin)
	}
	// The usage of the interrupted run is unknown: its whole reservation counts.
	if _, err := open(40_000_001); remoteend.Refusal(t, err).Reason != loadcontrol.DayLimit {
		t.Errorf("session above the remaining quota: got %v, want day_limit", err)
	}
	if _, err := open(40_000_000); err != nil {
		t.Errorf("session of the remaining quota: %v", err)
	}
}
