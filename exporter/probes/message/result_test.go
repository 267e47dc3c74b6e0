package message

import (
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// A path that loses all packets of UDP has a known throughput and a known loss.
func TestLossOfAllPacketsIsPublished(t *testing.T) {
	k := &Kind{opts: DefaultOptions()}
	p := k.ofUDP(&udptraffic.Transfer{Counts: udptraffic.Counts{Sent: 10, Lost: 10}, Sent: &stream.Sent{}, Received: &stream.Received{}})
	p.Direction, p.Transport = "forward", UDP
	sink := &metrictest.Keeping{}
	v := loadtest.NewValues(metric.NewScope(sink, "a-to-b", "message"))
	v.Replace("run", func(v *loadtest.Values) {
		k.Publish(v, &loadtest.Run{Body: &Result{MessageBytes: 512, Parts: []Part{p}}})
	})
	for family, want := range map[*metric.Desc]float64{ThroughputDesc: 0, LossDesc: 1} {
		if got, ok := sink.Value(family, "a-to-b", "message", "forward", "512", "udp"); !ok || got != want {
			t.Errorf("%s is %v, %v; want %v", family.Name, got, ok, want)
		}
	}
}

// An outage at the end or at the begin does not shorten the time of the rate: of 1000 messages of 100 bytes, sent in 10 s, 100
// or one arrive.
func TestThroughputIsThatOfTheTimeOfSending(t *testing.T) {
	const begin = instant.Time(1_800_000_000_000_000_000)
	own := DefaultOptions()
	own.MessageBytes = 100
	k, err := NewKind(loadsession.DefaultOptions(), own)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, until int // the messages that arrive
		want        float64
	}{{0, 1000, 10_000}, {0, 100, 1000}, {900, 1000, 1000}, {0, 1, 10}} {
		x := &udptraffic.Transfer{Received: &stream.Received{}, Sent: &stream.Sent{Begin: begin, End: begin.Add(9990 * time.Millisecond)}}
		x.Counts = udptraffic.Counts{Sent: 1000, Arrived: c.until - c.from, Lost: 1000 - c.until + c.from}
		for i := c.from; i < c.until; i++ {
			at := begin.Add(time.Duration(i)*10*time.Millisecond + time.Second)
			x.Packets = append(x.Packets, udptraffic.Packet{Arrived: sample.Stamp{At: at, Origin: sample.Kernel}, Copies: 1})
		}
		if got := k.ofUDP(x).Throughput; got == nil || *got < 0.99*c.want || *got > 1.01*c.want {
			t.Errorf("UDP, messages %d to %d: %v, want %v", c.from, c.until, show(got), c.want)
		}
		y := &tcptraffic.Result{
			Sender:   []tcptraffic.FlowEnd{{Payload: 100_000, Last: 9990 * time.Millisecond}},
			Receiver: []tcptraffic.FlowEnd{{Payload: int64(100 * (c.until - c.from)), First: time.Duration(c.from) * 10 * time.Millisecond, Last: time.Duration(c.until-1) * 10 * time.Millisecond}},
		}
		if got := k.ofTCP(y, false).Throughput; got == nil || *got < 0.99*c.want || *got > 1.01*c.want {
			t.Errorf("TCP, messages %d to %d: %v, want %v", c.from, c.until, show(got), c.want)
		}
	}
}

// What a transport's sender did is unknown where its record did not arrive, and all is where none did.
func TestMessagesOfAnUnknownSenderAreAbsent(t *testing.T) {
	own := DefaultOptions()
	k, err := NewKind(loadsession.DefaultOptions(), own)
	if err != nil {
		t.Fatal(err)
	}
	p := k.ofTCP(&tcptraffic.Result{
		Cut: "x", Sender: make([]tcptraffic.FlowEnd, 1),
		Receiver: []tcptraffic.FlowEnd{{Ended: tcptraffic.EndedCanceled, Payload: 1 << 20, First: time.Second, Last: 3 * time.Second}},
	}, false)
	if p.Sent != nil || p.Packets != nil || p.PerMessage != nil || p.Offered != nil || p.CongestionControl != "" || p.Throughput == nil {
		t.Errorf("%+v", p)
	}
	for _, row := range (&Result{Parts: []Part{p, {Partial: "the session was lost"}}}).Tables()[0].Rows {
		if row[2] != "-" || row[3] != "-" {
			t.Errorf("%q", row)
		}
	}
}

func show(v *float64) any {
	if v == nil {
		return "absent"
	}
	return *v
}
