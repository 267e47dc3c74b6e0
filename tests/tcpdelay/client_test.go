package tcpdelay

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/program"
)

// isClient is the variable of the environment with the request of a client: a process of this test on a host of the lab, as
// the goroutines of a transfer open sockets on threads of their own.
const isClient = "ONEWAY_TEST_TRANSFER"

// request is a transfer for a client.
type request struct {
	LoadServer, Pin, TokenFile string
	Plan                       tcptraffic.Plan
}

// transfer is a load test of one transfer.
type transfer struct {
	plan   tcptraffic.Plan
	result *tcptraffic.Result
}

func (*transfer) Kind() string                                      { return "test" }
func (*transfer) Bytes(int64) int64                                 { return 1 << 30 }
func (x *transfer) Duration() time.Duration                         { return x.plan.Duration }
func (*transfer) Traffic() loadsession.Traffic[*tcptraffic.Session] { return tcptraffic.Local{} }
func (*transfer) Publish(*loadtest.Values, *loadtest.Run)           {}

func (x *transfer) Perform(ctx context.Context, s *tcptraffic.Session, _ *loadtest.Run) (err error) {
	x.result, err = s.Transfer(ctx, x.plan)
	return err
}

// clientMain performs the transfer of the environment, and writes its result.
func clientMain() int {
	var r request
	err := json.Unmarshal([]byte(os.Getenv(isClient)), &r)
	x := &transfer{plan: r.Plan}
	if err == nil {
		o := loadsession.DefaultOptions()
		o.LoadServer, o.Pin, o.TokenFile = r.LoadServer, r.Pin, r.TokenFile
		env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{})}
		_, err = loadtesttest.RunKind(context.Background(), env, probe.Target{Path: "lab", Probe: "test"}, o, x, nil)
	}
	if err == nil {
		err = gob.NewEncoder(os.Stdout).Encode(x.result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// perform performs a transfer from the client of a site.
func perform(t *testing.T, s *loadsite.Site, p tcptraffic.Plan) (r *tcptraffic.Result) {
	t.Helper()
	text, err := json.Marshal(request{s.At.String(), s.Pin, s.TokenFile, p})
	if err != nil {
		t.Fatal(err)
	}
	c := program.Start(t, s.Client, "env", isClient+"="+string(text), os.Args[0])
	if status := c.Wait(t); status != 0 {
		t.Fatalf("the client ended with status %d: %s", status, &c.Stderr)
	}
	if err := gob.NewDecoder(strings.NewReader(c.Stdout.String())).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}
