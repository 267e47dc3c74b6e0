package tcptraffic

import (
	"testing"

	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/exporter/net/tcpsocket"
)

// The packet scheduler of the host may drop a segment: the time until TCP sends it again is no queueing in the host.
func TestScheduledIsThatOfTheSegmentThatLeft(t *testing.T) {
	d := newDepartures(&Plan{}, &Flow{}, 17)
	d.sent = []tcpstamp.Sent{{Offset: tcpstamp.Grid, Written: 1}}
	for _, s := range []tcpsocket.Stamp{
		{Kind: tcpsocket.Scheduled, At: 10},
		{Kind: tcpsocket.Scheduled, At: 200},
		{Kind: tcpsocket.Left, At: 210},
		{Kind: tcpsocket.Scheduled, At: 400},
		{Kind: tcpsocket.Left, At: 410},
	} {
		s.Offset = tcpstamp.Grid + 17
		d.take(s)
	}
	if s := d.sent[0]; s.Scheduled != 200 || s.First != 210 || s.Last != 410 || s.Transmissions != 2 {
		t.Errorf("%+v", s)
	}
}

func TestStampsAreOfTheirSampleInALongStream(t *testing.T) {
	d := newDepartures(&Plan{}, &Flow{}, 0)
	d.sent = []tcpstamp.Sent{{Offset: tcpstamp.Grid}, {Offset: 3 << 30}}
	d.take(tcpsocket.Stamp{Kind: tcpsocket.Left, Offset: 3 << 30, At: 10})
	if d.sent[0].First != 0 || d.sent[1].First != 10 {
		t.Errorf("%+v", d.sent)
	}
}
