package promsink

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/metric"
)

// readings are what Read passes, as text.
func readings(t *testing.T, s *Sink, families ...*metric.Desc) (all []string) {
	t.Helper()
	err := s.Read(families, func(d *metric.Desc, r *metric.Reading) {
		all = append(all, fmt.Sprintf("%s%v %v %d %v %v", d.Name, r.Labels, r.Number, r.Count, r.Sum, r.Buckets))
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestReadHasTheNamedFamiliesInThisOrder(t *testing.T) {
	s := newSink(Options{NoClassic: true})
	s.Series(metric.PacketsSent, "b", "stamp", "reverse").Add(3)
	s.Series(metric.PacketsSent, "a", "stamp", "forward").Add(2)
	s.Series(metric.ProbeUp, "a", "stamp") // absent
	s.Series(metric.DelayErrorBound, "a", "stamp", "forward").Set(math.Inf(1))
	h := s.Series(metric.LossBurst, "a", "stamp", "forward")
	h.Observe(1)
	h.Observe(2)
	h.Observe(100)
	s.Series(metric.IPDV, "a", "stamp", "forward").Observe(0.5)
	want := []string{
		"oneway_packets_sent_total[b stamp reverse] 3 0 0 []", "oneway_packets_sent_total[a stamp forward] 2 0 0 []",
		"oneway_loss_burst_packets[a stamp forward] 0 3 103 [1 2]", "oneway_delay_error_bound_seconds[a stamp forward] +Inf 0 0 []",
		"oneway_ipdv_seconds[a stamp forward] 0 1 0.5 []",
	}
	got := readings(t, s, metric.PacketsSent, &metric.Desc{Name: "unknown"}, metric.ProbeUp, metric.LossBurst, metric.DelayErrorBound, metric.IPDV)
	slices.Sort(got[:2]) // of the first family, in the order of label direction
	slices.Sort(want[:2])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReadIsOfOneInstant: a writer keeps two counters and the count of a histogram equal in each Update, also while the
// visits of a Read change the sink.
func TestReadIsOfOneInstant(t *testing.T) {
	s := newSink(Options{})
	a, b := s.Series(metric.PacketsSent, "a", "stamp", "forward"), s.Series(metric.PacketsReceived, "a", "stamp", "forward")
	h := s.Series(metric.Delay, "a", "stamp", "forward")
	write := func() { s.Update(func() { a.Add(1); h.Observe(0.25); b.Add(1) }) }
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				write()
			}
		}
	})
	for range 200 {
		var numbers []float64
		err := s.Read([]*metric.Desc{metric.PacketsSent, metric.Delay, metric.PacketsReceived}, func(_ *metric.Desc, r *metric.Reading) {
			numbers = append(numbers, r.Number+float64(r.Count))
			write()
		})
		if err != nil || len(numbers) != 3 || numbers[0] != numbers[1] || numbers[0] != numbers[2] {
			t.Fatalf("%v, %v", numbers, err)
		}
	}
	close(stop)
	writing.Wait()
	if got := readings(t, s, metric.PacketsSent); len(got) != 1 {
		t.Errorf("afterwards %v", got)
	}
}
