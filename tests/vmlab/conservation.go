package vmlab

import (
	"fmt"
	"maps"
	"strings"

	"oneway.example/tests/vmlab/record"
)

const sentFamily = "oneway_packets_sent_total{"

// conserved checks all series of the span, in each direction of each path: every
// packet that was sent is received, lost or outstanding, in whole numbers and at every
// moment (METRICS.md). seen is the number of checks.
func conserved(all []record.Metrics, in Span) (seen int, err error) {
	now := map[string]*float64{}
	for _, m := range all {
		if m.Counter >= in.To {
			return seen, nil
		}
		if m.First {
			clear(now)
		}
		maps.Copy(now, m.Values)
		if m.Counter < in.From {
			continue
		}
		for name, sent := range now {
			labels, ok := strings.CutPrefix(name, sentFamily)
			if !ok {
				continue
			}
			received, lost, flying := now["oneway_packets_received_total{"+labels], now["oneway_packets_lost_total{"+labels], now["oneway_packets_outstanding{"+labels]
			dropped := now["oneway_packets_host_dropped_total{"+labels]
			if sent == nil || received == nil || lost == nil || flying == nil || dropped == nil {
				continue // at first not both directions are known
			}
			undecided := 0.0 // absent until the first
			if n := now["oneway_packets_undecided_total{"+labels]; n != nil {
				undecided = *n
			}
			if *sent != *received+*lost+*dropped+undecided+*flying {
				return seen, fmt.Errorf("%.0f packets sent are not %.0f received + %.0f lost + %.0f dropped by the host + %.0f undecided + %.0f outstanding (%s)", *sent, *received, *lost, *dropped, undecided, *flying, strings.TrimSuffix(labels, "}"))
			}
			seen++
		}
	}
	return seen, nil
}
