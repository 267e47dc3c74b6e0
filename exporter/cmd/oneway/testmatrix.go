package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/heavy"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/matrix"
)

const testMatrixHelp = `Measure every combination of packet sizes and packet rates (the sizes and rates of the D-ITG report).

A cell is one size at one rate in one direction. What the sender could not send is
told apart from what the path lost. mean |IPDV| is the mean absolute difference in delay of
packets sent one after the other (RFC 5481). Cells that the token's limits do not allow are left out.

Examples:
  oneway test matrix responder.example.net --token-file token --pin sha256:...
  oneway test matrix 192.0.2.7 --token-file token --size 64 --size 1500 --rate 100 --rate 1000
  oneway test matrix 192.0.2.7 --token-file token --cell 10s --repetitions 20 --json > matrix.json

Exit status: 0 completed, 1 not (the reason is printed, with what was found), 2 usage.`

func testMatrixCommand(parent *kingpin.CmdClause) {
	o := matrix.DefaultOptions()
	var sizes, rates []int
	cmd := parent.Command("matrix", testMatrixHelp)
	cmd.Flag("size", "Size of the IP packets; repeatable.").Default(texts(o.PacketBytes)...).IntsVar(&sizes)
	cmd.Flag("rate", "Packets a second; repeatable.").Default(texts(o.PacketRates)...).IntsVar(&rates)
	cmd.Flag("cell", "How long each cell is loaded.").Default("2s").DurationVar(&o.CellDuration)
	cmd.Flag("repetitions", "How often each cell is measured.").Default(strconv.Itoa(o.Repetitions)).IntVar(&o.Repetitions)
	cmd.Flag("seed", "Of the order of the cells; 0: by chance.").Uint64Var(&o.Seed)
	f := &testFlags{}
	f.register(cmd, testKind{
		word: "matrix",
		kind: func(env probe.Env, target probe.Target, shared heavy.Options) (heavy.Kind, error) {
			o.PacketBytes, o.PacketRates = sizes, rates
			return matrix.NewKind(env, target, shared, o)
		},
		print: printMatrix,
	})
}

func texts(numbers []int) (all []string) {
	for _, n := range numbers {
		all = append(all, strconv.Itoa(n))
	}
	return all
}

func printMatrix(out io.Writer, body any) error {
	r, ok := body.(*matrix.Result)
	if !ok {
		return fmt.Errorf("a result of type %T", body)
	}
	t := newTable(out, "")
	t.row("direction", "bytes", "packets/s", "sent", "came through", "lost", "delay", "±", "mean |IPDV|", "not sent")
	for _, c := range r.Cells {
		m := c.Median
		t.row(c.Way, strconv.Itoa(c.PacketBytes), strconv.Itoa(c.PacketRate), rateOf(m.Sent), rateOf(m.Received), ratioOf(m.Loss),
			seconds(m.Delay), seconds(m.Bound), seconds(m.IPDV), ratioOf(m.Shortfall))
	}
	return t.end()
}

func rateOf(v *float64) string {
	if v == nil {
		return "-"
	}
	return heavy.Rate(*v).Words()
}

func ratioOf(v *float64) string {
	if v == nil {
		return "-"
	}
	return percentage(*v)
}

// inSeconds is a duration for seconds.
func inSeconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	v := d.Seconds()
	return &v
}
