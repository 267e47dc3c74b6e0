package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/heavy"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/train"
)

const testTrainHelp = `Learn the path's capacity from packet trains, which the slowest link spreads.

A train in which something else has set the packets' distances says nothing and is
sent again; where too few are left there is no capacity, but the reason why. The path's MTU
is found first, and trains of larger packets are marked.

Examples:
  oneway test train responder.example.net --token-file token --pin sha256:...
  oneway test train 192.0.2.7 --token-file token --size 1472 --size 800 --trains 10 --interval 200ms
  oneway test train 192.0.2.7 --token-file token --json > trains.json

Exit status: 0 completed, 1 not (the reason is printed, with what was found), 2 usage.`

func testTrainCommand(parent *kingpin.CmdClause) {
	o := train.DefaultOptions()
	var sizes []int
	noMTU := false
	cmd := parent.Command("train", testTrainHelp)
	cmd.Flag("size", "UDP payload of the packets; repeatable.").Default(texts(o.PayloadBytes)...).IntsVar(&sizes)
	cmd.Flag("trains", "Clean trains wanted of each size.").Default(strconv.Itoa(o.Trains)).IntVar(&o.Trains)
	cmd.Flag("packets", "Packets in a train.").Default(strconv.Itoa(o.TrainPackets)).IntVar(&o.TrainPackets)
	cmd.Flag("long", "Packets in three long trains, which look for a token bucket; 0: none.").Default(strconv.Itoa(o.LongTrainPackets)).IntVar(&o.LongTrainPackets)
	cmd.Flag("interval", "From train to train.").Default("200ms").DurationVar(&o.TrainInterval)
	cmd.Flag("pause", "Silence after each ten trains.").Default("1s").DurationVar(&o.GroupPause)
	cmd.Flag("no-path-mtu", "Do not search for the path's MTU.").BoolVar(&noMTU)
	f := &testFlags{}
	f.register(cmd, testKind{
		word: "train",
		kind: func(_ probe.Env, _ probe.Target, shared heavy.Options) (heavy.Kind, error) {
			o.PayloadBytes, o.PathMTU = sizes, !noMTU
			return train.NewKind(shared, o)
		},
		print: printTrain,
	})
}

func printTrain(out io.Writer, body any) error {
	r, ok := body.(*train.Result)
	if !ok {
		return fmt.Errorf("a result of type %T", body)
	}
	t := newTable(out, "")
	t.row("direction", "payload", "IP bytes", "capacity", "±", "5th percentile", "95th", "dispersion", "trains", "")
	for _, d := range r.Directions {
		for _, z := range d.Sizes {
			dispersion := "-"
			if z.Dispersion != nil {
				dispersion = time.Duration(*z.Dispersion * 1e9).Round(time.Microsecond).String()
			}
			mark := "" // why there is no capacity is in the notes
			if z.Fragmented != nil && *z.Fragmented {
				mark = "fragmented"
			}
			t.row(d.Way, strconv.Itoa(z.PayloadBytes), strconv.Itoa(z.PacketBytes), rateOf(z.Median), rateOf(z.Bound), rateOf(z.P5), rateOf(z.P95),
				dispersion, trainCounts(z.Trains), mark)
		}
	}
	return t.end()
}

// trainCounts is "30 clean, 2 lost".
func trainCounts(m map[string]int) string {
	var words []string
	for _, result := range slices.Sorted(maps.Keys(m)) {
		if n := m[result]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, strings.ReplaceAll(result, "_", " ")))
		}
	}
	return strings.Join(words, ", ")
}
